package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Reset fills the bucket of entity, as stored, on resource up to its burst: the named limits, or all. It
// returns the limits that it filled, by name, or none if there is no bucket. It may run beside acquires. It
// fails as Inspect does, and with
//   - a *store.InvalidError that names the bucket's limits, if a named limit is not among them,
//   - a *store.ContendedError if the bucket's limits change at each attempt.
func Reset(
	ctx context.Context,
	client wire.API,
	table, entity, resource string,
	limits ...string,
) ([]string, error) {
	retrier := wire.NewRetrier(table)
	for attempt := 1; ; attempt++ {
		img, err := Inspect(ctx, client, table, entity, resource)
		if img == nil || err != nil {
			return nil, err
		}
		filled, err := limitsToFill(img, entity, resource, limits)
		if err != nil {
			return nil, err
		}
		in, err := resetInput(table, entity, resource, filled)
		if err != nil {
			return nil, err
		}
		err = retrier.Do(ctx, func() error {
			_, err := client.UpdateItem(ctx, in, wire.NoRetry)
			return err
		})
		if err == nil {
			return filled, nil
		} else if _, refused := errors.AsType[*types.ConditionalCheckFailedException](err); !refused {
			return nil, err
		}
		// A limit was removed meanwhile, or the bucket deleted.
		if attempt == retrier.Attempts {
			return nil, &store.ContendedError{Resource: resource, Entity: entity, Attempts: attempt}
		}
	}
}

// limitsToFill returns the bucket's limits that Reset fills: the named ones, or all.
func limitsToFill(img *bucket.Image, entity, resource string, named []string) ([]string, error) {
	has := make([]string, len(img.Extra))
	for i, extra := range img.Extra {
		has[i] = extra.Name
	}
	for _, name := range named {
		if !slices.Contains(has, name) {
			return nil, &store.InvalidError{
				Resource: resource, Field: "limit", Value: name,
				Reason: fmt.Sprintf("is not in the bucket of %s, which has %s", entity, strings.Join(has, ", ")),
			}
		}
	}
	if len(named) > 0 {
		has = slices.DeleteFunc(has, func(name string) bool { return !slices.Contains(named, name) })
	}
	return has, nil
}

// resetInput returns the write that fills limits. It depends on no balance, and has the same effect however
// often it arrives. At the write each balance is its burst, and the refill since rf adds nothing to a full
// bucket.
//
// A charge that was planned before either fails or has bounds that a full bucket meets. op is new, so that no
// charge takes the bucket's last write for its own. ttl stays: it suffices for the balances before, and
// fuller ones need less.
func resetInput(table, entity, resource string, limits []string) (*dynamodb.UpdateItemInput, error) {
	update := expression.Set(expression.Name("op"), expression.Value(wire.NewOp()))
	condition := expression.AttributeExists(expression.Name(item.PK))
	for _, name := range limits {
		tk := expression.Name("b_" + name + "_tk")
		update = update.Set(tk, expression.Name("b_"+name+"_bx"))
		condition = condition.And(tk.AttributeExists())
	}
	built, err := expression.NewBuilder().WithUpdate(update).WithCondition(condition).Build()
	if err != nil {
		return nil, fmt.Errorf("expression for the reset of %s: %w", resource, err)
	}
	return &dynamodb.UpdateItemInput{
		TableName: &table, Key: item.BucketKey(entity, resource),
		UpdateExpression: built.Update(), ConditionExpression: built.Condition(),
		ExpressionAttributeNames: built.Names(), ExpressionAttributeValues: built.Values(),
	}, nil
}
