package dynamo

import (
	"context"
	"errors"
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// batchMost is how many keys one BatchGetItem takes.
const batchMost = 100

// batch is what one BatchGetItem returned.
type batch struct {
	items    map[primaryKey]codec.Item
	left     []codec.Item // keys that it did not get to
	units    float64
	metadata middleware.Metadata
}

// primaryKey is an item's key, comparable.
type primaryKey struct{ hash, sort string }

func primaryKeyOf(item codec.Item) primaryKey {
	text := func(attr string) string {
		s, _ := item[attr].(*types.AttributeValueMemberS)
		if s == nil {
			return ""
		}
		return s.Value
	}
	return primaryKey{text(hashKey), text(rangeKey)}
}

// batchGet reads up to batchMost distinct keys in one call, without retries.
func batchGet(ctx context.Context, api API, table string, keys []codec.Item, consistent bool) (batch, error) {
	out, err := api.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
		RequestItems:           map[string]types.KeysAndAttributes{table: {Keys: keys, ConsistentRead: &consistent}},
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}, once)
	if err != nil {
		return batch{}, err
	}
	b := batch{items: make(map[primaryKey]codec.Item, len(keys)), metadata: out.ResultMetadata}
	for _, items := range out.Responses { // of one table, whether it was named or given by its ARN
		for _, item := range items {
			b.items[primaryKeyOf(item)] = item
		}
	}
	for _, rest := range out.UnprocessedKeys {
		b.left = append(b.left, rest.Keys...)
	}
	for _, c := range out.ConsumedCapacity {
		b.units += aws.ToFloat64(c.CapacityUnits)
	}
	return b, nil
}

// batchRead reads up to batchMost distinct keys by as many calls as that takes: what DynamoDB leaves over, being short of
// throughput, is asked for again.
func batchRead(ctx context.Context, api API, p *patience, keys []codec.Item, consistent bool) (batch, error) {
	all := batch{items: make(map[primaryKey]codec.Item, len(keys))}
	for left := keys; len(left) > 0; {
		err := p.call(ctx, func() error {
			b, err := batchGet(ctx, api, p.table, left, consistent)
			if err != nil {
				return err
			}
			maps.Copy(all.items, b.items)
			all.units += b.units
			stuck := len(b.left) == len(left)
			if left = b.left; stuck {
				return &types.ProvisionedThroughputExceededException{Message: aws.String("no key of the batch was read")}
			}
			return nil
		})
		if err != nil {
			return batch{}, err
		}
		if len(left) > 0 {
			p.pause(ctx, 1)
		}
	}
	return all, nil
}

var errUnprocessed = errors.New("DynamoDB left keys of a batch unread")

// batch reads keys for the legs, into items. It returns the keys that were left over; the outcome is that of a write.
func (c *charge) batch(ctx context.Context, keys []codec.Item, consistent bool, items map[primaryKey]codec.Item) (outcome, []codec.Item, error) {
	began := c.env.Clock.Now()
	got, err := batchGet(ctx, c.api, c.table, keys, consistent)
	event := runtime.StoreEvent{Call: "BatchGetItem", Path: "levels", Outcome: "found", Read: got.units, Began: began}
	if len(got.items) == 0 {
		event.Outcome = "missing"
	}
	for _, l := range c.legs {
		if l.lacks&image == 0 {
			continue
		}
		event.Path = "read"
		event.Buckets++
		if got.items[primaryKeyOf(l.Key(l.entity))] == nil {
			event.Outcome = "missing"
		}
	}
	if err != nil {
		o, _ := classify(err)
		event.Outcome = "failed"
		c.observe(ctx, c.legs[0], event)
		return o, nil, explain(c.table, o, err)
	}
	c.retries.answered(applied)
	c.observe(ctx, c.legs[0], event)
	c.skew.watch(c.env, began, got.metadata)
	maps.Copy(items, got.items)
	return applied, got.left, nil
}
