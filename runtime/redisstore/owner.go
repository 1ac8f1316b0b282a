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
		return store.OtherOwner(fmt.Sprintf("Redis under the prefix %q", c.keys.prefix), recorded, own)
	}
	return nil
}
