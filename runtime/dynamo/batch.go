package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

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
