package traffic

import (
	"fmt"
	"strings"
)

// Bar is what one figure of a row has to reach.
type Bar struct {
	Name    string // of the figure
	Format  string // writes the figure
	Of      func(*Result) float64
	AtLeast bool // else at most
	Value   float64
}

// reached reports that the figure is within the bar, as it is printed.
func (b *Bar) reached(r *Result) bool {
	var v float64
	if _, err := fmt.Sscanf(fmt.Sprintf(b.Format, b.Of(r)), "%f", &v); err != nil {
		return false // no number: nothing was admitted
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
	return fmt.Sprintf("%s %s, want %s %v", b.Name, fmt.Sprintf(b.Format, b.Of(r)), op, b.Value)
}

// Row is a load and what it has to reach.
type Row struct {
	Name string
	Load Load
	Bars []Bar
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

// Every row has this bar.
func exact() Bar { return Bar{"forged, lost, beyond the limit", "%.0f", (*Result).Wrong, false, 0} }

func failed(share float64) Bar { return Bar{"failed", "%.3f", (*Result).Failed, false, share} }
func p50(trips float64) Bar    { return Bar{"p50 in round trips", "%.2f", (*Result).P50, false, trips} }
func p99(trips float64) Bar    { return Bar{"p99 in round trips", "%.1f", (*Result).P99, false, trips} }
func p99ms(ms float64) Bar     { return Bar{"p99 in ms", "%.0f", (*Result).P99ms, false, ms} }
func units(n float64) Bar      { return Bar{"units per admitted", "%.3f", (*Result).Units, false, n} }

func p99OverBare(times float64) Bar {
	return Bar{"p99 in those of a bare write", "%.2f", (*Result).P99OverBare, false, times}
}

func requests(n float64) Bar {
	return Bar{"requests per call", "%.2f", (*Result).RequestsPerCall, false, n}
}

func slowest(share float64) Bar {
	return Bar{"slowest process's share", "%.3f", (*Result).Slowest, true, share}
}

func byAllow(calls float64) Bar {
	return Bar{"admitted by allow", "%.0f", (*Result).AdmittedByAllow, false, calls}
}

func unrecorded(calls float64) Bar {
	return Bar{"admitted without record", "%.0f", (*Result).Unrecorded, false, calls}
}
