package traffic_test

import (
	"regexp"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/internal/test/traffic"
)

// short are the rows of the usual form.
var short = regexp.MustCompile(
	`^open: 2 x 40/s, small bucket, 10 ms$|^siblings: 64, 4 x 100/s, hold 10 ms|^closed: 4 x 16 |` +
		`^slots: .* 1.5 asked for$|^pooled: 16 x 440/s$`)

// TestBars offers loads and holds their figures against the bars. In the long form it draws arrivals and
// faults twice. The race detector sees the same callers in TestScheduler, TestSimulationOfCrowds and
// TestSimulationOfCrowdsOverChains, whose oracles need no bars.
func TestBars(t *testing.T) {
	longform.NoRace(t, "it measures costs; simulations in runtime/dynamo have the same callers")
	rows := traffic.Rows()
	fast := slices.DeleteFunc(slices.Clone(rows), func(r traffic.Row) bool { return !short.MatchString(r.Name) })
	if longform.Count(t, "loads", len(rows), len(fast)) == len(fast) {
		rows = fast
	}
	draws := longform.Count[uint64](t, "draws of each random load", 2, 1)
	for _, row := range rows {
		seeds := uint64(1)
		if row.Load.Rate > 0 || row.Load.Throttled > 0 {
			seeds = draws
		}
		for row.Load.Seed = range seeds {
			t.Run(row.Name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { bars(t, row) })
			})
		}
	}
}

// bars offers a row's load once.
func bars(t *testing.T, row traffic.Row) {
	t.Helper()
	result, err := traffic.Run(t.Context(), row.Load, traffic.Sluice)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(result)
	if missed := row.Missed(result); missed != "" {
		t.Error(missed)
	}
}
