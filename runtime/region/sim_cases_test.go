package region_test

import (
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/regionsim"
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
		{"what was begun before a put that failed goes on", 16, []regionsim.Fault{
			{Kind: regionsim.NoPut, Region: 0, At: 10 * time.Second, For: 35 * time.Second, Percent: 50},
		}},
		{"a region's snapshot is lost", 2, []regionsim.Fault{
			{Kind: regionsim.Kill, Region: 1, At: 0, For: 20 * time.Second},
			{Kind: regionsim.Lose, Region: 0, At: 40 * time.Second, For: 7500 * time.Millisecond},
		}},
		{"a sync is killed twice", 7, []regionsim.Fault{
			{Kind: regionsim.Kill, Region: 0, At: 165 * time.Second, For: 47500 * time.Millisecond, Call: 6},
			{Kind: regionsim.LostPut, Region: 2, At: 5 * time.Second, For: 15 * time.Second, Percent: 20},
			{Kind: regionsim.Kill, Region: 0, At: 205 * time.Second, For: 22500 * time.Millisecond, Call: 3},
		}},
		{"a limit is lowered", 0xd3a0, []regionsim.Fault{
			{Kind: regionsim.Whole, Region: 0, At: 250 * time.Second, For: 10 * time.Second, Call: 11, Percent: 50},
			{Kind: regionsim.Whole, Region: 0, At: 0, For: 137500 * time.Millisecond, Call: 2, Percent: 20},
		}},
		{"a region that was away for too long cannot read that it is gone", 0x936, []regionsim.Fault{
			{Kind: regionsim.NoPut, Region: 0, At: 155 * time.Second, For: 12500 * time.Millisecond, Percent: 100},
			{Kind: regionsim.NoGet, Region: 1, At: 190 * time.Second, For: 170 * time.Second, Call: 1, Percent: 90},
		}},
		{"a limit is lowered before accounts begin", 0x4623, []regionsim.Fault{
			{Kind: regionsim.NoGet, Region: 2, At: 250 * time.Second, For: 5 * time.Second, Call: 10, Percent: 20},
			{Kind: regionsim.NoTable, Region: 0, At: 25 * time.Second, For: 175 * time.Second, Call: 7, Percent: 150},
			{Kind: regionsim.LostPut, Region: 0, At: 5 * time.Second, For: 72500 * time.Millisecond, Call: 11,
				Percent: 150},
			{Kind: regionsim.Whole, Region: 0, At: 60 * time.Second, For: 7500 * time.Millisecond, Call: 11,
				Percent: 20},
		}},
		{"a limit of fewer tokens than regions is raised while one is away", 0x18, []regionsim.Fault{
			{Kind: regionsim.Kill, Region: 0, At: 0, For: time.Minute, Percent: 100},
			{Kind: regionsim.Whole, Region: 0, At: time.Minute, For: 15 * time.Second, Percent: 150},
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
