package operator

import (
	"context"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
)

// Getter is the part of *dynamodb.Client that Inspect calls.
type Getter = wire.Getter

// Inspect reads the bucket of entity, as stored (user-123), on resource, consistently and without a schema:
// its limits are Extra, by name. It returns nil if there is no bucket; a missing bucket counts as full. It
// fails with a *store.SetupError, or with a *store.UnavailableError if DynamoDB does not answer.
func Inspect(ctx context.Context, client Getter, table, entity, resource string) (*bucket.Image, error) {
	img, err := wire.ReadBucket(ctx, client, table, entity, resource)
	if err != nil {
		return nil, wire.CallError(table, err)
	}
	return img, nil
}

// SplitVersion splits an image's Version into the schema's revision and the sum of the versions of two
// overrides: the entity's and its kind's (store.Revision). A bucket takes other numbers only if one of the
// two rises and neither falls.
func SplitVersion(version int64) (revision, overrides int64) {
	return version / plan.RevisionUnit, version % plan.RevisionUnit
}
