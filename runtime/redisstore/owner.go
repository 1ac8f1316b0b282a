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
		return c.otherOwner(recorded, own)
	}
	return nil
}

// otherOwner returns the error for a prefix that records another owner than own.
func (s *Store) otherOwner(recorded, own string) error {
	return store.OtherOwner(fmt.Sprintf("Redis under the prefix %q", s.keys.prefix), recorded, own)
}

// CheckOwner compares the owner that is recorded under the Prefix with owner, that of the caller's
// limits.yaml. Every program that writes there on its own account calls it first. It changes nothing: the
// Check of a Limiter records the owner. It fails as Buckets does, and with a *runtime.SetupError that names
// both owners if they differ, also if owner is "". Without a record, every owner fits.
func (s *Store) CheckOwner(ctx context.Context, owner string) error {
	recorded, err := s.client.Get(ctx, s.keys.owner()).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return nil
	case err != nil:
		return s.operationError(ctx, err)
	case recorded != owner:
		return s.otherOwner(recorded, owner)
	}
	return nil
}
