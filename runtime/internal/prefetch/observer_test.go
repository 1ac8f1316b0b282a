package prefetch_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/metrics"
)

// holder observes one process, and counts the tokens of rpm that it holds. They were taken for calls to come,
// and neither given back nor had by a call, which costs one.
type holder struct {
	metrics.Counters
	mu sync.Mutex
}

// held returns how many tokens the process holds.
func (h *holder) held() float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.Snapshot()
	return now.Sum(metrics.PrefetchTaken, metrics.LimitName, "rpm") -
		now.Sum(metrics.PrefetchReturned, metrics.LimitName, "rpm") - now.Sum(metrics.PrefetchAdmitted)
}

// Measure implements metrics.Sink.
func (h *holder) Measure(ctx context.Context, m *metrics.Metric, value float64, values metrics.Values) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Counters.Measure(ctx, m, value, values)
}

// TestObserved adds up what an observer got: tokens that were taken were given back or admitted, and in
// between they are what Peek shows.
func TestObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, h := newEngine(t), &holder{}
		limits := []bucket.Limit{bucket.Per(10_000, time.Hour), bucket.Per(10_000, time.Hour)}
		p := open(t, engine.Client(), prefetching(t, life, limits, limits),
			runtime.WithObserver(metrics.Observer(h)))
		warm(t, p, hot())
		found, err := p.Peek(t.Context(), hot())
		if err != nil {
			t.Fatal(err)
		}
		if held := h.held(); held < 1 || held < float64(found.Buckets[0].Prefetched[0]) {
			t.Errorf("%v tokens are held, and Peek shows %d", held, found.Buckets[0].Prefetched[0])
		}
		p.close(t)
		now := h.Snapshot()
		taken, returned, admitted := now.Sum(metrics.PrefetchTaken, metrics.LimitName, "tpm"),
			now.Sum(metrics.PrefetchReturned, metrics.LimitName, "tpm"),
			now.Sum(metrics.PrefetchAdmitted, metrics.Resource, "gpt-4", metrics.EntityKind, "project")
		if held := h.held(); held != 0 || admitted < 50 || returned == 0 || taken != admitted+returned {
			t.Errorf("%v held: %v taken, %v admitted, %v returned", held, taken, admitted, returned)
		}
	})
}
