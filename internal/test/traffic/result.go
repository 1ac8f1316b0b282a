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
	Processes []Tally

	Requests              int     // that DynamoDB got
	WriteUnits, ReadUnits float64 // that it billed

	Forged, Lost, AboveLimit int64 // tokens: see balance

	Most  int     // calls that ran at the same time
	InUse float64 // the part of the slots that they had, in percent
}

// Tally counts the calls of one process.
type Tally struct{ Calls, Admitted int }

// Failed is how many calls in a hundred ended with an error, denied ones included.
func (r *Result) Failed() float64 {
	failed := 0
	for _, n := range r.Errors {
		failed += n
	}
	return 100 * float64(failed) / float64(max(1, r.Calls))
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

func (r *Result) inRoundTrips(p float64) float64 {
	return float64(percentile(r.Took, p)) / float64(r.Load.RoundTrip())
}

// readPrice is a read unit in write units: what AWS asks for it.
const readPrice = 0.2

// Units are capacity units per recorded call: those of writes, and those of reads at their price of 0.2.
func (r *Result) Units() float64 {
	return (r.WriteUnits + readPrice*r.ReadUnits) / float64(max(1, r.Admitted[Recorded]))
}

// RequestsPerCall is the number of requests that DynamoDB got, per call.
func (r *Result) RequestsPerCall() float64 { return float64(r.Requests) / float64(max(1, r.Calls)) }

// PerSecond is the number of recorded calls a second.
func (r *Result) PerSecond() float64 { return float64(r.Admitted[Recorded]) / r.Elapsed.Seconds() }

// AdmittedByAllow is the number of calls that the policy allow admitted by nothing.
func (r *Result) AdmittedByAllow() float64 { return float64(r.Admitted[ByAllow]) }

// Unrecorded is the number of calls that were admitted without a record.
func (r *Result) Unrecorded() float64 { return float64(r.Admitted[ByAllow] + r.Admitted[ByLocal]) }

// Wrong is the number of tokens that were forged, lost, or admitted above the limit.
func (r *Result) Wrong() float64 { return float64(r.Forged + r.Lost + r.AboveLimit) }

// Slowest is how much the process that got least got: 1 is as much as is fair.
func (r *Result) Slowest() float64 { return slices.Min(r.ofFair()) }

// Jain is Jain's index of fairness over processes: 1 if all got the same, 1/n if one got all.
func (r *Result) Jain() float64 {
	sum, squares := 0.0, 0.0
	for _, x := range r.ofFair() {
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(r.Processes)) * squares)
}

// ofFair returns what each process got in relation to what is fair: as many admitted calls as the others. In
// an open loop that is as large a part of its own calls, since chance gives a process more or fewer.
func (r *Result) ofFair() []float64 {
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
	fmt.Fprintf(&b, "%d calls, %.1f %% failed", r.Calls, r.Failed())
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
	if r.Most > 0 {
		fmt.Fprintf(&b, "; %d denied, %.1f %% of slots in use", r.Denied(), r.InUse)
	}
	if r.Wrong() > 0 {
		fmt.Fprintf(&b, "; FORGED %d, LOST %d, ABOVE LIMIT %d", r.Forged, r.Lost, r.AboveLimit)
	}
	return b.String()
}

// percentile returns the value that a part of p of the sorted values does not exceed.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(p*float64(len(sorted))))]
}
