// Package window writes the arguments that a script takes of windowed limits: when their windows end, and
// what calls give back to windows.
package window

import (
	"math"
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
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

const (
	boundaries = 3
	// ahead is how far the process's clock may be ahead of Redis's. Without it, Redis would miss a boundary that
	// by the process's clock has just passed.
	ahead = int64(time.Minute / time.Millisecond)
	// kept is how long a window by first use is kept after its end.
	kept = int64(time.Minute / time.Millisecond)
)

// Of returns the Args of the limits that has lists, at now, in ms. version is that of the overrides that they
// are from.
func Of(
	limits []bucket.Limit, version int64, has []int, calendars []*bucket.Calendar, now int64,
) *Args {
	a := &Args{calendars: slices.Clone(calendars), after: now - ahead, until: math.MaxInt64}
	for _, i := range has {
		if !limits[i].Windowed() {
			a.List = append(a.List, text.Params(limits[i], version)...)
			continue
		}
		a.add(limits[i].Burst, calendars[i])
	}
	return a
}

// add appends the arguments of one windowed limit.
func (a *Args) add(burst int64, c *bucket.Calendar) {
	var next [boundaries]int64 // 0 opens no window
	half, length := c.Half(), int64(0)
	if c.Unit == bucket.FirstUse {
		half, length = kept, c.Length
	} else if copy(next[:], c.Next(a.after, boundaries)) > 0 {
		a.until = min(a.until, next[0])
	}
	a.List = append(a.List, burst, 0, half, length, a.after, next[0], next[1], next[2])
}

// Serve reports whether a has the boundaries by calendars that a call at now needs. It allocates nothing.
func (a *Args) Serve(calendars []*bucket.Calendar, now int64) bool {
	return a != nil && a.after <= now-ahead && now-ahead < a.until &&
		slices.EqualFunc(a.calendars, calendars, func(x, y *bucket.Calendar) bool {
			return x == y || x != nil && y != nil && *x == *y
		})
}

// GiveBack is what a call gives back to one window.
type GiveBack struct {
	Limit        int   // in schema order
	Amount, Ends int64 // millitokens, and the end of the window in ms
}

// Split divides cost, what a settle adds to charges, in millitokens and schema order. Windowed limits get
// back from the newest charges first, to the windows of these. All other costs stay in the vector that it
// returns: cost itself unless anything is given back. calendars are by limit, nil for one that refills.
func Split(
	charges []bucket.Charge, calendars []*bucket.Calendar, cost []int64,
) (rest []int64, back []GiveBack) {
	rest = cost
	for i, c := range calendars {
		if c == nil || len(cost) == 0 || cost[i] >= 0 {
			continue
		}
		if &rest[0] == &cost[0] {
			rest = slices.Clone(cost)
		}
		rest[i] = 0
		for amount, ends := range bucket.Returned(bucket.Sub(0, cost[i]), i, charges) {
			if last := len(back) - 1; last >= 0 && back[last].Limit == i && back[last].Ends == ends {
				back[last].Amount += amount
				continue
			}
			back = append(back, GiveBack{i, amount, ends})
		}
	}
	return rest, back
}

// Append appends to args the cost that a call has of a windowed limit, in millitokens, and those of its
// give-backs that are of the limit.
func Append(args []any, limit int, cost int64, back []GiveBack) []any {
	args = append(args, cost, 0)
	number := len(args) - 1
	for _, b := range back {
		if b.Limit == limit {
			args = append(args, b.Amount, b.Ends)
		}
	}
	args[number] = (len(args) - 1 - number) / 2
	return args
}
