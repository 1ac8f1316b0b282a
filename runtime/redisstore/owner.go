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
	key := c.keys.owner()
	recorded, err := c.client.Get(ctx, key).Result()
	if errors.Is(err, redis.Nil) {
		if err = c.client.SetNX(ctx, key, own, 0).Err(); err == nil {
			recorded, err = c.client.Get(ctx, key).Result() // another process may have been first
		}
	}
	switch {
	case err != nil:
		return c.operationError(ctx, err)
	case recorded != own:
		return c.keys.otherOwner(recorded, own)
	}
	return nil
}

// otherOwner returns the error for a prefix that records another owner than own.
func (k keys) otherOwner(recorded, own string) error {
	return store.OtherOwner(fmt.Sprintf("Redis under the prefix %q", k.prefix), recorded, own)
}

// CheckOwner compares the owner that is recorded under the Prefix of s with owner, that of the caller's
// limits.yaml. Every program that writes there on its own account calls it first. It changes nothing: the
// Check of a Limiter records the owner. It fails as Buckets does, and with a *runtime.SetupError that names
// both owners if they differ, also if owner is "". Without a record, every owner fits.
func CheckOwner(ctx context.Context, s *Store, owner string) error {
	recorded, err := s.client.Get(ctx, s.keys.owner()).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return nil
	case err != nil:
		return s.operationError(ctx, err)
	case recorded != owner:
		return s.keys.otherOwner(recorded, owner)
	}
	return nil
}
