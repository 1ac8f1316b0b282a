package dynamo

import (
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// The oracle of windows. It replays the commits of a bucket in their order. Each window that a commit opens
// has a number. Of each call the oracle knows what it took, and which window it took that from: the one that
// is open after the last commit for the call. So after each commit a limit must hold its burst less what was
// taken from the open window, and has not come back to it before its end.

// windowed reports whether the limit has windows in a log.
func windowed(log []commit, limit int) bool {
	return slices.ContainsFunc(log, func(c commit) bool { return c.after.Balances[limit].Windowed() })
}

// openWindow is what the oracle knows of one limit of a bucket.
type openWindow struct {
	number int   // of the open window
	ends   int64 // 0 before the first one
	used   int64 // of it

	granted int   // windows so far, in all lives of the bucket
	first   int64 // the end of the first one
	last    int64 // the end of the last one that a calendar ended
}

// judgeWindows replays the windows of one bucket.
func (h *history) judgeWindows(log []commit) (v findingsOf) {
	if h.windows == nil {
		return v
	}
	for limit := range log[0].after.Balances {
		if !windowed(log, limit) {
			continue
		}
		w := windowOracle{history: h, found: &v, limit: limit}
		for k := range log {
			w.replay(log, k)
		}
	}
	return v
}

// windowOracle replays one limit of one bucket.
type windowOracle struct {
	*history
	found *findingsOf
	limit int
	openWindow
}

// say books one finding.
func (w *windowOracle) say(c *commit, count *int64, n int64, text string, args ...any) {
	if *count += n; w.found.first == "" {
		w.found.first = fmt.Sprintf("limit %d at %d by a clock at %d: ", w.limit, c.at.UnixMilli(), c.tag.sent) +
			fmt.Sprintf(text, args...) + "\n" + c.windowText(w.limit)
	}
}

func (c *commit) windowText(limit int) (s string) {
	for _, img := range []*bucket.Image{c.before, c.after} {
		if img == nil {
			s += "  none\n"
			continue
		}
		b := img.Balances[limit]
		s += fmt.Sprintf("  rf %d cv %d ttl %d op %s tk %d bx %d tc %d we %d\n", img.Refilled, img.Version, img.TTL,
			img.Op, b.Tokens, b.Burst, b.Consumed, b.Ends)
	}
	return s
}

// replay takes in the k-th commit.
func (w *windowOracle) replay(log []commit, k int) {
	c := &log[k]
	after := c.after.Balances[w.limit]
	w.moveOn(c, after)
	positive := w.book(c)
	if c.reverses() && k > 0 && c.tag.sent < after.Ends {
		w.used -= log[k-1].demandOn(w.limit)
	}
	if diff := after.Tokens - (after.Burst - w.used); diff > 0 {
		w.say(c, &w.found.forged, diff, "%d forged, used %d", diff, w.used)
	} else if diff < 0 {
		w.say(c, &w.found.lost, -diff, "%d lost, used %d", -diff, w.used)
	}
	w.used = after.Burst - after.Tokens // each difference is seen once
	if c.demandOn(w.limit) > 0 && after.Tokens+positive < 0 {
		var over int64
		w.say(c, &over, 1, "an acquire finds too little")
		w.found.over++
	}
}

// moveOn takes in which window is open after c.
func (w *windowOracle) moveOn(c *commit, after bucket.Balance) {
	before, now := int64(0), c.tag.sent
	if c.before != nil {
		before = c.before.Balances[w.limit].Ends
	}
	switch {
	case c.before == nil:
		if c.at.UnixMilli() < w.ends {
			var n int64
			w.say(c, &n, 1, "the bucket was deleted in the window that ends at %d", w.ends)
			w.found.deleted++
		}
		w.open(after.Ends)
		if after.Ends != 0 {
			w.grant(c, after.Ends, now)
		}
	case c.tag.reset && slices.Contains(filled, simNames[w.limit]):
		w.open(after.Ends)
	case after.Ends == before:
	case c.before.Version != c.after.Version && before > now+2*after.Period+simDay && after.Ends > now:
		used := w.used
		w.open(after.Ends) // what was used stays used
		w.used, w.last = used, after.Ends
	default:
		if now < before {
			w.twice(c, "opened while the one until %d was open", before)
		}
		w.open(after.Ends)
		w.grant(c, after.Ends, now)
	}
}

// open begins another window.
func (w *windowOracle) open(ends int64) {
	w.number, w.ends, w.used = w.number+1, ends, 0
}

func (w *windowOracle) twice(c *commit, text string, args ...any) {
	var n int64
	w.say(c, &n, 1, "a window granted twice: "+text, args...)
	w.found.twice++
}

// grant takes in that c opens a window that ends at an instant. Calendars end the next one half a window
// after the one before, at least. A bucket that is created anew has only its clock for that.
func (w *windowOracle) grant(c *commit, ends, now int64) {
	half := w.half(c)
	if c.before == nil && half > 0 {
		half -= w.skew.Milliseconds()
	}
	if w.granted > 0 && ends <= w.last+half {
		w.twice(c, "it ends at %d, too soon after the one until %d", ends, w.last)
	}
	if w.granted++; w.granted == 1 {
		w.first = ends
	}
	w.last = ends
	if passed := w.passed(w.first, now); passed >= 0 && w.granted > passed+1 {
		w.twice(c, "%d windows after %d boundaries", w.granted, passed)
	}
}

const simDay = int64(24 * 3600_000)

// half is the least length of a window that follows another.
func (w *windowOracle) half(c *commit) int64 {
	version := int(c.after.Version/1e14) - 1
	switch w.windows(0, version)[w.limit].Unit {
	case bucket.Day:
		return simDay / 2
	case bucket.Month:
		return 14 * simDay
	case bucket.Quarter:
		return 45 * simDay
	}
	return 0
}

// passed returns how many ends of days have passed at an instant, by the earliest of the calendars, from the
// day on that ended at first. It is -1 for a limit that has no days, or that has others by another version.
func (w *windowOracle) passed(first, at int64) int {
	if w.limit != simDaily || len(w.limits) > 1 {
		return -1
	}
	const early = 3600_000
	return int((at+early)/simDay-(first+early)/simDay) + 1
}

// book takes in what the requests of c take and give back. It returns what settles take.
func (w *windowOracle) book(c *commit) (settled int64) {
	for _, p := range c.tag.parts {
		if p.entity != c.entity {
			continue
		}
		n := p.cost[w.limit]
		switch {
		case !p.settle:
			w.used += n
			for _, a := range p.calls {
				numbers := a.windows[c.entity]
				if numbers == nil {
					numbers = make([]int, len(p.cost))
					a.windows[c.entity] = numbers
				}
				numbers[w.limit] = w.number
			}
		case n >= 0:
			w.used += n
			settled += n
		case c.before != nil && c.tag.sent < w.ends:
			w.used -= w.back(c, p, -n)
		}
	}
	return settled
}

// back returns what of n tokens that a lease gives back was taken from the open window. The newest charge
// comes back first.
func (w *windowOracle) back(c *commit, p demandOf, n int64) (back int64) {
	for _, a := range slices.Backward(p.calls) {
		part := min(n, a.cost[w.limit])
		n -= part
		if numbers := a.windows[c.entity]; numbers != nil && numbers[w.limit] == w.number {
			back += part
		}
	}
	return back
}

// demandOn is what acquires of c took of a limit.
func (c *commit) demandOn(limit int) int64 {
	if take := c.takes(); take != nil {
		return take[limit]
	}
	return 0
}

// reverses reports whether c gives back the charge right before it, whose outcome was unknown.
func (c *commit) reverses() bool { return c.values[":undo"] != nil }
