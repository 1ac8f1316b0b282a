package region_test

import (
	"fmt"
	"testing"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/internal/test/regionscale"
	"github.com/sluice-go/sluice/internal/test/regionsim"
)

// steadyState plays w.
func steadyState(t testing.TB, w regionsim.World) regionscale.Steady {
	t.Helper()
	s, err := regionscale.Play(w)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSimScale writes few of the quotas of a tenth of the case that BenchmarkSim has whole, and reads none of
// its buckets: the stream says all.
func TestSimScale(t *testing.T) {
	longform.NoRace(t, "it measures how much is written")
	entities := longform.Count(t, "entities", 200, 10)
	s := steadyState(t, regionscale.World(entities, 15))
	t.Logf("%.2f %% of the quotas are written in a cycle, %v in all; they are %.1f ‰ from where demand is",
		s.Writes*100, s.Triggers, s.Distance*1000)
	if s.Writes > regionscale.MaxWrites {
		t.Errorf("a cycle writes %.2f %% of all quotas, want at most %.0f %%", s.Writes*100,
			regionscale.MaxWrites*100)
	}
	if s.Reads != 0 {
		t.Errorf("a cycle reads %.2f %% of all buckets, want none", s.Reads*100)
	}
	// the controls: what reads every bucket, or writes small changes as well, is caught
	few := min(entities, 20)
	reading := regionscale.World(few, 15)
	reading.Stream = false
	if all := steadyState(t, reading); all.Reads < 0.99 {
		t.Errorf("without the stream a cycle reads %.2f %% of all buckets", all.Reads*100)
	}
	if every := steadyState(t, regionscale.World(few, 1)); every.Writes <= regionscale.MaxWrites {
		t.Errorf("with a threshold of 1 %% a cycle writes %.2f %% of all quotas", every.Writes*100)
	}
}

// BenchmarkSim plays 2,000 entities x 10 resources in three regions: what a region writes in a cycle, by the
// threshold of drift.
func BenchmarkSim(b *testing.B) {
	for _, drift := range []int64{5, 15, 30} {
		b.Run(fmt.Sprint("drift=", drift, "%"), func(b *testing.B) {
			for b.Loop() {
				s := steadyState(b, regionscale.World(regionscale.Entities, drift))
				b.ReportMetric(s.Writes*20_000, "writes/cycle")
				b.ReportMetric(s.Reads*20_000, "buckets-read/cycle")
				b.ReportMetric(s.Distance*1000, "‰-from-target")
				if drift == 15 && s.Writes > regionscale.MaxWrites {
					b.Errorf("a cycle writes %.0f of 20,000 quotas, want at most %.0f", s.Writes*20_000,
						regionscale.MaxWrites*20_000)
				}
			}
		})
	}
}
