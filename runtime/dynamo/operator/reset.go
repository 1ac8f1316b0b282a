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

// Reset fills the bucket of entity, as stored, on resource up to its burst: the named limits, or all. It returns the
// limits that it filled, by name; none where there is no bucket, which is full. It fails with a *store.InvalidError
// that names the bucket's limits if it lacks a named one, and otherwise as Inspect does, or with a
// *store.ContendedError where the bucket's limits change all the time. It may run beside acquires.
func Reset(ctx context.Context, client wire.API, table, entity, resource string, limits ...string) ([]string, error) {
	p := wire.NewRetrier(table)
	for try := 1; ; try++ {
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
		err = p.Do(ctx, func() error {
			_, err := client.UpdateItem(ctx, in, wire.NoRetry)
			return err
		})
		if err == nil {
			return filled, nil
		} else if _, refused := errors.AsType[*types.ConditionalCheckFailedException](err); !refused {
			return nil, err
		}
		// A limit was removed meanwhile, or the bucket deleted.
		if try == p.Attempts {
			return nil, &store.ContendedError{Resource: resource, Entity: entity, Attempts: try}
		}
	}
}

// limitsToFill returns those of the bucket's limits that are to be filled.
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

// resetInput makes the write that fills limits. Without a word of what they hold it is exact, and the same however often it
// arrives: at the write the balance is the burst, and the refill since rf, unclaimed still, adds nothing to a full bucket.
// A charge that was planned before is refused, or guarded by bounds that a full bucket is within; op is new, so that none
// is taken for the last write. ttl stays: it lasts for the balances that were there, and fuller ones need less.
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
