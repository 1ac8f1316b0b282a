package dynamo

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
)

// These wrappers stand between a store and its table, and break the store for negative controls.

// insistent sends give-backs again when their outcome is unknown, as a client's retries would.
type insistent struct {
	wire.API
	batches bool // only those that include requests which take
}

func (c *insistent) UpdateItem(
	ctx context.Context,
	in *dynamodb.UpdateItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	out, err := c.API.UpdateItem(ctx, in, opts...)
	again := isAdjust(in)
	if c.batches {
		where, _ := ctx.Value(tagKey{}).(tag)
		again = where.gives && !again
	}
	for unanswered(err) && ctx.Err() == nil && again {
		out, err = c.API.UpdateItem(ctx, in, opts...)
	}
	return out, err
}

// optimist takes a write without an answer for one that was not applied, so that others may join what goes
// again. It does so with writes that give something back, which keep their op.
type optimist struct{ wire.API }

func (c *optimist) UpdateItem(
	ctx context.Context,
	in *dynamodb.UpdateItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	out, err := c.API.UpdateItem(ctx, in, opts...)
	if where, _ := ctx.Value(tagKey{}).(tag); errors.Is(err, errReset) && where.gives {
		err = errThrottled
	}
	return out, err
}

// changed sends updates with other values, of those that change returns by their names.
type changed struct {
	wire.API
	change func(tag, codec.Item) map[string]int64
}

func (c *changed) UpdateItem(
	ctx context.Context,
	in *dynamodb.UpdateItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	where, _ := ctx.Value(tagKey{}).(tag)
	if where.included > 1 && !isAdjust(in) {
		other := *in
		other.ExpressionAttributeValues = maps.Clone(in.ExpressionAttributeValues)
		for name, n := range c.change(where, in.ExpressionAttributeValues) {
			other.ExpressionAttributeValues[name] = codec.Bound(n)
		}
		in = &other
	}
	return c.API.UpdateItem(ctx, in, opts...)
}

// leastForLargest has the lower bound of a write for several leave headroom for the largest acquire alone.
func leastForLargest(api wire.API) wire.API {
	return &changed{api, func(where tag, values codec.Item) map[string]int64 {
		bounds := map[string]int64{}
		for i, limit := range []string{":rpm", ":tpm"} {
			lo, d := values[limit+"_lo"], where.wants["user-1"]
			if n := number(lo); d.take != nil && n > math.MinInt64 && n < number(values[limit+"_hi"]) {
				bounds[limit+"_lo"] = n - d.take[i] + d.most[i]
			}
		}
		return bounds
	}}
}

// hindsight has the upper bound of a Retry for several hold at the instant when the first of them was called.
func hindsight(limits []bucket.Limit) func(wire.API) wire.API {
	return func(api wire.API) wire.API {
		return &changed{api, func(where tag, values codec.Item) map[string]int64 {
			bounds := map[string]int64{}
			for i, limit := range []string{":rpm", ":tpm"} {
				if hi := number(values[limit+"_hi"]); values[":rf0"] == nil && hi < math.MaxInt64 {
					bounds[limit+"_hi"] = hi + bucket.Refill(limits[i], where.first, where.called)
				}
			}
			return bounds
		}}
	}
}

// forgetful gives a transaction that goes again a new token.
type forgetful struct{ wire.API }

func (c *forgetful) TransactWriteItems(
	ctx context.Context,
	in *dynamodb.TransactWriteItemsInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	rebuilt := *in
	rebuilt.ClientRequestToken = aws.String(wire.NewOp())
	return c.API.TransactWriteItems(ctx, &rebuilt, opts...)
}

// piecemeal writes a transaction's items one after the other, until one is refused.
type piecemeal struct{ wire.API }

func (c *piecemeal) TransactWriteItems(
	ctx context.Context,
	in *dynamodb.TransactWriteItemsInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	reasons := slices.Repeat([]types.CancellationReason{{Code: aws.String("None")}}, len(in.TransactItems))
	for i, item := range in.TransactItems {
		var err error
		if put := item.Put; put != nil {
			_, err = c.PutItem(
				ctx,
				&dynamodb.PutItemInput{Item: put.Item, ConditionExpression: put.ConditionExpression},
				opts...)
		} else {
			u := item.Update
			_, err = c.UpdateItem(ctx, &dynamodb.UpdateItemInput{
				Key: u.Key, ConditionExpression: u.ConditionExpression, UpdateExpression: u.UpdateExpression,
				ExpressionAttributeNames:  u.ExpressionAttributeNames,
				ExpressionAttributeValues: u.ExpressionAttributeValues,
			}, opts...)
		}
		if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
			reasons[i] = types.CancellationReason{Code: aws.String("ConditionalCheckFailed"), Item: failed.Item}
			return nil, &types.TransactionCanceledException{CancellationReasons: reasons}
		} else if err != nil {
			return nil, err
		}
	}
	return &dynamodb.TransactWriteItemsOutput{}, nil
}

// openHanded gives an acquire's compensation a second time, as another write.
type openHanded struct{ wire.API }

func (c *openHanded) UpdateItem(
	ctx context.Context,
	in *dynamodb.UpdateItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	out, err := c.API.UpdateItem(ctx, in, opts...)
	if where, _ := ctx.Value(tagKey{}).(tag); err == nil && where.returns && isAdjust(in) {
		again := *in
		again.ExpressionAttributeValues = maps.Clone(in.ExpressionAttributeValues)
		again.ExpressionAttributeValues[":op"] = codec.S(wire.NewOp())
		out, err = c.API.UpdateItem(ctx, &again, opts...)
	}
	return out, err
}

// stuck keeps what it once read of an override, or that there was none.
type stuck struct {
	wire.API
	seen map[string]codec.Item
}

func (c *stuck) BatchGetItem(
	ctx context.Context,
	in *dynamodb.BatchGetItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	out, err := c.API.BatchGetItem(ctx, in, opts...)
	if err != nil {
		return nil, err
	}
	found := map[string]codec.Item{}
	for _, item := range out.Responses["sim"] {
		found[keyOf(item)] = item
	}
	out.Responses["sim"] = nil
	for _, key := range in.RequestItems["sim"].Keys {
		k := keyOf(key)
		item := found[k]
		if old, known := c.seen[k]; known {
			item = old
		} else if !isBucket(k) {
			c.seen[k] = item
		}
		if item != nil {
			out.Responses["sim"] = append(out.Responses["sim"], item)
		}
	}
	return out, nil
}
