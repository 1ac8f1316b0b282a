package redisstore

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime/redisstore/internal/health"
)

// CheckOwner compares the owner that is recorded under the Prefix of s with owner, that of the caller's
// limits.yaml. Every program that writes there on its own account calls it first. It changes nothing: the
// Check of a Limiter records the owner. It fails as Buckets does, and with a *runtime.SetupError that names
// both owners if they differ, also if owner is "". Without a record, every owner fits.
func CheckOwner(ctx context.Context, s *Store, owner string) error {
	recorded, err := s.db.Client.Get(ctx, s.db.Keys.Owner()).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return nil
	case err != nil:
		return s.db.OperationError(ctx, err)
	case recorded != owner:
		return health.OtherOwner(s.db.Keys.Prefix, recorded, owner)
	}
	return nil
}
