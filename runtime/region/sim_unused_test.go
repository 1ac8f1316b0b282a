package region_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/internal/test/regionsim"
	"github.com/sluice-go/sluice/runtime/region"
)

// forgetful returns what is tested, but for that books which nobody has used for four windows are closed.
func forgetful(c region.Config) (regionsim.Sync, error) {
	c.Unused = 4 * window
	return region.New(c)
}

// TestSimUnused: books are closed and begun again all the time.
func TestSimUnused(t *testing.T) {
	plays(t, 200, 24)
	rapid.Check(t, func(t *rapid.T) {
		w := drawn(t, slices.Concat(regionsim.Kinds(), regionsim.StreamKinds()))
		w.New = forgetful
		if rapid.Bool().Draw(t, "stream") {
			followed(&w)
			w.Audit = 5 * window
		}
		load, period := w.Load, window*time.Duration(rapid.IntRange(8, 16).Draw(t, "period"))
		w.Load = func(e, r int) regionsim.Load {
			l := load(e, r)
			l.Shape, l.Period = regionsim.OnOff, period
			return l
		}
		r := play(t, w)
		r.Last.Unheld -= r.Last.Unbegun // the last sample may find any of them closed
		if err := judged(r); err != nil {
			t.Fatal(err)
		}
	})
}
