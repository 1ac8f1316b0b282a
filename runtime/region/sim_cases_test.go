package region_test

import (
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/regionsim"
)

// TestSimCases plays what once went wrong.
func TestSimCases(t *testing.T) {
	for _, test := range []struct {
		name   string
		seed   uint64
		faults []regionsim.Fault
	}{
		{"a region returns before it was published that it is gone", 3, []regionsim.Fault{
			{Kind: regionsim.NoPut, Region: 0, At: 165 * time.Second, For: 72 * time.Second, Percent: 100},
			{Kind: regionsim.Stall, Region: 1, At: 90 * time.Second, For: 132 * time.Second, Call: 4},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := small(test.seed, func(w *regionsim.World) { w.New, w.Faults = newSync, test.faults })
			if r := play(t, calm(w)); len(r.Violations) > 0 {
				t.Error(r.Violations[0])
			}
		})
	}
}
