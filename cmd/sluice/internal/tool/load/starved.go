package load

import (
	"math"
	"runtime/metrics"
	"time"
)

// cpuWaits counts how long goroutines of this process waited for a CPU.
type cpuWaits struct {
	counts []uint64
	bounds []float64 // seconds; one more than counts
}

// waitedForCPU returns what was counted since the process began.
func waitedForCPU() cpuWaits {
	sample := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(sample)
	h := sample[0].Value.Float64Histogram()
	return cpuWaits{h.Counts, h.Buckets}
}

// percentile returns what so many percent of the waits since before are not above.
func (w cpuWaits) percentile(before cpuWaits, percent float64) time.Duration {
	var all, sum uint64
	for i, n := range w.counts {
		all += n - before.counts[i]
	}
	for i, n := range w.counts {
		sum += n - before.counts[i]
		if n > before.counts[i] && float64(sum) >= float64(all)*percent/100 {
			bound := w.bounds[i+1]
			if math.IsInf(bound, 1) {
				bound = w.bounds[i]
			}
			return time.Duration(bound * float64(time.Second))
		}
	}
	return 0
}
