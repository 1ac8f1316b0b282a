package traffic

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Result is how the calls of a load have ended.
type Result struct {
	Load      Load
	Calls     int
	Admitted  [ByAllow + 1]int // by Admission
	Errors    map[string]int   // by type
	Elapsed   time.Duration    // from the first call's begin to the last one's end
	Took      []time.Duration  // of all calls, ascending
	Processes []Portion

	Requests              int     // that DynamoDB got
	WriteUnits, ReadUnits float64 // that it billed
	Forged, Lost, Beyond  int64   // tokens: see balance
}

// Portion is what one process got.
type Portion struct{ Calls, Admitted int }

// Failed is the share of calls that ended with an error, denied ones included.
func (r *Result) Failed() float64 {
	failed := 0
	for _, n := range r.Errors {
		failed += n
	}
	return float64(failed) / float64(r.Calls)
}

// P50 is the median time of a call, in round trips.
func (r *Result) P50() float64 { return r.inRoundTrips(0.5) }

// P99 is the 99th percentile of a call's time, in round trips.
func (r *Result) P99() float64 { return r.inRoundTrips(0.99) }

// P99ms is P99 in milliseconds.
func (r *Result) P99ms() float64 {
	return float64(percentile(r.Took, 0.99)) / float64(time.Millisecond)
}

// P99OverBare is P99 in p99s of a bare write with the same latency.
func (r *Result) P99OverBare() float64 {
	return float64(percentile(r.Took, 0.99)) / float64(r.Load.BareP99())
}

func (r *Result) inRoundTrips(share float64) float64 {
	return float64(percentile(r.Took, share)) / float64(r.Load.RoundTrip())
}

// readPrice is a read unit in write units: what AWS asks for it.
const readPrice = 0.2

// Units are capacity units per recorded call: those of writes, and those of reads at their price of 0.2.
func (r *Result) Units() float64 {
	return (r.WriteUnits + readPrice*r.ReadUnits) / float64(r.Admitted[Recorded])
}

// RequestsPerCall is the number of requests that DynamoDB got, per call.
func (r *Result) RequestsPerCall() float64 { return float64(r.Requests) / float64(r.Calls) }

// PerSecond is the number of recorded calls a second.
func (r *Result) PerSecond() float64 { return float64(r.Admitted[Recorded]) / r.Elapsed.Seconds() }

// AdmittedByAllow is the number of calls that the policy allow admitted by nothing.
func (r *Result) AdmittedByAllow() float64 { return float64(r.Admitted[ByAllow]) }

// Unrecorded is the number of calls that were admitted without a record.
func (r *Result) Unrecorded() float64 { return float64(r.Admitted[ByAllow] + r.Admitted[ByLocal]) }

// Wrong is the number of tokens that were forged, lost, or admitted beyond the limit.
func (r *Result) Wrong() float64 { return float64(r.Forged + r.Lost + r.Beyond) }

// Slowest is the share of the process that got least, of a fair one.
func (r *Result) Slowest() float64 { return slices.Min(r.shares()) }

// Jain is Jain's index of fairness over processes: 1 if all got the same, 1/n if one got all.
func (r *Result) Jain() float64 {
	sum, squares := 0.0, 0.0
	for _, s := range r.shares() {
		sum += s
		squares += s * s
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(r.Processes)) * squares)
}

// shares returns what each process got, of a fair share: its part of all that were admitted. In an open loop that
// is a process's part of the calls, since chance gives them more or fewer.
func (r *Result) shares() []float64 {
	admitted := 0
	for _, p := range r.Processes {
		admitted += p.Admitted
	}
	all := make([]float64, len(r.Processes))
	for i, p := range r.Processes {
		fair := float64(admitted) / float64(len(r.Processes))
		if r.Load.Callers == 0 {
			fair = float64(admitted) * float64(p.Calls) / float64(r.Calls)
		}
		if fair > 0 {
			all[i] = float64(p.Admitted) / fair
		}
	}
	return all
}

// String is one line of figures.
func (r *Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d calls, %.1f %% failed", r.Calls, 100*r.Failed())
	for _, name := range slices.Sorted(maps.Keys(r.Errors)) {
		fmt.Fprintf(&b, ", %d %s", r.Errors[name], name)
	}
	if n := r.Unrecorded(); n > 0 {
		fmt.Fprintf(&b, "; recorded %d, by allow %d, by local %d", r.Admitted[Recorded], r.Admitted[ByAllow],
			r.Admitted[ByLocal])
	}
	fmt.Fprintf(&b, "; p50 %.2f RTT, p99 %.1f RTT = %.1f ms = %.1f bare; %.3f units (%.0f written, %.0f read); "+
		"slowest %.2f, Jain %.3f; %.0f/s", r.P50(), r.P99(), r.P99ms(), r.P99OverBare(), r.Units(), r.WriteUnits,
		r.ReadUnits, r.Slowest(), r.Jain(), r.PerSecond())
	if r.Wrong() > 0 {
		fmt.Fprintf(&b, "; FORGED %d, LOST %d, BEYOND %d", r.Forged, r.Lost, r.Beyond)
	}
	return b.String()
}

// percentile returns the least value that so many of the sorted values do not exceed.
func percentile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}
