package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"

	"github.com/sluice-go/sluice/internal/test/bench/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/redisstore"
)

// perSecond is what each limit has of the Redis experiments: nobody is refused.
const perSecond = 1_000_000

// returnsOne returns n callers of a script that does nothing.
func returnsOne(ctx context.Context, client redis.UniversalClient, n int) ([]caller, error) {
	sha, err := client.ScriptLoad(ctx, "return 1").Result()
	return repeated(n, func(ctx context.Context, i int) error {
		return client.EvalSha(ctx, sha, []string{keyOf(i, 1000)}).Err()
	}), err
}

// repeated returns n callers of which each has a number of its own, and after it those of all others in turn.
func repeated(n int, call func(ctx context.Context, i int) error) []caller {
	callers := make([]caller, n)
	for i := range callers {
		callers[i] = func(ctx context.Context) error {
			i += n
			return call(ctx, i)
		}
	}
	return callers
}

// keyOf spreads calls over keys.
func keyOf(i, keys int) string { return strconv.Itoa(i % keys) }

// storeCallers call on generated resources.
func storeCallers(client redis.UniversalClient, t race) ([]caller, error) {
	process := func() (*generated.Limiter, error) {
		return generated.New(redisstore.New(client), runtime.WithCallDefaults(runtime.OnUnavailable(runtime.Deny),
			runtime.Budget(10*time.Second)))
	}
	shared, err := process()
	if err != nil {
		return nil, err
	}
	entities := make([]generated.Project, t.keys)
	for i := range entities {
		entities[i] = generated.Project{ID: strconv.Itoa(i)}
	}
	callers := make([]caller, t.callers)
	for i := range callers {
		own := shared
		if t.who == separate {
			if own, err = process(); err != nil {
				return nil, err
			}
		}
		callers[i] = func(ctx context.Context) error {
			i += t.callers
			var err error
			if t.of == one {
				_, err = own.Swift.Acquire(ctx, entities[i%t.keys], generated.SwiftCost{})
			} else {
				_, err = own.SwiftPair.Acquire(ctx, entities[i%t.keys], generated.SwiftPairCost{})
			}
			return err
		}
	}
	return callers, nil
}

// rateCallers call on go-redis/redis_rate.
func rateCallers(client redis.UniversalClient, t race) []caller {
	limiter := redis_rate.NewLimiter(client)
	limit := redis_rate.PerSecond(perSecond)
	return repeated(t.callers, func(ctx context.Context, i int) error {
		for n := range t.of {
			result, err := limiter.Allow(ctx, "rate"+strconv.Itoa(int(n))+":"+keyOf(i, t.keys), limit)
			if err != nil {
				return err
			}
			if result.Allowed != 1 {
				return fmt.Errorf("redis_rate refused: %+v", result)
			}
		}
		return nil
	})
}

// throttledCallers call on throttled. It reads, and writes on the condition that nobody has in between: where
// many have, it has to be allowed as many tries.
func throttledCallers(client redis.UniversalClient, t race) ([]caller, error) {
	store, err := goredisstore.NewCtx(client, "throttled:")
	if err != nil {
		return nil, err
	}
	// Its rates go by whole nanoseconds.
	limiter, err := throttled.NewGCRARateLimiterCtx(store,
		throttled.RateQuota{MaxRate: throttled.PerSec(perSecond), MaxBurst: perSecond})
	if err != nil {
		return nil, err
	}
	limiter.SetMaxCASAttemptsLimit(1000)
	return repeated(t.callers, func(ctx context.Context, i int) error {
		for n := range t.of {
			limited, _, err := limiter.RateLimitCtx(ctx, strconv.Itoa(int(n))+":"+keyOf(i, t.keys), 1)
			if err != nil {
				return err
			}
			if limited {
				return errors.New("throttled refused")
			}
		}
		return nil
	}), nil
}
