package perlimit

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/internal/item"
)

// Scan asks for all per-limit items of table, and its buckets: no filter tells the two apart by their keys,
// as Key does.
func Scan(table string) *dynamodb.ScanInput {
	return &dynamodb.ScanInput{
		TableName:        &table,
		FilterExpression: aws.String("begins_with(PK, :entities) AND begins_with(SK, :buckets)"),
		ExpressionAttributeValues: codec.Item{
			":entities": codec.S(item.EntityPrefix), ":buckets": codec.S(item.BucketPrefix),
		},
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
}

// BucketKey returns the key of the bucket that the per-limit items of entity on resource become.
func BucketKey(entity, resource string) codec.Item {
	return codec.Item{"PK": codec.S(item.EntityPrefix + entity), "SK": codec.S(item.BucketPrefix + resource)}
}
