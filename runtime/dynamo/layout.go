package dynamo

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// Layouts of a table, as its version item records them. A program stops at one that it does not know.
const (
	layoutBuckets  = 1 // buckets alone
	layoutCarrying = 2 // beside per-limit items, which become buckets: whoever does not know them would make full ones

	layoutNewest = layoutCarrying
)

// recordLayout replaces layout from, or none, by to. Where there is another, it leaves it.
func recordLayout(ctx context.Context, api API, table string, from, to int64) error {
	_, err := api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 &table,
		Key:                       versionKey(),
		UpdateExpression:          aws.String("SET layout = :to, revision = if_not_exists(revision, :none)"),
		ConditionExpression:       aws.String("attribute_not_exists(layout) OR layout = :from"),
		ExpressionAttributeValues: codec.Item{":from": codec.N(from), ":to": codec.N(to), ":none": codec.N(0)},
	})
	if _, other := errors.AsType[*types.ConditionalCheckFailedException](err); other {
		return nil
	}
	return err
}
