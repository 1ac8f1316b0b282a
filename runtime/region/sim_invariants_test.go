package region_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/internal/regionsim"
	"github.com/sluice-go/sluice/runtime/region"
)

// newSync returns what is tested.
func newSync(c region.Config) (regionsim.Sync, error) { return region.New(c) }

// drawn is a world with faults that rapid draws, so that it finds the fewest that do.
func drawn(t *rapid.T, kinds []regionsim.Kind) regionsim.World {
	w := small(rapid.Uint64Range(1, 1<<20).Draw(t, "seed"), func(*regionsim.World) {})
	w.New = newSync
	w.Faults = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) regionsim.Fault {
		f := regionsim.Fault{
			Kind:    rapid.SampledFrom(kinds).Draw(t, "kind"),
			Region:  rapid.IntRange(0, len(w.Names)-1).Draw(t, "region"),
			Percent: rapid.SampledFrom([]int{100, 50, 20, 150, 90}).Draw(t, "percent"),
			Call:    rapid.IntRange(0, 14).Draw(t, "call"),
		}
		f.At = window / 2 * time.Duration(rapid.IntRange(0, 50).Draw(t, "at"))
		f.For = window / 4 * time.Duration(rapid.OneOf(rapid.IntRange(1, 12), rapid.IntRange(1, 70)).Draw(t, "for"))
		return f
	}), 0, 6).Draw(t, "faults")
	return calm(w)
}

// calm lets w go on after its last fault, with demand as it is then, until all has been found again and is where it belongs.
func calm(w regionsim.World) regionsim.World {
	w.Calm = 20 * window
	for _, f := range w.Faults {
		w.Calm = max(w.Calm, f.At+f.For+2*window)
	}
	w.Duration = w.Calm + 40*window
	return w
}

// TestSim: in random worlds with faults, shares in force never sum to more than the limit, and nobody has less than the floor.
func TestSim(t *testing.T) {
	for range 2 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				w := drawn(t, regionsim.Kinds())
				r := play(t, w)
				if len(r.Violations) > 0 {
					t.Fatal(r.Violations[0])
				}
				if math.Abs(r.Last.Unheld) > 1e-9 {
					t.Fatalf("long after the last fault %.6f of all is in nobody's hands", r.Last.Unheld)
				}
			})
		})
	}
}
