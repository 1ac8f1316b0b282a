package wire

import (
	"context"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/internal/item"
)

// Query yields the sort keys that index i has under hash, in order, page by page. It ends with the first
// error, one of Retrier.Do.
func Query(
	ctx context.Context, api API, retrier *Retrier, i item.Index, hash string,
) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		for page, err := range QueryPages(ctx, api, retrier, i, hash, "") {
			keys := make([]string, len(page.Items))
			for j, key := range page.Items {
				d := codec.Decoder{Item: key}
				keys[j] = d.Text(i.Sort)
			}
			if !yield(keys, err) {
				return
			}
		}
	}
}

// QueryPage is what one call of a query returned.
type QueryPage struct {
	Items []codec.Item // of an index: keys alone
	Units float64
}

// QueryPages yields the keys that index i has under hash, in the order of their sort keys. With a prefix,
// only sort keys that begin with it. It ends with the first error, one of Retrier.Do.
func QueryPages(
	ctx context.Context, api API, retrier *Retrier, i item.Index, hash, prefix string,
) iter.Seq2[QueryPage, error] {
	return func(yield func(QueryPage, error) bool) {
		in := &dynamodb.QueryInput{
			TableName: &retrier.Table, IndexName: &i.Name,
			KeyConditionExpression:    aws.String(i.Hash + " = :hash"),
			ExpressionAttributeValues: codec.Item{":hash": codec.S(hash)},
			ReturnConsumedCapacity:    types.ReturnConsumedCapacityTotal,
		}
		if prefix != "" {
			*in.KeyConditionExpression += " AND begins_with(" + i.Sort + ", :prefix)"
			in.ExpressionAttributeValues[":prefix"] = codec.S(prefix)
		}
		for page, err := range Pages(ctx, api, retrier, in) {
			if !yield(page, err) {
				return
			}
		}
	}
}

// Pages yields what in finds, page by page, and changes in. It ends with the first error, one of Retrier.Do.
func Pages(
	ctx context.Context, api API, retrier *Retrier, in *dynamodb.QueryInput,
) iter.Seq2[QueryPage, error] {
	return func(yield func(QueryPage, error) bool) {
		for {
			var out *dynamodb.QueryOutput
			err := retrier.Do(ctx, func() (err error) {
				out, err = api.Query(ctx, in, NoRetry)
				return err
			})
			if err != nil {
				yield(QueryPage{}, err)
				return
			}
			got := QueryPage{Items: out.Items}
			if out.ConsumedCapacity != nil {
				got.Units = aws.ToFloat64(out.ConsumedCapacity.CapacityUnits)
			}
			if !yield(got, nil) || len(out.LastEvaluatedKey) == 0 {
				return
			}
			in.ExclusiveStartKey = out.LastEvaluatedKey
		}
	}
}
