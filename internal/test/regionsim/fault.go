package regionsim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// Fault is something that happens to a region.
type Fault struct {
	Kind    Kind
	Region  int
	At, For time.Duration // from the first cycle after At on, of Kill and Stall
	Call    int           // Kill, Stall: before that call of the cycle. Operator: of that bucket
	Percent int           // of calls that it hits; Whole, Operator: of the limit; Lag: of a window
}

// Kind is what happens.
type Kind string

// Kinds of fault.
const (
	Kill     Kind = "kill"     // sync is killed between two calls, and is back after For
	Stall    Kind = "stall"    // sync stands still between two calls
	NoGet    Kind = "noget"    // snapshots cannot be read
	NoPeers  Kind = "nopeers"  // others' cannot be, the region's own can
	NoPut    Kind = "noput"    // its own cannot be published
	LostPut  Kind = "lostput"  // they are published, and the reply is lost
	NoTable  Kind = "notable"  // the table refuses
	LostTurn Kind = "lostturn" // the table writes, and the reply is lost
	Lag      Kind = "lag"      // others' snapshots are read as they were
	Lose     Kind = "lose"     // the region's snapshot is lost
	Operator Kind = "operator" // an operator overrides a bucket's limits
	// the limit itself is changed, in one region after the other within For; to what it was where Percent is 100
	Whole Kind = "whole"
)

// Kinds are all of them.
func Kinds() []Kind {
	return []Kind{Kill, Stall, NoGet, NoPeers, NoPut, LostPut, NoTable, LostTurn, Lag, Lose, Operator, Whole}
}

// Kinds of fault of the stream, which are nothing in a World without one.
const (
	StreamLate  Kind = "streamlate"  // nothing arrives, until all of it does
	StreamMiss  Kind = "streammiss"  // records never arrive, and nothing tells
	StreamAgain Kind = "streamagain" // records of the last windows arrive again, at the end of the fault
	StreamTrim  Kind = "streamtrim"  // records never arrive, which is told at the end of the fault
)

// StreamKinds are these.
func StreamKinds() []Kind { return []Kind{StreamLate, StreamMiss, StreamAgain, StreamTrim} }

// String writes f on a line.
func (f Fault) String() string {
	return fmt.Sprintf("%s region %d at %v for %v, call %d, %d%%", f.Kind, f.Region, f.At, f.For, f.Call,
		f.Percent)
}

// covers reports that f lasts at an instant.
func (f Fault) covers(at time.Duration) bool { return f.At <= at && at < f.At+f.For }

// RandomFaults returns so many faults of those kinds that end before an instant.
func RandomFaults(rng *rand.Rand, n, regions int, window, before time.Duration, kinds ...Kind) []Fault {
	var all []Fault
	for range n {
		f := Fault{Kind: kinds[rng.IntN(len(kinds))], Region: rng.IntN(regions), Call: rng.IntN(12),
			Percent: 20 + rng.IntN(181)}
		f.For = upTo(rng, before/3)
		if rng.IntN(2) == 0 {
			f.For = upTo(rng, 3*window)
		}
		f.At = upTo(rng, before-f.For)
		all = append(all, f)
	}
	return all
}

// arm places what f does by itself. The sync's host looks up what f does to a sync.
func (w *world) arm(f Fault) {
	h := w.regions[f.Region%len(w.regions)]
	s := w.series[f.Call%len(w.series)]
	switch f.Kind {
	case Lose:
		w.after(f.At, func() {
			w.trace(h, "its snapshot is lost")
			w.objects.put(h.name+"/snapshot.json", nil)
		})
	case StreamAgain:
		w.after(f.At+f.For, func() { h.stream.again() })
	case StreamTrim:
		w.after(f.At+f.For, func() { h.stream.trimmed() })
	case Operator:
		w.after(f.At, func() { w.operate(h, s, w.scaled(s.resource, f.Percent)) })
		w.after(f.At+f.For, func() { w.operate(h, s, nil) })
	case Whole:
		for i, h := range w.from(f.Region) {
			w.after(f.At+f.For*time.Duration(i)/time.Duration(len(w.regions)), func() { w.change(h, s.resource, f) })
		}
	}
}

// operate has an operator override a bucket's limits: nil takes them back.
func (w *world) operate(h *home, s *series, limits []*bucket.Limit) {
	w.trace(h, "an operator overrides %s on %s: %s", s.entity, s.place.resource, inTokens(limits))
	h.table.put(s, terms{limits: limits, operator: limits != nil}, w.millis(0))
	w.judge.shared(h, s)
}

// change has an operator of h change a resource's limits for all regions together, unless that was decided
// before what they are.
func (w *world) change(h *home, resource int, f Fault) {
	if f.At < h.table.decided[resource] {
		return
	}
	h.table.decided[resource] = f.At
	w.trace(h, "all regions together have %d%% of %s", f.Percent, w.Resources[resource].Name)
	for i, l := range w.scaled(resource, f.Percent) {
		if f.Percent == 100 {
			l = nil
		}
		h.table.override(resource, i, l)
	}
	w.judge.all(h)
}

// scaled returns a resource's limits, as percent of what the schema says.
func (w *world) scaled(resource, percent int) []*bucket.Limit {
	var all []*bucket.Limit
	for _, l := range w.Resources[resource].Limits {
		whole := max(1, l.Whole.Capacity/bucket.Milli*int64(percent)/100)
		scaled := bucket.Limit{Capacity: whole * bucket.Milli,
			Burst:  max(bucket.Milli, l.Whole.Burst*int64(percent)/100),
			Refill: max(1, l.Whole.Refill*int64(percent)/100), Period: l.Whole.Period}
		all = append(all, &scaled)
	}
	return all
}
