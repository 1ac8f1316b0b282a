package region_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/internal/test/regionsim"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/region"
)

// atMost is how many of the quotas of a region a cycle may write in the steady state: 600 of 20,000.
const atMost = 0.03

// busy is a world of 10 resources in three regions. Four in five of its loads are stable but for noise, 5 %
// either way; one in five drifts from each region to the next in an hour.
func busy(entities int, drift int64) regionsim.World {
	w := regionsim.World{Seed: 1, Names: names(3), Window: window, Floor: 5, Writers: 16, Entities: entities,
		Skew: 100 * time.Millisecond, Stream: true}
	rng := rand.New(rand.NewPCG(w.Seed, 2))
	var loads []regionsim.Load
	for r := range 10 {
		w.Resources = append(w.Resources, regionsim.Resource{
			Name: fmt.Sprint("r", r), Limits: []regionsim.Limit{{Name: "rpm", Whole: bucket.Per(1000, time.Minute)}},
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

// steady is what a world is like once quotas have followed demand.
type steady struct {
	writes   float64 // of a cycle, as a part of all quotas of its region
	reads    float64 // likewise, buckets
	distance float64 // from what demand would have, as a part of the limit
	triggers map[region.Trigger]int
}

// steadyState plays w, and measures it once quotas have followed demand.
func steadyState(t testing.TB, w regionsim.World) steady {
	t.Helper()
	// buckets that ran low while all had the floor alone are full again by then
	const from, samples = 40 * window, 15
	var s steady
	w.Duration = from + samples*window
	w.Watch = func(now regionsim.Sample) {
		if now.At <= from {
			return
		}
		s.writes += float64(now.Writes) / float64(now.Cycles*w.Entities*len(w.Resources)) / samples
		s.reads += float64(now.Buckets) / float64(now.Cycles*w.Entities*len(w.Resources)) / samples
		s.distance += now.Distance / samples
		if s.triggers == nil {
			s.triggers = map[region.Trigger]int{}
		}
		for trigger, n := range now.Triggers {
			s.triggers[trigger] += n
		}
	}
	if err := judged(w.Run()); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSimScale writes few of the quotas of a tenth of the case that BenchmarkSim has whole, and reads none of
// its buckets: the stream says all.
func TestSimScale(t *testing.T) {
	longform.NoRace(t, "it measures how much is written")
	entities := longform.Count(t, "entities", 200, 20)
	s := steadyState(t, busy(entities, 15))
	t.Logf("%.2f %% of the quotas are written in a cycle, %v in all; they are %.1f ‰ from where demand is",
		s.writes*100, s.triggers, s.distance*1000)
	if s.writes > atMost {
		t.Errorf("a cycle writes %.2f %% of all quotas, want at most %.0f %%", s.writes*100, atMost*100)
	}
	if s.reads != 0 {
		t.Errorf("a cycle reads %.2f %% of all buckets, want none", s.reads*100)
	}
	// the controls: what reads every bucket, or writes small changes as well, is caught
	reading := busy(20, 15)
	reading.Stream = false
	if all := steadyState(t, reading); all.reads < 0.99 {
		t.Errorf("without the stream a cycle reads %.2f %% of all buckets", all.reads*100)
	}
	if every := steadyState(t, busy(20, 1)); every.writes <= atMost {
		t.Errorf("with a threshold of 1 %% a cycle writes %.2f %% of all quotas", every.writes*100)
	}
}

// BenchmarkSim plays 2,000 entities x 10 resources in three regions: what a region writes in a cycle, by the
// threshold of drift.
func BenchmarkSim(b *testing.B) {
	for _, drift := range []int64{5, 15, 30} {
		b.Run(fmt.Sprint("drift=", drift, "%"), func(b *testing.B) {
			for b.Loop() {
				s := steadyState(b, busy(2000, drift))
				b.ReportMetric(s.writes*20_000, "writes/cycle")
				b.ReportMetric(s.reads*20_000, "buckets-read/cycle")
				b.ReportMetric(s.distance*1000, "‰-from-target")
				if drift == 15 && s.writes > atMost {
					b.Errorf("a cycle writes %.0f of 20,000 quotas, want at most %.0f", s.writes*20_000, atMost*20_000)
				}
			}
		})
	}
}
