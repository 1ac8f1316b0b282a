package prefetch_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/simulated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/metrics"
	"github.com/sluice-go/sluice/runtime/store"
)

// holder observes one process, and counts the millitokens of rpm that it holds. They were taken for calls to
// come, and neither given back nor had by a call, which costs a token.
type holder struct{ held atomic.Int64 }

// observer returns an observer that counts.
func (h *holder) observer() *runtime.Observer {
	return &runtime.Observer{
		Prefetched: func(_ context.Context, e runtime.Event) {
			switch {
			case e.Limit != "rpm":
			case e.Operation == store.OperationTake:
				h.held.Add(e.Millitokens)
			case e.Operation == store.OperationReturn:
				h.held.Add(-e.Millitokens)
			}
		},
		Acquired: func(_ context.Context, e runtime.Event) {
			if e.Pooled {
				h.held.Add(-bucket.Milli)
			}
		},
	}
}

// TestObserved adds up what an observer got: tokens that were taken were given back or admitted, and in
// between they are what Peek shows.
func TestObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, h, counters := newEngine(t), &holder{}, &metrics.Counters{}
		limits := []bucket.Limit{bucket.Per(10_000, time.Hour), bucket.Per(10_000, time.Hour)}
		p := open(t, simulated.Client(engine), prefetching(t, life, limits, limits),
			runtime.WithObserver(runtime.Observers(h.observer(), metrics.Observer(counters))))
		warm(t, p, hot())
		found, err := p.Peek(t.Context(), hot())
		if err != nil {
			t.Fatal(err)
		}
		if held := h.held.Load() / bucket.Milli; held < 1 || held < found.Buckets[0].Prefetched[0] {
			t.Errorf("%d tokens are held, and Peek shows %d", held, found.Buckets[0].Prefetched[0])
		}
		p.close(t)
		now := counters.Snapshot()
		taken, returned, admitted := now.Sum(metrics.PrefetchTaken, metrics.LimitName, "tpm"),
			now.Sum(metrics.PrefetchReturned, metrics.LimitName, "tpm"),
			now.Sum(metrics.PrefetchAdmitted, metrics.Resource, "gpt-4", metrics.EntityKind, "project")
		if held := h.held.Load(); held != 0 || admitted < 50 || returned == 0 || taken != admitted+returned {
			t.Errorf("%v held: %v taken, %v admitted, %v returned", held, taken, admitted, returned)
		}
	})
}
