package region_test

import (
	"context"
	"flag"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/internal/test/regionsim"
	"github.com/sluice-go/sluice/runtime/bucket"
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

// calm lets w go on after its last fault, with demand as it is then, until all has been found again and is
// where it belongs.
func calm(w regionsim.World) regionsim.World {
	w.Calm = 20 * window
	for _, f := range w.Faults {
		w.Calm = max(w.Calm, f.At+f.For+2*window)
	}
	w.Duration = w.Calm + 40*window
	return w
}

// histories is how many TestSim plays in its long form, in two runs side by side, unless -rapid.checks is
// given. 12,000 of them were once played by hand.
const histories = 1200

// plays has rapid play half of so many histories in each run, unless -rapid.checks is given. The usual form
// has fewer.
func plays(t *testing.T, all, usual int) {
	t.Helper()
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		n := longform.Histories(t, "histories", all, usual) / 2
		if testing.Short() {
			n = max(n, 5) // rapid plays a fifth of them, rounded down: without any, the test would pass
		}
		setFlag(t, checks, strconv.Itoa(n))
	}
}

// TestSim: in random worlds with faults, quotas in force never sum to more than the limit, and no region has
// less than the floor. Some windows after the last fault, every token is held by a region. A world played
// twice gives the same result.
func TestSim(t *testing.T) {
	plays(t, histories, 24)
	t.Run("read", func(t *testing.T) { simulate(t, func(*regionsim.World) {}, regionsim.Kinds()) })
	t.Run("stream", func(t *testing.T) {
		simulate(t, followed, slices.Concat(regionsim.Kinds(), regionsim.StreamKinds()))
	})
}

// followed has the syncs of w follow their tables' streams.
func followed(w *regionsim.World) { w.Stream, w.Audit = true, 15*window }

// simulate plays random worlds, in two runs side by side.
func simulate(t *testing.T, form func(*regionsim.World), kinds []regionsim.Kind) {
	t.Helper()
	t.Run("worlds", func(t *testing.T) {
		for range 2 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(t *rapid.T) {
					w := drawn(t, kinds)
					form(&w)
					r := play(t, w)
					if err := judged(r); err != nil {
						t.Fatal(err)
					}
					if w.Seed%10 == 0 && backwards(w) != r.Digest {
						t.Fatal("played again, and its buckets read in another order, it is another history")
					}
				})
			})
		}
	})
}

// setFlag sets a flag for the time of the test.
func setFlag(t *testing.T, f *flag.Flag, value string) {
	t.Helper()
	if err := f.Value.Set(value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Value.Set(f.DefValue); err != nil {
			t.Error(err)
		}
	})
}

// backwards plays w with buckets read in the opposite order, and returns the digest of what was done. It is
// the same, since a plan depends on what is known, not on the order of reading.
func backwards(w regionsim.World) uint64 {
	w.Wrap = func(_ int, t region.Table, s region.Snapshots) (region.Table, region.Snapshots) {
		return opposite{t}, s
	}
	return w.Run().Digest
}

// opposite is a table that reads its buckets in the opposite order.
type opposite struct{ region.Table }

// Each implements region.Table.
func (t opposite) Each(ctx context.Context, resource string, f func(string, *bucket.Image)) error {
	var all []func()
	err := t.Table.Each(ctx, resource, func(entity string,
		img *bucket.Image) {
		all = append(all, func() { f(entity, img) })
	})
	for _, call := range slices.Backward(all) {
		call()
	}
	return err
}
