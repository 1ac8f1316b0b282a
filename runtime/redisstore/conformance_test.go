package redisstore_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/test/conformance"
	"github.com/sluice-go/sluice/internal/test/redistest"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore"
)

// TestConformance runs the suite of all stores.
func TestConformance(t *testing.T) {
	conformance.Run(t, func(t testing.TB) conformance.Store {
		t.Helper()
		return conformant(redistest.New(t))
	})
}

// TestConformanceOnCluster runs it where keys are on several nodes.
func TestConformanceOnCluster(t *testing.T) {
	cluster := redistest.StartCluster(t)
	conformance.Run(t, func(t testing.TB) conformance.Store {
		t.Helper()
		store := conformant(cluster.New(t))
		store.Rooted = true
		return store
	})
}

// TestFailOver runs it where a server crashes, and another one takes its place.
func TestFailOver(t *testing.T) {
	server := redistest.StartServer(t)
	conformance.FailOver(t, conformant(server.New()), server.Restart)
}

// conformant is a store on r.
func conformant(r *redistest.Redis) conformance.Store {
	d := &decisions{}
	r.Client.AddHook(d)
	return conformance.Store{
		Store: redisstore.New(r.Client, redisstore.Prefix(r.Prefix)),
		Clock: r, Host: r, Advance: r.Advance, Flows: !r.Virtual(),
		Decided: func() int64 {
			if r.Virtual() { // nothing need have been asked
				return r.Now().UnixMilli()
			}
			return d.last.Load() + r.Aged().Milliseconds()
		},
		Available: func(b bucket.Balance, _ int64) int64 { return b.Tokens },
		Slack:     1,
		Break:     r.Break, Repair: r.Repair,
		Disturb: func() { r.Client.ScriptFlush(context.Background()) }, // as a fail-over does
	}
}

// decisions is a hook that takes note of when Redis has last run a script: its reply says that first.
type decisions struct{ last atomic.Int64 }

// DialHook implements redis.Hook.
func (*decisions) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (d *decisions) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		d.note(cmd)
		return err
	}
}

// ProcessPipelineHook implements redis.Hook.
func (d *decisions) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			d.note(cmd)
		}
		return err
	}
}

func (d *decisions) note(cmd redis.Cmder) {
	reply, ok := cmd.(interface{ Val() []int64 })
	verb := cmd.Name()
	if ok && (verb == "eval" || verb == "evalsha") && len(reply.Val()) > 0 { // else it failed
		d.last.Store(reply.Val()[0])
	}
}
