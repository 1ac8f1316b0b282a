package traffic

import (
	"fmt"
	"strings"
)

// Bar is what one figure of a row has to reach.
type Bar struct {
	Name    string // of the figure
	Format  string // writes the figure and its unit: it starts with a verb
	Of      func(*Result) float64
	AtLeast bool // else at most
	Value   float64
}

// reached reports that the figure is within the bar, as it is printed.
func (b *Bar) reached(r *Result) bool {
	var v float64
	if _, err := fmt.Sscanf(fmt.Sprintf(b.Format, b.Of(r)), "%f", &v); err != nil {
		return false // it is no number
	}
	if b.AtLeast {
		return v >= b.Value
	}
	return v <= b.Value
}

// miss describes a bar that r misses.
func (b *Bar) miss(r *Result) string {
	op := "<="
	if b.AtLeast {
		op = ">="
	}
	return fmt.Sprintf(b.Format, b.Of(r)) + fmt.Sprintf(", want %s %v", op, b.Value)
}

// Row is a load and what it has to reach.
type Row struct {
	Name       string
	Load       Load
	Bars       []Bar
	Compared   bool // with other limiters, by the benchmark
	Prefetched bool // with prefetch, too, by the benchmark
}

// Missed lists the bars that r misses, as text; it is empty if r reaches all.
func (row *Row) Missed(r *Result) string {
	var missed []string
	for i := range row.Bars {
		if b := &row.Bars[i]; !b.reached(r) {
			missed = append(missed, b.miss(r))
		}
	}
	return strings.Join(missed, "; ")
}

// exact is a bar of every row.
func exact() Bar { return Bar{"wrong tokens", "%.0f tokens wrong", (*Result).Wrong, false, 0} }

func failed(percent float64) Bar {
	return Bar{"failed, percent", "%.1f%% failed", (*Result).Failed, false, percent}
}

func p50(trips float64) Bar {
	return Bar{"p50, round trips", "%.2f RTT p50", (*Result).P50, false, trips}
}

func p99(trips float64) Bar {
	return Bar{"p99, round trips", "%.1f RTT p99", (*Result).P99, false, trips}
}

func p99ms(ms float64) Bar { return Bar{"p99, ms", "%.0f ms p99", (*Result).P99ms, false, ms} }

func p99OverBare(times float64) Bar {
	return Bar{"p99, times a bare write's", "%.2f x a bare p99", (*Result).P99OverBare, false, times}
}

func units(n float64) Bar {
	return Bar{"units per admitted", "%.3f units", (*Result).Units, false, n}
}

func requests(n float64) Bar {
	return Bar{"requests per call", "%.2f requests", (*Result).RequestsPerCall, false, n}
}

func slowest(ofFair float64) Bar {
	return Bar{"slowest process, of fair", "%.3f of fair", (*Result).Slowest, true, ofFair}
}

func perSecond(n float64) Bar {
	return Bar{"admitted per second", "%.0f/s", (*Result).PerSecond, true, n}
}

func byAllow(calls float64) Bar {
	return Bar{"admitted by allow", "%.0f by allow", (*Result).AdmittedByAllow, false, calls}
}

func unrecorded(calls float64) Bar {
	return Bar{"admitted without record", "%.0f without record", (*Result).Unrecorded, false, calls}
}
