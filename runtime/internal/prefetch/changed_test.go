package prefetch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/simulated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// TestChangedUnderPools has a process with blocks, which goes on calling. Another one changes its bucket's
// numbers to a tenth, by an override or by a schema of a higher revision. From a prefetch after the change
// on, no call is admitted by the old numbers.
func TestChangedUnderPools(t *testing.T) {
	const prefetch, rate = time.Second, 100
	for name, c := range map[string]struct{ overrides, reshapes bool }{
		"override": {overrides: true}, "reshape": {reshapes: true}, "control: nothing changes": {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newEngine(t)
				engine.Faults().Latency(memdynamo.Constant(2 * time.Millisecond))
				p := open(t, simulated.Client(engine), prefetching(t, prefetch, alike(10*rate, 10*rate), alike(1, 1)))
				defer p.close(t)
				calls := func(d time.Duration) (admitted int) {
					for began := time.Now(); time.Since(began) < d; sleep(2 * time.Millisecond) {
						if _, err := p.Acquire(t.Context(), hot(), one); err == nil {
							admitted++
						}
					}
					return admitted
				}
				if n := calls(2 * time.Second); n < 900 {
					t.Fatalf("%d admitted before the change", n)
				}
				def := prefetching(t, prefetch, alike(10*rate, 10*rate), alike(1, 1))
				if c.reshapes {
					def = prefetching(t, prefetch, alike(rate, rate), alike(1, 1))
					def.Numbers.Revision++
				}
				other := open(t, simulated.Client(engine), def)
				defer other.close(t)
				if c.overrides {
					lower := &runtime.Rate{Capacity: rate, Every: time.Second}
					_, err := other.config.Entity(hot()).Set(t.Context(), []*runtime.Rate{lower, lower}, "")
					if err != nil {
						t.Fatal(err)
					}
				}
				if _, err := other.Acquire(t.Context(), hot(), one); err != nil { // it reshapes the bucket
					t.Fatal(err)
				}
				calls(prefetch)
				const seconds = 2
				most, n := rate+seconds*rate+rate, calls(seconds*time.Second) // burst, refill and what was prefetched
				if lowered := n <= most; lowered != (c.overrides || c.reshapes) {
					t.Errorf("%d admitted in %d s after the change, want at most %d if it was one", n, seconds, most)
				}
			})
		})
	}
}
