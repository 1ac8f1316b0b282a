package regionscale

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sluice-go/sluice/internal/test/regionsim"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/region"
)

// MaxWrites is the part of a region's quotas that a cycle may write in the steady state: 600 of 20,000.
const MaxWrites = 0.03

// World returns a world of so many entities, whose syncs write a quota that differs by more than drift
// percent. Four in five of its loads are stable except for noise, 5 % either way. One in five moves from each
// region to the next in an hour.
func World(entities int, drift int64) regionsim.World {
	w := regionsim.World{Seed: 1, Names: names(), Window: Window, Floor: floor, Writers: 16, Entities: entities,
		Skew: 100 * time.Millisecond, Stream: true}
	rng := rand.New(rand.NewPCG(w.Seed, 2))
	var loads []regionsim.Load
	for r := range Resources {
		w.Resources = append(w.Resources, regionsim.Resource{
			Name: fmt.Sprint("r", r), Limits: []regionsim.Limit{{Name: "rpm", Whole: bucket.Per(whole, time.Minute)}},
		})
		for e := range entities {
			l := regionsim.Load{Shape: regionsim.Stable, Total: 300 + rng.Int64N(600), Period: time.Hour, Noise: 50}
			if (e+r)%5 == 0 {
				l.Shape = regionsim.Drift
			}
			for range w.Names {
				l.Weights = append(l.Weights, 1+rng.Int64N(9))
			}
			loads = append(loads, l)
		}
	}
	w.Load = func(entity, resource int) regionsim.Load { return loads[resource*entities+entity] }
	w.New = func(c region.Config) (regionsim.Sync, error) {
		c.Drift = drift
		return region.New(c)
	}
	return w
}

// Steady is what a world is like once quotas have followed demand.
type Steady struct {
	Writes   float64 // quotas written in a cycle, as a part of all quotas of its region
	Reads    float64 // buckets read in a cycle, likewise
	Distance float64 // of quotas from what demand asks for, as a part of the limit
	Triggers map[region.Trigger]int
}

// Play plays w, and measures it once quotas have followed demand. It fails if more than a limit was ever in
// force.
func Play(w regionsim.World) (Steady, error) {
	// buckets that ran low while all regions had only the floor are full again by then
	const from, samples = 40 * Window, 15
	s := Steady{Triggers: map[region.Trigger]int{}}
	w.Duration = from + samples*Window
	w.Watch = func(now regionsim.Sample) {
		if now.At <= from {
			return
		}
		quotas := float64(now.Cycles * w.Entities * len(w.Resources))
		s.Writes += float64(now.Writes) / quotas / samples
		s.Reads += float64(now.Buckets) / quotas / samples
		s.Distance += now.Distance / samples
		for trigger, n := range now.Triggers {
			s.Triggers[trigger] += n
		}
	}
	if r := w.Run(); len(r.Violations) > 0 {
		return Steady{}, errors.New(r.Violations[0].String())
	}
	return s, nil
}
