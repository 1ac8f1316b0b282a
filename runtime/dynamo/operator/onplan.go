package operator

import (
	"context"
	"iter"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/members"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
)

// Scanner is the part of *dynamodb.Client that OnPlan calls.
type Scanner interface {
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}

// PlanPage is a page of OnPlan.
type PlanPage struct {
	Entities []string // as stored
	Read     int      // items, of any kind
	Units    float64  // read units
}

// OnPlan yields the entities of a kind with this prefix that are on a plan, by one scan of the whole table:
// half a read unit for each 4 kB. namespace is theirs, "" for the default one. It ends with the first error.
// An entity that is moved meanwhile may be missing.
func OnPlan(
	ctx context.Context, client Scanner, table, namespace, prefix, plan string,
) iter.Seq2[PlanPage, error] {
	return func(yield func(PlanPage, error) bool) {
		retrier, hash := wire.NewRetrier(table), item.Namespace(namespace).Hash(item.EntityPrefix)
		in := &dynamodb.ScanInput{
			TableName:            &table,
			FilterExpression:     aws.String("SK = :meta AND begins_with(PK, :kind) AND #plan = :plan"),
			ProjectionExpression: aws.String("PK"), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
			ExpressionAttributeNames: map[string]string{"#plan": members.PlanAttribute}, // a reserved word
			ExpressionAttributeValues: codec.Item{
				":meta": codec.S(item.EntitySK), ":kind": codec.S(hash + prefix), ":plan": codec.S(plan),
			},
		}
		for {
			var out *dynamodb.ScanOutput
			err := retrier.Do(ctx, func() (err error) {
				out, err = client.Scan(ctx, in, wire.NoRetry)
				return err
			})
			if err != nil {
				yield(PlanPage{}, err)
				return
			}
			page := PlanPage{Read: int(out.ScannedCount)}
			if out.ConsumedCapacity != nil {
				page.Units = aws.ToFloat64(out.ConsumedCapacity.CapacityUnits)
			}
			for _, raw := range out.Items {
				page.Entities = append(page.Entities, strings.TrimPrefix(item.KeyOf(raw).PK, item.EntityPrefix))
			}
			if !yield(page, nil) || len(out.LastEvaluatedKey) == 0 {
				return
			}
			in.ExclusiveStartKey = out.LastEvaluatedKey
		}
	}
}
