package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"time"
)

// slice is how long one of two contestants is timed before it is the other's turn: short beside the phases of
// a busy machine.
const slice = 20 * time.Millisecond

// inTurns calls a and b in turns, for d in all. It returns the medians of how many times b's CPU time a takes
// per call, and of b's, in nanoseconds.
//
// CPU time is that of all threads, and does not pass while other programs have the CPU. A garbage collection
// ends each slice and is part of it, and there is none besides: each contestant pays for its own garbage, and
// for no other.
func inTurns(d time.Duration, a, b func()) (times, perB float64) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	callsA, callsB := callsWithin(slice, a), callsWithin(slice, b)
	if callsA < 2*callsB && callsB < 2*callsA {
		callsA = callsB // so that what each collection takes, whatever there is, weighs the same
	}
	var ratios, all []float64
	for began := time.Now(); len(ratios) == 0 || time.Since(began) < d; {
		a, b := perCall(callsA, a), perCall(callsB, b)
		ratios, all = append(ratios, a/b), append(all, b)
	}
	return median(ratios), median(all)
}

// perCall returns the CPU time of f, in nanoseconds, with the collection of what it leaves behind.
func perCall(calls int, f func()) float64 {
	before := cpuTime()
	for range calls {
		f()
	}
	runtime.GC()
	return float64(cpuTime()-before) / float64(calls)
}

// alone returns the median of f's CPU time per call, in nanoseconds, as inTurns does.
func alone(d time.Duration, f func()) float64 {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	calls := callsWithin(slice, f)
	var all []float64
	for began := time.Now(); len(all) == 0 || time.Since(began) < d; {
		all = append(all, perCall(calls, f))
	}
	return median(all)
}

// callsWithin returns about how many calls of f take d of CPU time, at least 1.
func callsWithin(d time.Duration, f func()) int {
	n, best := 1, time.Duration(math.MaxInt64)
	for good := 0; good < 5; {
		before := cpuTime()
		for range n {
			f()
		}
		took := cpuTime() - before
		if took < d/8 { // too short to tell
			n, best, good = 2*n, math.MaxInt64, 0
			continue
		}
		best = min(best, took) // the machine may be busy with something else
		good++
	}
	return max(1, int(float64(n)*float64(d)/float64(best)))
}

// median returns the middle of values, or of an even number the mean of the two there.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
