package region_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/internal/test/regionsim"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/region"
	"github.com/sluice-go/sluice/runtime/store"
)

// slow is a world of a new entity that asks for far more than refills. It has 3,000 tokens an hour or a day.
// Within a test next to nothing refills, so the burst is what is served.
func slow(seed uint64, faults int) regionsim.World {
	rng := rand.New(rand.NewPCG(seed, 2))
	w := regionsim.World{
		Seed: seed, Names: names(2 + rng.IntN(3)), Window: window, Floor: 5, Entities: 1, Books: true, Settles: 2,
		Duration: 60 * window, Skew: []time.Duration{0, time.Second}[rng.IntN(2)], New: newSync,
	}
	per := []time.Duration{time.Hour, 24 * time.Hour}[rng.IntN(2)]
	w.Resources = []regionsim.Resource{{Name: "r", Limits: []regionsim.Limit{
		{Name: "rpm", Whole: bucket.Per(3000, per)},
	}}}
	l := load(rng, len(w.Names))
	l.Total *= int64(per / time.Minute)
	w.Load = func(int, int) regionsim.Load { return l }
	kinds := slices.DeleteFunc(regionsim.Kinds(), func(k regionsim.Kind) bool {
		return k == regionsim.Operator || k == regionsim.Whole
	})
	w.Faults = regionsim.RandomFaults(rng, faults, len(w.Names), window, w.Duration, kinds...)
	return w
}

// form returns w as every second seed plays it: with syncs that follow their tables' streams.
func form(seed uint64, w regionsim.World) regionsim.World {
	if seed%2 == 1 {
		followed(&w)
		rng := rand.New(rand.NewPCG(seed, 3))
		w.Faults = append(w.Faults, regionsim.RandomFaults(rng, int(seed%4), len(w.Names), window, w.Duration,
			regionsim.StreamKinds()...)...)
	}
	return w
}

// TestSimFirstBurst: regions together never serve more than one bucket would, whatever faults there are. The
// control is TestSimFirstBurstControls.
func TestSimFirstBurst(t *testing.T) {
	t.Parallel()
	worlds, granted := longform.Histories[uint64](t, "worlds of new entities", 400, 16), 0
	for seed := range worlds {
		r := play(t, form(seed, slow(seed, int(seed%5))))
		if len(r.Violations) > 0 {
			t.Fatalf("seed %d: %v", seed, r.Violations[0])
		}
		if r.Granted > 0 {
			granted++
		}
	}
	if t.Logf("granted in %d of %d worlds", granted, worlds); uint64(granted) < worlds/3 {
		t.Errorf("granted in %d of %d worlds, want a third", granted, worlds)
	}
}

// TestSimForgotten: an entity is not new again if all regions lose their books, nor if one does.
func TestSimForgotten(t *testing.T) {
	worlds := longform.Histories[uint64](t, "worlds for each number of regions", 40, 8)
	for _, lost := range []int{1, 4} {
		for seed := range worlds {
			w := form(seed, restless(seed))
			for r := range min(lost, len(w.Names)) {
				w.Faults = append(w.Faults, regionsim.Fault{Kind: regionsim.Lose, Region: r, At: 11 * window, For: 1})
			}
			if r := play(t, w); len(r.Violations) > 0 {
				t.Fatalf("%d regions lose their books, seed %d: %v", lost, seed, r.Violations[0])
			}
		}
	}
}

// TestSimEvicted: what a region has used before it was evicted is not granted to the others.
func TestSimEvicted(t *testing.T) {
	for seed := range longform.Histories[uint64](t, "worlds", 40, 20) {
		w := form(seed, restless(seed))
		for r := range len(w.Names) - 1 {
			w.Faults = append(w.Faults, regionsim.Fault{Kind: regionsim.Kill, Region: r,
				At: window * time.Duration(4+seed%4), For: 50 * window})
		}
		if r := play(t, w); len(r.Violations) > 0 {
			t.Fatalf("seed %d: %v", seed, r.Violations[0])
		}
	}
}

