package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime/store"
)

// claim compares the owner recorded under the prefix with own, and records own if there is none. An own of ""
// fits every prefix. Another owner is a *store.SetupError that names both.
func (c checker) claim(ctx context.Context, own string) error {
	if own == "" {
		return nil
	}
	key := c.db.Keys.Owner()
	recorded, err := c.db.Client.Get(ctx, key).Result()
	if errors.Is(err, redis.Nil) {
		if err = c.db.Client.SetNX(ctx, key, own, 0).Err(); err == nil {
			recorded, err = c.db.Client.Get(ctx, key).Result() // another process may have been first
		}
	}
	switch {
	case err != nil:
		return c.db.OperationError(ctx, err)
	case recorded != own:
		return otherOwner(c.db.Keys.Prefix, recorded, own)
	}
	return nil
}

// otherOwner returns the error for a prefix of keys that records another owner than own.
func otherOwner(prefix, recorded, own string) error {
	return store.OtherOwner(fmt.Sprintf("Redis under the prefix %q", prefix), recorded, own)
}

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
		return otherOwner(s.db.Keys.Prefix, recorded, owner)
	}
	return nil
}
