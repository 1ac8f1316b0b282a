package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-go/sluice/internal/test/regionsim"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/region"
)

// worldSettings are the flags that say what is simulated.
type worldSettings struct {
	regions, entities, resources int
	shape                        regionsim.Shape
	faults, windows              int
	seed                         uint64
}

// Settings that every simulated world has.
const (
	window = 10 * time.Second
	floor  = 5               // percent, of each region
	whole  = 1000            // G: tokens a minute of every limit, in all regions together
	period = 30 * window     // of demand that changes
	skew   = time.Second / 4 // clocks are up to so much off, either way
)

// mixed is four in five buckets whose demand is stable, and one whose demand drifts from region to region in
// an hour.
const mixed regionsim.Shape = "mixed"

// allNames are of as many regions as there can be. They begin with different letters, which bars in a
// terminal are made of.
func allNames() []string { return []string{"eu", "us", "ap", "sa", "ca", "me", "il", "jp"} }

// names are the regions'.
func (s worldSettings) names() []string { return slices.Sorted(slices.Values(allNames()[:s.regions])) }

// quotas is how many quotas each region has.
func (s worldSettings) quotas() int { return s.entities * s.resources }

// world is what is simulated. The same settings give the same world.
func (s worldSettings) world() regionsim.World {
	rng := rand.New(rand.NewPCG(s.seed, 1))
	loads := make([]regionsim.Load, s.quotas())
	for i := range loads {
		loads[i] = s.load(i, rng)
	}
	w := regionsim.World{
		Seed: s.seed, Names: s.names(), Window: window, Floor: floor, Entities: s.entities, Skew: skew,
		Load:     func(entity, resource int) regionsim.Load { return loads[resource*s.entities+entity] },
		Duration: window * time.Duration(s.windows),
		New:      func(c region.Config) (regionsim.Sync, error) { return region.New(c) },
	}
	for r := range s.resources {
		limit := regionsim.Limit{Name: "rpm", Whole: bucket.Per(whole, time.Minute)}
		w.Resources = append(w.Resources, regionsim.Resource{Name: fmt.Sprint("model-", r+1),
			Limits: []regionsim.Limit{limit}})
	}
	kinds := slices.DeleteFunc(regionsim.Kinds(), func(k regionsim.Kind) bool {
		// those that change limits would change G
		return k == regionsim.Operator || k == regionsim.Whole
	})
	w.Faults = regionsim.RandomFaults(rng, s.faults, s.regions, window, w.Duration, kinds...)
	return w
}

// load is what is asked of the i-th bucket: between 30 and 90 % of what refills, and 5 % more or less in each
// window. The first one's demand comes and goes as if a day took minutes, in a mixed world too, so that there
// is something to see.
func (s worldSettings) load(i int, rng *rand.Rand) regionsim.Load {
	l := regionsim.Load{Shape: s.shape, Total: 300 + rng.Int64N(601), Period: period, Noise: 50}
	if s.shape == mixed {
		switch {
		case i == 0:
			l.Shape = regionsim.Sinus
		case i%5 == 0:
			l.Shape, l.Period = regionsim.Drift, time.Hour
		default:
			l.Shape = regionsim.Stable
		}
	}
	for range s.regions {
		l.Weights = append(l.Weights, 1+rng.Int64N(9))
	}
	return l
}
