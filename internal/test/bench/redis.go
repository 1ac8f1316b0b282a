package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// How many goroutines call on Redis at once: some, or as many as a busy gateway has.
const (
	some = 16
	lots = 128
)

// redisExperiments hold the Redis store against limiters that others wrote, each of which calls Redis once
// for each limit, and all against what Redis takes for nothing. redis-server runs on this machine, so that
// they all share its cores.
func redisExperiments(c conditions) []experiment {
	const few, many = 1, 1000
	return []experiment{
		race{"redis, 1 limit, 1000 keys, callers that share nothing", separate, one, many, some,
			0.95}.againstPeers(c),
		race{"redis, 2 limits, 1000 keys, callers that share nothing", separate, two, many, some,
			1.5}.againstPeers(c),
		race{"redis, 1 limit, 1000 keys, pipelined", together, one, many, some, 2.5}.againstPeers(c),
		race{"redis, 2 limits, 1000 keys, pipelined", together, two, many, some, 0}.againstPeers(c),
		race{"redis, 1 limit, 1 hot key, coalesced", together, one, few, some, 5}.againstPeers(c),
		race{"redis, 2 limits, 1 hot key, coalesced", together, two, few, some, 0}.againstPeers(c),
		race{"redis, 1 limit, 1000 keys, pipelined, 128 callers", together, one, many, lots, 0}.againstRate(c),
		race{"redis, 1 limit, 1 hot key, coalesced, 128 callers", together, one, few, lots, 0}.againstRate(c),
		mostOfCoalescing(c),
		ceilings(c),
		coldCallers(c),
	}
}

// limits is how many limits a call takes from.
type limits int

const (
	one limits = 1
	two limits = 2
)

// sharing is whether callers of one process share a store, and so round trips, or each has one.
type sharing bool

const (
	separate sharing = false
	together sharing = true
)

// race has goroutines call on keys in turn, by this store and by others.
type race struct {
	what    string
	who     sharing
	of      limits
	keys    int
	callers int
	faster  float64 // than redis_rate; 0 where that is only stated
}

// againstRate is the race with redis_rate.
func (t race) againstRate(c conditions) experiment {
	return experiment{
		rows: []row{t.rateRow()},
		measure: func(ctx context.Context) ([]float64, error) {
			rates, err := t.rates(ctx, c)
			if err != nil {
				return nil, err
			}
			return []float64{rates[0] / rates[1], rates[0], rates[1]}, nil
		},
	}
}

// againstPeers is the race with throttled too.
func (t race) againstPeers(c conditions) experiment {
	return experiment{
		rows: []row{t.rateRow(), {t.what + ", acquires/s vs throttled", []figure{
			{name: "times faster", format: "%.2fx"},
			{name: "its acquires per second", format: "%.0f/s theirs"},
		}}},
		measure: func(ctx context.Context) ([]float64, error) {
			rates, err := t.rates(ctx, c, throttledCallers)
			if err != nil {
				return nil, err
			}
			return []float64{rates[0] / rates[1], rates[0], rates[1], rates[0] / rates[2], rates[2]}, nil
		},
	}
}

// rateRow is the row of redis_rate.
func (t race) rateRow() row {
	want := bound{}
	if t.faster > 0 {
		want = atLeast(t.faster)
	}
	return row{t.what + ", acquires/s vs redis_rate", []figure{
		{name: "times faster", format: "%.2fx", want: want},
		{name: "acquires per second", format: "%.0f/s"},
		{name: "its acquires per second", format: "%.0f/s theirs"},
	}}
}

// rates measures how many calls per second this store does, redis_rate, and others.
func (t race) rates(
	ctx context.Context, c conditions, others ...func(redis.UniversalClient, race) ([]caller, error),
) (rates []float64, err error) {
	client, end, err := redisWorld(ctx, t.callers)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	ours, err := storeCallers(client, t)
	if err != nil {
		return nil, err
	}
	loops := [][]caller{ours, rateCallers(client, t)}
	for _, other := range others {
		theirs, err := other(client, t)
		if err != nil {
			return nil, err
		}
		loops = append(loops, theirs)
	}
	rates, _, err = alternate(ctx, c.load, loops...)
	return rates, err
}

// mostOfCoalescing is what callers of one key would reach if each round trip served them all, and they took
// no time themselves. A call ends with the reply to the first script that Redis gets after the call began.
func mostOfCoalescing(c conditions) experiment {
	t := race{"redis, 1 hot key, each round trip for all 16 callers: the most that can be", together, one, 1,
		some, 0}
	return experiment{
		rows: []row{t.rateRow()},
		measure: func(ctx context.Context) (values []float64, err error) {
			client, end, err := redisWorld(ctx, t.callers)
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, end()) }()
			alone, err := returnsOne(ctx, client, 1)
			if err != nil {
				return nil, err
			}
			rates, _, err := alternate(ctx, c.load, alone, rateCallers(client, t))
			if err != nil {
				return nil, err
			}
			most := rates[0] * float64(t.callers)
			return []float64{most / rates[1], most, rates[1]}, nil
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
			client, end, err := redisWorld(ctx, some)
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, end()) }()
			script, err := returnsOne(ctx, client, some)
			if err != nil {
				return nil, err
			}
			ping := repeated(some, func(ctx context.Context, _ int) error { return client.Ping(ctx).Err() })
			rates, _, err := alternate(ctx, c.load, ping, script)
			return rates, err
		},
	}
}
