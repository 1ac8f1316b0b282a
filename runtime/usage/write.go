package usage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/internal/sdklog"
)

// write adds to the window what of s is not in it yet.
func (a *Aggregator) write(ctx context.Context, shard string, s *addition) error {
	left := *s
	for len(left.entries) > 0 {
		in, err := a.input(watermarkOf(shard), &left)
		if err != nil {
			return err
		}
		out, err := a.config.Client.UpdateItem(ctx, in, sdklog.Quiet)
		if err == nil {
			if out != nil {
				a.drop(ctx, &left, out.Attributes)
			}
			return nil
		}
		failed, refused := errors.AsType[*types.ConditionalCheckFailedException](err)
		if !refused {
			return fmt.Errorf("write the window of %v: %w", s.place, err)
		}
		watermark, ok := sequenceOf(failed.Item[watermarkOf(shard)])
		if !ok {
			return fmt.Errorf("the window of %v has no watermark %s: delete the item, or fix it", s.place,
				watermarkOf(shard))
		}
		before := len(left.entries)
		if left.after(watermark); len(left.entries) == before {
			return fmt.Errorf("the window of %v refuses what is above its watermark %s", s.place, watermark)
		}
	}
	return nil
}

// input returns the write that adds s. The client's own retries stay on: if the first attempt was applied,
// its watermark rejects the retry.
func (a *Aggregator) input(watermark string, s *addition) (*dynamodb.UpdateItemInput, error) {
	first, last := s.entries[0].sequence, s.entries[len(s.entries)-1].sequence
	limits, writes := s.sum()
	latest := s.latest()
	from := s.end() // of the time for which the window is kept
	if latest.After(from) {
		// A settle counts in a window that is over while no later one is open. Records of other shards that are
		// older by LeastKeep at most may be written after it, and must not shorten its time.
		from = latest.Add(LeastKeep)
	}
	var returned types.ReturnValue // nothing
	if s.Span == LimitWindow {
		last, returned = dated(last, latest), types.ReturnValueAllNew
	}
	update := expression.Set(expression.Name(watermark), expression.Value(last)).
		Set(expression.Name("entity_id"), expression.Value(s.Entity)).
		Set(expression.Name("resource"), expression.Value(s.Resource)).
		Set(expression.Name("ttl"), expression.Value(from.Add(a.config.Keep[s.Span]).Add(time.Second-1).Unix())).
		Add(expression.Name("writes"), expression.Value(writes))
	for _, l := range limits {
		update = update.Add(expression.Name(spentPrefix+l.Limit), expression.Value(l.Millitokens))
	}
	mark := expression.Name(watermark)
	built, err := expression.NewBuilder().WithUpdate(update).
		WithCondition(mark.AttributeNotExists().Or(mark.LessThan(expression.Value(first)))).Build()
	if err != nil {
		return nil, fmt.Errorf("expression for the window of %v: %w", s.place, err)
	}
	return &dynamodb.UpdateItemInput{
		TableName: aws.String(a.config.Table), Key: item.Namespace(a.config.Namespace).In(s.key()),
		UpdateExpression: built.Update(), ConditionExpression: built.Condition(),
		ExpressionAttributeNames: built.Names(), ExpressionAttributeValues: built.Values(),
		ReturnValues:                        returned,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}, nil
}
