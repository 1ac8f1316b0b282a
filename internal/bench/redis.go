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

	"github.com/sluice-go/sluice/internal/bench/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/redisstore"
)

// perSecond is what each limit has of the Redis experiments: nobody is refused.
const perSecond = 1_000_000

// redisCallers is how many goroutines call on Redis at once.
const redisCallers = 16

// redisExperiments hold the Redis store against limiters that others wrote, each of which calls Redis once for each limit, and
// all against what Redis takes for nothing. redis-server runs on this machine, so that they all share its cores.
func redisExperiments(c conditions) []experiment {
	const few, many = 1, 1000
	return []experiment{
		againstPeers("redis, 1 limit, 1000 keys, callers that share nothing", lonely, one, many, 0.95, c),
		againstPeers("redis, 2 limits, 1000 keys, callers that share nothing", lonely, two, many, 1.5, c),
		againstPeers("redis, 1 limit, 1000 keys, pipelined", together, one, many, 2.5, c),
		againstPeers("redis, 2 limits, 1000 keys, pipelined", together, two, many, 0, c),
		againstPeers("redis, 1 limit, 1 hot key, coalesced", together, one, few, 5, c),
		againstPeers("redis, 2 limits, 1 hot key, coalesced", together, two, few, 0, c),
		ceilings(c),
	}
}

// limits is how many limits a call takes from.
type limits int

const (
	one limits = 1
	two limits = 2
)

// company says whether callers of one process share a store, and so round trips, or each has one.
type company bool

const (
	lonely   company = false
	together company = true
)

// againstPeers has goroutines call on keys in turn, by this store and by others.
func againstPeers(what string, who company, of limits, keys int, faster float64, c conditions) experiment {
	want := bound{}
	if faster > 0 {
		want = atLeast(faster)
	}
	return experiment{
		rows: []row{
			{what + ", acquires/s vs redis_rate", []figure{
				{name: "times faster", format: "%.2fx", want: want},
				{name: "acquires per second", format: "%.0f/s"},
				{name: "its acquires per second", format: "%.0f/s theirs"},
			}},
			{what + ", acquires/s vs throttled", []figure{
				{name: "times faster", format: "%.2fx"},
				{name: "its acquires per second", format: "%.0f/s theirs"},
			}},
		},
		measure: func(ctx context.Context) (values []float64, err error) {
			client, end, err := redisWorld(ctx)
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, end()) }()
			ours, err := storeCallers(client, who, of, keys)
			if err != nil {
				return nil, err
			}
			throttled, err := throttledCallers(client, of, keys)
			if err != nil {
				return nil, err
			}
			rates, _, err := alternate(ctx, c.load, ours, rateCallers(client, of, keys), throttled)
			if err != nil {
				return nil, err
			}
			return []float64{rates[0] / rates[1], rates[0], rates[1], rates[0] / rates[2], rates[2]}, nil
		},
	}
}

// ceilings is what Redis does that does nothing.
func ceilings(c conditions) experiment {
	return experiment{
		rows: []row{{"redis, PING and EVALSHA of a script that returns 1, a round trip each", []figure{
			{name: "PING per second", format: "%.0f/s PING"},
			{name: "EVALSHA per second", format: "%.0f/s EVALSHA"},
		}}},
		measure: func(ctx context.Context) (values []float64, err error) {
			client, end, err := redisWorld(ctx)
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, end()) }()
			sha, err := client.ScriptLoad(ctx, "return 1").Result()
			if err != nil {
				return nil, err
			}
			ping := repeated(func(ctx context.Context, _ int) error { return client.Ping(ctx).Err() })
			script := repeated(func(ctx context.Context, i int) error {
				return client.EvalSha(ctx, sha, []string{keyOf(i, 1000)}).Err()
			})
			rates, _, err := alternate(ctx, c.load, ping, script)
			return rates, err
		},
	}
}

// repeated returns callers of which each has a number of its own, and after it those of all others in turn.
func repeated(call func(ctx context.Context, i int) error) []caller {
	callers := make([]caller, redisCallers)
	for n := range callers {
		i := n
		callers[n] = func(ctx context.Context) error {
			i += redisCallers
			return call(ctx, i)
		}
	}
	return callers
}

// keyOf spreads calls over keys.
func keyOf(i, keys int) string { return strconv.Itoa(i % keys) }

// storeCallers call on generated resources.
func storeCallers(client redis.UniversalClient, who company, of limits, keys int) ([]caller, error) {
	process := func() (*generated.Limiter, error) {
		return generated.New(redisstore.New(client), runtime.CallDefaults(runtime.OnUnavailable(runtime.Deny), runtime.Budget(10*time.Second)))
	}
	shared, err := process()
	if err != nil {
		return nil, err
	}
	entities := make([]generated.Project, keys)
	for i := range entities {
		entities[i] = generated.Project{ID: strconv.Itoa(i)}
	}
	callers := make([]caller, redisCallers)
	for n := range callers {
		own, i := shared, n
		if who == lonely {
			if own, err = process(); err != nil {
				return nil, err
			}
		}
		callers[n] = func(ctx context.Context) error {
			i += redisCallers
			var err error
			if of == one {
				_, err = own.Swift.Acquire(ctx, entities[i%keys], generated.SwiftCost{})
			} else {
				_, err = own.SwiftPair.Acquire(ctx, entities[i%keys], generated.SwiftPairCost{})
			}
			return err
		}
	}
	return callers, nil
}

// rateCallers call on go-redis/redis_rate.
func rateCallers(client redis.UniversalClient, of limits, keys int) []caller {
	limiter := redis_rate.NewLimiter(client)
	limit := redis_rate.PerSecond(perSecond)
	return repeated(func(ctx context.Context, i int) error {
		for n := range of {
			result, err := limiter.Allow(ctx, "rate"+strconv.Itoa(int(n))+":"+keyOf(i, keys), limit)
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

// throttledCallers call on throttled. It reads, and writes on the condition that nobody has in between: where many have, it has to
// be allowed as many tries.
func throttledCallers(client redis.UniversalClient, of limits, keys int) ([]caller, error) {
	store, err := goredisstore.NewCtx(client, "throttled:")
	if err != nil {
		return nil, err
	}
	// Its rates go by whole nanoseconds.
	limiter, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(perSecond), MaxBurst: perSecond})
	if err != nil {
		return nil, err
	}
	limiter.SetMaxCASAttemptsLimit(1000)
	return repeated(func(ctx context.Context, i int) error {
		for n := range of {
			limited, _, err := limiter.RateLimitCtx(ctx, strconv.Itoa(int(n))+":"+keyOf(i, keys), 1)
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
