package load

import (
	"math"
	"testing"
	"time"
)

// TestCPUWaits: percentiles are of what was counted in between.
func TestCPUWaits(t *testing.T) {
	bounds := []float64{0, 0.001, 0.01, 0.1, math.Inf(1)}
	before := cpuWaits{[]uint64{1000, 0, 1000, 0}, bounds}
	for _, test := range []struct {
		counts  []uint64
		percent float64
		want    time.Duration
	}{
		{[]uint64{1000, 0, 1000, 0}, 99, 0},
		{[]uint64{1099, 1, 1000, 0}, 99, time.Millisecond},
		{[]uint64{1098, 2, 1000, 0}, 99, 10 * time.Millisecond},
		{[]uint64{1050, 49, 1000, 1}, 99, 10 * time.Millisecond},
		{[]uint64{1000, 0, 1000, 1}, 99, 100 * time.Millisecond},
	} {
		if got := (cpuWaits{test.counts, bounds}).percentile(before, test.percent); got != test.want {
			t.Errorf("%v: %v, want %v", test.counts, got, test.want)
		}
	}
	if now := waitedForCPU(); len(now.bounds) != len(now.counts)+1 {
		t.Errorf("%d bounds of %d counts", len(now.bounds), len(now.counts))
	}
}
