package dynamo

import (
	"context"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// query yields the sort keys that index i has under hash, sorted, page by page. It ends with the first error.
func query(ctx context.Context, api API, p *patience, i index, hash string) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		in := &dynamodb.QueryInput{
			TableName: &p.table, IndexName: &i.name,
			KeyConditionExpression:    aws.String(i.hash + " = :hash"),
			ExpressionAttributeValues: codec.Item{":hash": codec.S(hash)},
		}
		for {
			var out *dynamodb.QueryOutput
			err := p.call(ctx, func() (err error) {
				out, err = api.Query(ctx, in, once)
				return err
			})
			if err != nil {
				yield(nil, err)
				return
			}
			page := make([]string, len(out.Items))
			for j, item := range out.Items {
				d := codec.Decoder{Item: item}
				page[j] = d.Text(i.sort)
			}
			if !yield(page, nil) || len(out.LastEvaluatedKey) == 0 {
				return
			}
			in.ExclusiveStartKey = out.LastEvaluatedKey
		}
	}
}
