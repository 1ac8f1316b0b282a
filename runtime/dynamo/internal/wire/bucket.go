package wire

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/internal/item"
)

// Getter is the part of *dynamodb.Client that reads an item.
type Getter interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
}

// ReadBucket reads a bucket consistently and without a schema: its limits are Extra, by name. It returns nil if there is no
// bucket. The error is DynamoDB's, or a *store.SetupError if the bucket is malformed.
func ReadBucket(
	ctx context.Context, client Getter, table, entity, resource string, opts ...func(*dynamodb.Options),
) (*bucket.Image, error) {
	out, err := client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &table, Key: item.BucketKey(entity, resource), ConsistentRead: aws.Bool(true),
	}, opts...)
	if err != nil {
		return nil, err
	}
	if len(out.Item) == 0 {
		return nil, nil
	}
	return DecodeBucket(entity, resource, out.Item)
}

// DecodeBucket reads a bucket's item without a schema: its limits are Extra. It fails with a *store.SetupError.
func DecodeBucket(entity, resource string, raw codec.Item) (*bucket.Image, error) {
	d := codec.Decoder{Item: raw}
	img := &bucket.Image{Refilled: d.Int("rf"), Version: d.Int("cv"), TTL: d.Int(item.TTL), Op: d.Text("op"), Extra: d.Extra()}
	if err := d.Err(); err != nil {
		return nil, Malformed(entity, resource, err)
	}
	return img, nil
}
