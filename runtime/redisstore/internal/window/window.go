// Package window writes the arguments that a script takes of windowed limits, and of those with holds: when
// windows end, and what calls give back.
package window

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/inforce"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/text"
)

// Args is the arguments of a bucket's limits, of which some have windows. Boundaries are costly to compute,
// so Args serve for many calls.
type Args struct {
	List []any // of each limit that the bucket has, as ARGV has them

	calendars    []*bucket.Calendar // by limit, that List is from
	after, until int64              // List has the boundaries after one, the first of which is the other, in ms
}

// Extra is how many arguments more a limit with windows has than one that refills.
const Extra = 5

// These stand where a limit that refills has its rate.
const (
	inWindows     = 0
	inFlight      = -1
	heldInWindows = -2
)

const (
	boundaries = 3
	// ahead is how far the process's clock may be ahead of Redis's. Without it, Redis would miss a boundary that
	// by the process's clock has just passed.
	ahead = int64(time.Minute / time.Millisecond)
	// kept is how long a window by first use is kept after its end.
	kept = int64(time.Minute / time.Millisecond)
)

// Of returns the Args of the limits that has lists, at now, in ms. held is by limit, as store.Spec has it.
func Of(n inforce.Numbers, has []int, held []bool, calendars []*bucket.Calendar, now int64) *Args {
	a := &Args{calendars: slices.Clone(calendars), after: now - ahead, until: math.MaxInt64}
	for _, i := range has {
		first := len(a.List)
		switch l := n.Limits[i]; {
		case l.InFlight():
			a.List = append(a.List, l.Burst, inFlight)
		case !l.Windowed():
			a.List = append(a.List, text.Params(l, n.Version)...)
		case Held(held, i):
			a.add(l.Burst, heldInWindows, calendars[i])
		default:
			a.add(l.Burst, inWindows, calendars[i])
		}
		if n.Of != "" {
			a.List[first+1] = fmt.Sprint(a.List[first+1], "@", n.Of)
		}
	}
	return a
}

// Held reports whether the i-th limit counts holds, given the Held of a store.Spec.
func Held(held []bool, i int) bool { return held != nil && held[i] }

// add appends the arguments of one windowed limit.
func (a *Args) add(burst int64, kind int, c *bucket.Calendar) {
	var next [boundaries]int64 // 0 opens no window
	half, length := c.Half(), int64(0)
	switch c.Unit {
	case bucket.FirstUse:
		half, length = kept, c.Length
	case bucket.Never:
		next[0] = bucket.NeverEnds
	default:
		if copy(next[:], c.Next(a.after, boundaries)) > 0 {
			a.until = min(a.until, next[0])
		}
	}
	a.List = append(a.List, burst, kind, half, length, a.after, next[0], next[1], next[2])
}

// Serve reports whether a has the boundaries by calendars that a call at now needs. It allocates nothing.
func (a *Args) Serve(calendars []*bucket.Calendar, now int64) bool {
	return a != nil && a.after <= now-ahead && now-ahead < a.until &&
		slices.EqualFunc(a.calendars, calendars, func(x, y *bucket.Calendar) bool {
			return x == y || x != nil && y != nil && *x == *y
		})
}

// GiveBack is what a call gives back of one charge.
type GiveBack struct {
	Limit  int   // in schema order
	Amount int64 // millitokens that are no longer used; below 0 for held ones that are used now
	Ends   int64 // of the window that they were taken from, in ms; 0 in flight

	// Of a limit with holds: the epoch of a hold that ends, and its millitokens; 0 if it counts no more.
	Epoch, Held int64
}

// Split divides cost, what a settle adds to charges, in millitokens and schema order. Windowed limits get
// back from the newest charges first, to the windows of these. All other costs stay in the vector that it
// returns: cost itself unless anything is given back. calendars are by limit, nil for one without windows.
//
// A limit with holds gets back all that charges hold of it, whatever its cost. The part of it that stays
// charged is used then, but for slots.
func Split(
	charges []bucket.Charge, calendars []*bucket.Calendar, held []bool, cost []int64,
) (rest []int64, back []GiveBack) {
	rest = cost
	for i := range cost {
		windowed := calendars != nil && calendars[i] != nil
		given := bucket.Sub(0, cost[i])
		if !Held(held, i) && (!windowed || given <= 0) {
			continue
		}
		if given > 0 || !windowed && given < 0 {
			if &rest[0] == &cost[0] {
				rest = slices.Clone(cost)
			}
			rest[i] = 0
		}
		if Held(held, i) {
			back = end(back, i, given, windowed, charges)
			continue
		}
		for amount, ends := range bucket.Returned(given, i, charges) {
			if last := len(back) - 1; last >= 0 && back[last].Limit == i && back[last].Ends == ends {
				back[last].Amount += amount
				continue
			}
			back = append(back, GiveBack{Limit: i, Amount: amount, Ends: ends})
		}
	}
	return rest, back
}

// end appends to back what ends the holds that charges have of the i-th limit, and gives back given tokens.
func end(back []GiveBack, i int, given int64, windowed bool, charges []bucket.Charge) []GiveBack {
	for _, c := range slices.Backward(charges) {
		taken, next := c.Cost[i], GiveBack{Limit: i}
		if c.Epochs != nil {
			next.Epoch = c.Epochs[i]
		}
		if c.Ends != nil {
			next.Ends = c.Ends[i]
		}
		if next.Epoch > 0 {
			next.Held = max(0, taken)
		}
		if windowed {
			part := max(0, min(given, taken))
			given -= part
			if next.Amount = part; next.Epoch != 0 {
				next.Amount -= taken
			}
		}
		if next.Amount != 0 || next.Held > 0 {
			back = append(back, next)
		}
	}
	return back
}

// Holds returns what extends the holds of a charge.
func Holds(c bucket.Charge) (holds []GiveBack) {
	for i, epoch := range c.Epochs {
		if c.Cost[i] <= 0 || epoch <= 0 {
			continue
		}
		next := GiveBack{Limit: i, Epoch: epoch, Held: c.Cost[i]}
		if c.Ends != nil {
			next.Ends = c.Ends[i]
		}
		holds = append(holds, next)
	}
	return holds
}

// Append appends to args what a call has of a limit with windows or holds: its cost in millitokens, and those
// of its give-backs that are of the limit.
func Append(args []any, limit int, held bool, cost int64, back []GiveBack) []any {
	args = append(args, cost, 0)
	number, n := len(args)-1, 0
	for _, b := range back {
		if b.Limit != limit {
			continue
		}
		if n++; held {
			args = append(args, b.Amount, b.Ends, b.Epoch, b.Held)
		} else {
			args = append(args, b.Amount, b.Ends)
		}
	}
	args[number] = n
	return args
}
