package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/test/bench/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/redisstore"
	"github.com/sluice-go/sluice/runtime/store"
)

// coldCallers has many goroutines of a process call at once for a user and its project, of whose overrides
// the process knows nothing. Each of the two buckets has those of its entity and those of its kind.
func coldCallers(c conditions) experiment {
	const callers = 200
	return experiment{
		rows: []row{{fmt.Sprintf("redis, %d cold callers of one entity: HGETALLs", callers), []figure{
			{name: "HGETALLs", format: "%.0f HGETALLs", want: atMost(4)},
			{name: "pipelines", format: "%.0f pipelines", want: atMost(1)},
		}}},
		measure: func(ctx context.Context) (values []float64, err error) {
			client, end, err := redisWorld(ctx, callers)
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, end()) }()
			reads := &distantReads{oneWay: c.oneWay}
			client.AddHook(reads)
			process, err := generated.New(redisstore.New(client), runtime.WithCallDefaults(
				runtime.OnUnavailable(runtime.Deny), runtime.Budget(10*store.DefaultBudget)))
			if err != nil {
				return nil, err
			}
			var all tally
			var running sync.WaitGroup
			who := generated.User{ID: "1", Project: generated.Project{ID: "1"}}
			for range callers {
				running.Go(func() {
					_, err := process.Shared.Acquire(ctx, who, generated.SharedCost{})
					all.add(outcome{}, err)
				})
			}
			running.Wait()
			return []float64{float64(reads.reads.Load()), float64(reads.pipelines.Load())},
				errors.Join(all.err, process.Close(ctx))
		},
	}
}

// distantReads is a hook that counts reads of overrides, which travel for oneWay, and so do their replies.
type distantReads struct {
	oneWay           time.Duration
	reads, pipelines atomic.Int64
}

// DialHook implements redis.Hook.
func (*distantReads) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook implements redis.Hook.
func (*distantReads) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (d *distantReads) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		n := int64(0)
		for _, cmd := range cmds {
			if cmd.Name() == "hgetall" {
				n++
			}
		}
		if n == 0 {
			return next(ctx, cmds)
		}
		d.reads.Add(n)
		d.pipelines.Add(1)
		time.Sleep(d.oneWay)
		err := next(ctx, cmds)
		time.Sleep(d.oneWay)
		return err
	}
}
