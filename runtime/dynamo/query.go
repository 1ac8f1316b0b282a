package dynamo

import (
	"context"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// query yields the sort keys that index i has under hash, sorted, page by page. It ends with the first error.
func query(ctx context.Context, api API, p *patience, i index, hash string) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		for page, err := range queryPages(ctx, api, p, i, hash, "") {
			keys := make([]string, len(page.items))
			for j, item := range page.items {
				d := codec.Decoder{Item: item}
				keys[j] = d.Text(i.sort)
			}
			if !yield(keys, err) {
				return
			}
		}
	}
}

// queryPage is what one call of a query returned.
type queryPage struct {
	items []codec.Item // keys alone
	units float64
}

// queryPages yields what index i has under hash, if not empty with sort keys that begin with prefix, sorted by these. It ends with
// the first error.
func queryPages(ctx context.Context, api API, p *patience, i index, hash, prefix string) iter.Seq2[queryPage, error] {
	return func(yield func(queryPage, error) bool) {
		in := &dynamodb.QueryInput{
			TableName: &p.table, IndexName: &i.name,
			KeyConditionExpression:    aws.String(i.hash + " = :hash"),
			ExpressionAttributeValues: codec.Item{":hash": codec.S(hash)},
			ReturnConsumedCapacity:    types.ReturnConsumedCapacityTotal,
		}
		if prefix != "" {
			in.KeyConditionExpression = aws.String(*in.KeyConditionExpression + " AND begins_with(" + i.sort + ", :prefix)")
			in.ExpressionAttributeValues[":prefix"] = codec.S(prefix)
		}
		for {
			var out *dynamodb.QueryOutput
			err := p.call(ctx, func() (err error) {
				out, err = api.Query(ctx, in, once)
				return err
			})
			if err != nil {
				yield(queryPage{}, err)
				return
			}
			got := queryPage{items: out.Items}
			if out.ConsumedCapacity != nil {
				got.units = aws.ToFloat64(out.ConsumedCapacity.CapacityUnits)
			}
			if !yield(got, nil) || len(out.LastEvaluatedKey) == 0 {
				return
			}
			in.ExclusiveStartKey = out.LastEvaluatedKey
		}
	}
}
