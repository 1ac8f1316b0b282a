package load

import (
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// rows is how many bars a histogram has at most: as many as a terminal shows at a glance.
const rows = 18

// scales are the bounds of bars within a decade, the finest first.
var scales = [][]float64{{1, 1.5, 2, 3, 5, 7}, {1, 2, 5}, {1, 3}, {1}}

// bars returns how many calls took how long, in the finest scale of which not too many bars are there.
func bars(h *hdrhistogram.Histogram) (all []Bar) {
	counted := h.Distribution()
	counted = slices.DeleteFunc(counted, func(b hdrhistogram.Bar) bool { return b.Count == 0 })
	for _, scale := range scales {
		if all = scaled(counted, scale); len(all) <= rows {
			break
		}
	}
	return all
}

// scaled returns the bars by one scale. Between the first and the last bar it includes those without calls.
func scaled(counted []hdrhistogram.Bar, scale []float64) (all []Bar) {
	decade, at := 100.0, 0 // ns
	bound := func() float64 { return decade * scale[at] }
	for _, b := range counted {
		// a bucket of the histogram is a thousandth wide, and may end just above a bound
		for bound() < float64(b.To)*0.9995 {
			if len(all) > 0 {
				all = append(all, Bar{})
			}
			if at++; at == len(scale) {
				decade, at = decade*10, 0
			}
			if len(all) > 0 {
				all[len(all)-1].UpTo = bound() / float64(time.Millisecond)
			}
		}
		if len(all) == 0 {
			all = append(all, Bar{UpTo: bound() / float64(time.Millisecond)})
		}
		all[len(all)-1].Calls += b.Count
	}
	return all
}