// TestSimFirstBurstControls: a sync that grants each raise, or grants the same again, is caught in
// half of the worlds at the least.
func TestSimFirstBurstControls(t *testing.T) {
	longform.NoRace(t, "a control, whose broken variant ships nowhere")
	t.Parallel()
	worlds := longform.Count[uint64](t, "worlds for each broken sync", 20, 8)
	for name, breaks := range map[string]regionsim.Wrap{
		"each raise is granted": func(_ int, t region.Table, s region.Snapshots) (region.Table, region.Snapshots) {
			return &generous{granting: granting{t, false}}, s
		},
		"granted in each cycle": func(_ int, t region.Table, s region.Snapshots) (region.Table, region.Snapshots) {
			return granting{t, true}, s
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caught := uint64(0)
			for seed := range worlds {
				w := restless(seed)
				if r := w.Run(); len(r.Violations) > 0 {
					t.Fatalf("seed %d, nothing broken: %v", seed, r.Violations[0])
				}
				w.Wrap = breaks
				if v := w.Run().Violations; len(v) > 0 && strings.Contains(v[0].What, "regions have served") {
					if caught++; caught == 1 {
						t.Logf("seed %d: %v", seed, v[0])
					}
				}
			}
			if t.Logf("caught in %d of %d worlds", caught, worlds); caught < worlds/2 {
				t.Errorf("caught in %d of %d worlds, want half", caught, worlds)
			}
		})
	}
}

// restless is slow, with demand that moves to another region every five windows, and takes all there is.
func restless(seed uint64) regionsim.World {
	w := slow(seed, 0)
	l := w.Load(0, 0)
	l.Shape, l.Period, l.Total = regionsim.Bursts, 5*window, 5_000_000
	w.Load = func(int, int) regionsim.Load { return l }
	return w
}

// granting grants nothing, or the same in each cycle.
type granting struct {
	region.Table
	again bool
}

// Grant implements region.Table.
func (g granting) Grant(
	ctx context.Context, spec *store.Spec, entity string, limits []bucket.Limit, tokens []int64,
) (bool, error) {
	if !g.again {
		return false, nil
	}
	_, err := g.Table.Grant(ctx, spec, entity, limits, tokens)
	return false, err
}

// generous grants what each raise adds to the burst of the only bucket, once that has taken it on.
type generous struct {
	granting
	spec   *store.Spec
	limits []bucket.Limit
	tokens []int64
}

// PutQuota implements region.Table.
func (g *generous) PutQuota(
	ctx context.Context, spec *store.Spec, quota store.Stored,
) (store.Revision, error) {
	before := g.limits
	if before == nil {
		before = spec.Regions.KeepsOf(spec.Kinds[0].Limits)
	}
	if g.spec, g.limits = spec, nil; g.tokens == nil {
		g.tokens = make([]int64, len(before))
	}
	for i, l := range quota.Limits {
		g.limits = append(g.limits, *l)
		g.tokens[i] = max(0, g.tokens[i]+l.Burst-before[i].Burst)
	}
	return g.Table.PutQuota(ctx, spec, quota)
}

// PutHeartbeat implements region.Table.
func (g *generous) PutHeartbeat(ctx context.Context, h store.Heartbeat) error {
	if g.tokens != nil {
		if ok, err := g.Table.Grant(ctx, g.spec, "user-1", g.limits, g.tokens); ok || err != nil {
			clear(g.tokens)
		}
	}
	return g.Table.PutHeartbeat(ctx, h)
}

// TestFirstBurst holds the figures of docs/regions.md: of 3,000 tokens an hour of three regions, what a new
// entity is served in the first 80 s, with grants and without.
func TestFirstBurst(t *testing.T) {
	served := func(wrap regionsim.Wrap) float64 {
		w := slow(1, 0)
		w.Names, w.Duration, w.Settles, w.Skew, w.Wrap = names(3), 8*window, 0, 0, wrap
		w.Resources[0].Limits[0].Whole = bucket.Per(3000, time.Hour)
		w.Load = func(int, int) regionsim.Load {
			return regionsim.Load{Shape: regionsim.Stable, Total: 150_000, Weights: []int64{6, 3, 1}}
		}
		return play(t, w).Last.Served
	}
	with := served(nil)
	without := served(func(_ int, t region.Table, s region.Snapshots) (region.Table, region.Snapshots) {
		return granting{t, false}, s
	})
	if with < 2800 || with > 3067 || without > 500 {
		t.Errorf("%.0f tokens are served with grants and %.0f without, want 2,800 at least, and at most 500",
			with, without)
	}
	t.Logf("%.0f tokens with grants, %.0f without", with, without)
}
