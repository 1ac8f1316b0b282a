package prefetch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/simulated"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// TestMoreInWindows has a lease of a windowed limit that takes more, from the table or from a block, in the
// window of its acquire or in the next one. However it ends, each window gets back what was taken from it.
func TestMoreInWindows(t *testing.T) {
	const each = 40 // tokens of the acquire, and of the More
	for name, c := range map[string]struct {
		direct bool  // the pool is empty when the lease is acquired
		pooled bool  // it has tokens for the More
		next   bool  // the More is in the next window
		actual int64 // -1 releases
		open   int64 // what the lease has of the open window in the end
	}{
		"both direct, settled at less":          {direct: true, actual: 50, open: 50},
		"both direct, released":                 {direct: true, actual: -1},
		"both direct, settled above":            {direct: true, actual: 90, open: 90},
		"direct and pooled, released":           {direct: true, pooled: true, actual: -1},
		"direct and pooled, settled at less":    {direct: true, pooled: true, actual: 50, open: 50},
		"direct and pooled, settled above":      {direct: true, pooled: true, actual: 9_000, open: 9_000},
		"direct, and pooled in the next window": {direct: true, pooled: true, next: true, actual: -1},
		"direct, and a part pooled in the next": {direct: true, pooled: true, next: true, actual: 60, open: 20},
		"pooled in two windows, released":       {pooled: true, next: true, actual: -1},
		"pooled in two windows, settled above":  {pooled: true, next: true, actual: 9_000, open: 8_960},
		"direct in two windows":                 {direct: true, next: true, actual: -1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newEngine(t)
				p := open(t, simulated.Client(engine), windowedBy(t, 10_000))
				used := [2]int64{} // by window
				at := 0
				warmUp := func() {
					for range 50 {
						if _, err := p.Acquire(t.Context(), hot(), [2]int64{1, each}); err != nil {
							t.Fatal(err)
						}
						used[at] += each
						sleep(10 * time.Millisecond)
					}
					synctest.Wait()
				}
				if !c.direct {
					warmUp()
				}
				lease, err := p.Acquire(t.Context(), hot(), [2]int64{1, each})
				if err != nil {
					t.Fatal(err)
				}
				if c.next {
					sleep(window)
					at = 1
				}
				if c.pooled {
					warmUp()
				}
				if err := lease.More(t.Context(), [2]int64{1, each}); err != nil {
					t.Fatal(err)
				}
				if c.actual < 0 {
					lease.Release(t.Context())
				} else if err := lease.Settle(t.Context(), [2]int64{1, c.actual}); err != nil {
					t.Fatal(err)
				}
				p.close(t)
				total := used[0] + used[1] + max(0, c.actual)
				if charged := stored(t, engine, "project-hot", "tpm_tc"); charged != total*bucket.Milli {
					t.Errorf("%d charged, want %d", charged/bucket.Milli, total)
				}
				taken := 10_000 - stored(t, engine, "project-hot", "tpm_tk")/bucket.Milli
				if want := used[at] + c.open; taken != want {
					t.Errorf("%d are taken from the open window, want %d", taken, want)
				}
			})
		})
	}
}
