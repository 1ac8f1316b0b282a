package prefetch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/internal/test/simulated"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// BenchmarkHit has one caller whose tokens are in the pool, but for a few calls. To compare, a denial from
// memory takes about as long.
func BenchmarkHit(b *testing.B) {
	engine := newEngine(b)
	most := bucket.Per(10_000_000, time.Second).WithBurst(1_000_000_000)
	p := open(b, simulated.Client(engine), prefetching(b, time.Second, []bucket.Limit{most, most}, alike(1, 1)))
	defer p.close(b)
	entity := hot()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Acquire(b.Context(), entity, [2]int64{1, 1}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestHitAllocates has calls whose tokens are in the pool. Such a call allocates its lease, the stored id of
// its entity, and the entity as an interface.
func TestHitAllocates(t *testing.T) {
	longform.NoRace(t, "the race detector allocates")
	synctest.Test(t, func(t *testing.T) {
		engine := newEngine(t)
		p := open(t, simulated.Client(engine), prefetching(t, 5*time.Second, alike(1_000, 10_000), alike(1, 1)))
		defer p.close(t)
		entity := hot()
		warm(t, p, entity)
		n := testing.AllocsPerRun(20, func() {
			if _, err := p.Acquire(t.Context(), entity, one); err != nil {
				t.Fatal(err)
			}
		})
		if n != 3 {
			t.Errorf("%v allocations for a call, want 3", n)
		}
	})
}
