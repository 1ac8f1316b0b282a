package prefetch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/simulated"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// TestSlowReplies has a table whose round trip takes longer than a block lives. Prefetch is of no use then,
// and costs next to nothing: a block each second. Calls do not fail for it.
func TestSlowReplies(t *testing.T) {
	play := func(prefetch time.Duration) (m *measured) {
		synctest.Test(t, func(t *testing.T) {
			engine := newEngine(t)
			def := prefetching(t, prefetch, alike(10_000, 10_000), alike(1, 1))
			var all []*process
			for range 4 {
				p := open(t, simulated.Client(engine), def)
				defer p.close(t)
				all = append(all, p)
			}
			engine.Faults().Latency(memdynamo.Constant(60 * time.Millisecond))
			m = demand{4, 400, 10 * time.Second}.offer(t, engine, all, 1)
			t.Logf("prefetch %v: %d admitted, %d denied, %d others, p50 %v, p99 %v", prefetch, m.admitted, m.denied,
				len(m.others), m.percentile(0.5), m.percentile(0.99))
		})
		return m
	}
	exact, pooled := play(0), play(100*time.Millisecond)
	t.Logf("%.3f units without prefetch, and %.3f with it", exact.units(), pooled.units())
	if pooled.units() > 1.1*exact.units() || len(pooled.others) > len(exact.others) {
		t.Errorf("%.3f units for a call, and %d failed: %v; want %.3f and %d as without prefetch", pooled.units(),
			len(pooled.others), pooled.others, exact.units(), len(exact.others))
	}
}
