package operator

import (
	"context"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
)

// Getter is the part of *dynamodb.Client that Inspect calls.
type Getter = wire.Getter

// Inspect reads the bucket of entity, as stored (user-123), on resource, consistently and without a schema: its limits
// are Extra, by name. It returns nil where there is no bucket, which is then full. It fails with a *store.SetupError,
// or a *store.UnavailableError when DynamoDB does not answer.
func Inspect(ctx context.Context, client Getter, table, entity, resource string) (*bucket.Image, error) {
	img, err := wire.ReadBucket(ctx, client, table, entity, resource)
	if err != nil {
		return nil, wire.CallError(table, err)
	}
	return img, nil
}

// SplitVersion takes an image's Version apart: into the revision of the numbers that the bucket has, and the sum of the
// versions of its two levels' overrides (store.Revision), the entity's and its kind's. A bucket changes its numbers only
// where one of the two is higher and none lower.
func SplitVersion(version int64) (revision, overrides int64) {
	return version / plan.RevisionUnit, version % plan.RevisionUnit
}
