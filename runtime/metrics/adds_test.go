package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/metrics"
)

// TestAddsUp: whatever many callers do at once, each decision and each closed lease counts once, and capacity
// is what the engine bills.
func TestAddsUp(t *testing.T) {
	for name, fault := range map[string]func(*memdynamo.Faults){
		"in peace":  func(*memdynamo.Faults) {},
		"throttled": func(f *memdynamo.Faults) { f.Throttle(0.1) },
		"conflicts": func(f *memdynamo.Faults) { f.Conflict(0.1) },
	} {
		t.Run(name, func(t *testing.T) {
			engine := memdynamo.New()
			client := engine.Client()
			if _, err := operator.CreateTable(t.Context(), client, "rate_limits"); err != nil {
				t.Fatal(err)
			}
			engine.ResetConsumed()
			fault(engine.Faults())
			c := &metrics.Counters{}
			lim, err := limits.New(dynamo.New(client, "rate_limits"),
				runtime.WithObserver(metrics.Observer(c)), runtime.WithLogger(slog.New(slog.DiscardHandler)))
			if err != nil {
				t.Fatal(err)
			}
			var decided, closed, invalid atomic.Int64
			var all sync.WaitGroup
			for worker := range 8 {
				all.Go(func() {
					random := rand.New(rand.NewPCG(1, uint64(worker)))
					for range 60 {
						call(t.Context(), lim, random, &decided, &closed, &invalid)
					}
				})
			}
			all.Wait()
			if err := lim.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := c.Snapshot()
			settled := got.Sum(metrics.Settlements) - got.Sum(metrics.Settlements, metrics.Outcome, "invalid")
			for what, pair := range map[string][2]float64{
				"decisions":   {got.Sum(metrics.Decisions), float64(decided.Load())},
				"settlements": {settled, float64(closed.Load())},
				"invalid":     {got.Sum(metrics.Settlements, metrics.Outcome, "invalid"), float64(invalid.Load())},
				"write units": {got.Sum(metrics.StoreCapacity, metrics.Capacity, "write"),
					engine.Consumed().Total().Total().Write},
				"read units": {got.Sum(metrics.StoreCapacity, metrics.Capacity, "read"),
					engine.Consumed().Total().Total().Read},
			} {
				if pair[0] != pair[1] {
					t.Errorf("%v %s, want %v", pair[0], what, pair[1])
				}
			}
		})
	}
}

// call makes one of all kinds of calls, and counts what must be reported.
func call(ctx context.Context, lim *limits.Limiter, random *rand.Rand, decided, closed,
	invalid *atomic.Int64) {
	user := limits.User{ID: fmt.Sprint(random.IntN(4)), Project: limits.Project{ID: fmt.Sprint(random.IntN(2))}}
	cost := limits.GPT4Cost{TPM: int64(random.IntN(3000))}
	opts := []runtime.CallOption{runtime.LazySettle(random.IntN(2) == 0), runtime.OnUnavailable(runtime.Deny)}
	if random.IntN(4) == 0 {
		opts = append(opts, runtime.Shadow(true))
	}
	finish := func(lease *limits.GPT4Lease) {
		if lease == nil {
			return
		}
		switch random.IntN(5) {
		case 0:
			invalid.Add(1)
			_ = lease.Settle(ctx, limits.GPT4Cost{TPM: -1})
			fallthrough
		case 1:
			lease.Release(ctx)
			lease.Release(ctx)
		case 2:
			return
		default:
			_ = lease.Settle(ctx, limits.GPT4Cost{TPM: int64(random.IntN(4000))})
			lease.Release(ctx)
		}
		closed.Add(1)
	}
	switch random.IntN(5) {
	case 0:
		decided.Add(1)
		lease, _ := lim.GPT4.Acquire(ctx, user, cost, opts...)
		finish(lease)
	case 1:
		decided.Add(1)
		lease, _ := lim.GPT4.Wait(ctx, user, cost, append(opts, runtime.MaxWait(time.Millisecond))...)
		finish(lease)
	case 2:
		decided.Add(1)
		if err := lim.GPT4.Do(ctx, user, cost, func(context.Context, *limits.GPT4Lease) error { return errStop },
			opts...); errors.Is(err, errStop) {
			closed.Add(1)
		}
	case 3:
		decided.Add(2)
		one, other := lim.GPT4.With(opts...).Claim(user, cost),
			lim.Embeddings.Claim(user.Project, limits.EmbeddingsCost{RPS: int64(random.IntN(3))})
		if lim.AcquireAll(ctx, one, other) == nil {
			finish(one.Lease())
		}
	default:
		decided.Add(1)
		left, cancel := context.WithCancel(ctx)
		cancel()
		_, _ = lim.GPT4.Acquire(left, user, cost, opts...)
	}
}

var errStop = errors.New("stop")
