package wire

import (
	"context"
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/internal/item"
)

// MaxBatchGet is how many keys one BatchGetItem takes.
const MaxBatchGet = 100

// Batch is what one BatchGetItem returned.
type Batch struct {
	Items       map[item.Key]codec.Item
	Unprocessed []codec.Item // keys that it did not get to
	Units       float64
	Metadata    middleware.Metadata
}

// BatchGet reads up to batchMost distinct keys in one call, without retries.
func BatchGet(ctx context.Context, api API, table string, keys []codec.Item, consistent bool) (Batch, error) {
	out, err := api.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
		RequestItems:           map[string]types.KeysAndAttributes{table: {Keys: keys, ConsistentRead: &consistent}},
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}, NoRetry)
	if err != nil {
		return Batch{}, err
	}
	b := Batch{Items: make(map[item.Key]codec.Item, len(keys)), Metadata: out.ResultMetadata}
	for _, items := range out.Responses { // of one table, whether it was named or given by its ARN
		for _, got := range items {
			b.Items[item.KeyOf(got)] = got
		}
	}
	for _, rest := range out.UnprocessedKeys {
		b.Unprocessed = append(b.Unprocessed, rest.Keys...)
	}
	for _, c := range out.ConsumedCapacity {
		b.Units += aws.ToFloat64(c.CapacityUnits)
	}
	return b, nil
}

// BatchRead reads up to batchMost distinct keys by as many calls as that takes: what DynamoDB leaves over, being short of
// throughput, is asked for again.
func BatchRead(ctx context.Context, api API, p *Retrier, keys []codec.Item, consistent bool) (Batch, error) {
	all := Batch{Items: make(map[item.Key]codec.Item, len(keys))}
	for left := keys; len(left) > 0; {
		err := p.Do(ctx, func() error {
			b, err := BatchGet(ctx, api, p.Table, left, consistent)
			if err != nil {
				return err
			}
			maps.Copy(all.Items, b.Items)
			all.Units += b.Units
			stuck := len(b.Unprocessed) == len(left)
			if left = b.Unprocessed; stuck {
				return &types.ProvisionedThroughputExceededException{Message: aws.String("no key of the batch was read")}
			}
			return nil
		})
		if err != nil {
			return Batch{}, err
		}
		if len(left) > 0 {
			p.Pause(ctx, 1)
		}
	}
	return all, nil
}
