package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
)

// Getter is the part of *dynamodb.Client that Inspect calls.
type Getter interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
}

// Inspect reads the bucket of entity, as stored (user-123), on resource, consistently and without a schema: its limits
// are Extra, by name. It returns nil where there is no bucket, which is then full. It fails with a *runtime.SetupError,
// or a *runtime.UnavailableError when DynamoDB does not answer.
func Inspect(ctx context.Context, client Getter, table, entity, resource string) (*bucket.Image, error) {
	img, err := inspect(ctx, client, table, entity, resource)
	if err != nil {
		return nil, wire.CallError(table, err)
	}
	return img, nil
}

// inspect is Inspect, whose errors are DynamoDB's, or a *runtime.SetupError for a bucket that is malformed.
func inspect(
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
	return decodeAny(entity, resource, out.Item)
}

// decodeAny reads a bucket's item without a schema: its limits are Extra. It fails with a *runtime.SetupError.
func decodeAny(entity, resource string, raw codec.Item) (*bucket.Image, error) {
	d := codec.Decoder{Item: raw}
	img := &bucket.Image{Refilled: d.Int("rf"), Version: d.Int("cv"), TTL: d.Int(item.TTL), Op: d.Text("op"), Extra: d.Extra()}
	if err := d.Err(); err != nil {
		return nil, wire.Malformed(entity, resource, err)
	}
	return img, nil
}

// SplitVersion takes an image's Version apart: into the revision of the numbers that the bucket has, and the sum of the
// versions of its two levels' overrides (runtime.Revision), the entity's and its kind's. A bucket changes its numbers only
// where one of the two is higher and none lower.
func SplitVersion(version int64) (revision, overrides int64) {
	return version / plan.RevisionUnit, version % plan.RevisionUnit
}
