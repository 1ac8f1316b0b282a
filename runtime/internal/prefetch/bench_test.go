package prefetch_test

import (
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// BenchmarkHit has one caller whose tokens are in the pool, but for a few calls. To compare, a denial from
// memory takes about as long.
func BenchmarkHit(b *testing.B) {
	engine := newEngine(b)
	most := bucket.Per(10_000_000, time.Second).WithBurst(1_000_000_000)
	p := open(b, engine.Client(), prefetching(b, time.Second, []bucket.Limit{most, most}, alike(1, 1)))
	defer p.close(b)
	entity := hot()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Acquire(b.Context(), entity, [2]int64{1, 1}); err != nil {
			b.Fatal(err)
		}
	}
}
