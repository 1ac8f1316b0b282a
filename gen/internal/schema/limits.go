package schema

import (
	"math/bits"
	"slices"
	"time"

	"github.com/sluice-go/sluice/gen/internal/duration"
	"github.com/sluice-go/sluice/gen/internal/number"
	"github.com/sluice-go/sluice/gen/internal/rules"
	"github.com/sluice-go/sluice/gen/internal/window"
)

func limitKeys() []string {
	return []string{"capacity", "every", "window", "starts", "zone", "in_flight", "on_crash", "money", "counts",
		"refill", "burst", "per_call", "kinds", "all_names", "refills", "doc", "go_name"}
}

func restatedKeys() []string {
	return []string{"capacity", "refill", "burst", "per_call"}
}

// limit is the numbers of a limit, at its base or for a kind, with the places where they are written.
type limit struct {
	what string // for messages: limit "rpm" of resource "gpt-4"
	pos  Pos

	capacity, refill, burst, perCall count
	every                            period // of a window, its length; inFlightPeriod for in_flight

	windowed bool           // it has the key window
	window   *window.Window // nil for every and in_flight, and with a mistake
	inFlight bool           // it has in_flight: true
	release  bool           // it has on_crash: release

	money    bool    // it has the key money, so that its numbers are amounts
	currency string  // "" for none, and with a mistake
	moneyPos Pos     // of the key
	counts   []entry // the usages that are added up for it

	kinds []entry // the kinds that have it; nil for all

	allNamesPos Pos // of key all_names
}

// of reports whether a kind has l.
func (l limit) of(kind string) bool {
	return l.kinds == nil || slices.ContainsFunc(l.kinds, func(e entry) bool { return e.name == kind })
}

// evenly reports whether l refills, and so can have a refill and a burst of its own.
func (l limit) evenly() bool { return !l.windowed && !l.inFlight }

// prepaid reports whether l has a window that does not end, so that it may begin with a capacity of 0.
func (l limit) prepaid() bool { return l.window != nil && l.window.Unit == window.Never }

// least returns the least value of a number of l by its key. A window with a mistake may be meant as never.
func (l limit) least(key string) int64 {
	if key == "capacity" && (l.prepaid() || l.windowed && l.window == nil) {
		return 0
	}
	return 1
}

// plain returns l's numbers without their places. A limit that does not refill has no other burst.
func (l limit) plain() Numbers {
	return Numbers{Capacity: l.capacity.n, Burst: l.burst.n, Refill: l.refill.n, Period: l.every.d,
		Currency: l.currency}
}

// baseLimit reads f into l: capacity must be there, and one of every, window and in_flight. With in_flight, a
// call takes one token unless per_call is given.
func (r *resourceReader) baseLimit(f fields, l limit) limit {
	l.every.own, l.every.pos = true, l.pos
	l = windowReader{r.reader, f, l.what}.howLong(moneyReader{r}.money(f, l))
	moneyReader{r}.checkWindowed(f, l)
	if l.inFlight {
		l.perCall = count{n: 1, ok: true, pos: l.pos}
	}
	if l.money {
		return r.numbers(f, l, "write the amount that "+l.what+" has, such as capacity: 50")
	}
	return r.numbers(f, l, "write how many tokens "+l.what+" has, such as capacity: 100")
}

// restatedLimit reads f into l, which replaces base for a kind. every, window or in_flight is base's, and so
// is per_call unless it is given.
func (r *resourceReader) restatedLimit(f fields, l, base limit) limit {
	l.every, l.perCall = base.every.inherited(), base.perCall.inherited()
	l.windowed, l.window = base.windowed, base.window
	l.inFlight, l.release, l.money, l.currency = base.inFlight, base.release, base.money, base.currency
	example := "100"
	if base.capacity.ok {
		example = l.written(base.capacity.n)
	}
	if !l.evenly() {
		windowReader{r.reader, f, l.what}.notEvenly(l, "refill", "burst")
		return r.numbers(f, l, "write what "+l.what+" has, such as capacity: "+example)
	}
	return r.numbers(f, l, "write what "+l.what+" has, which its refill and burst follow, such as capacity: "+
		""+example)
}

// numbers reads the keys that limits and restated limits have in common. capacity is required; refill and
// burst default to it, and a limit that does not refill has neither of its own.
func (r *resourceReader) numbers(f fields, l limit, needCapacity string) limit {
	l.capacity = count{own: true, pos: l.pos}
	if e, ok := r.needAt(f, l.pos, "capacity", needCapacity); ok {
		l.capacity = moneyReader{r}.capacity(l, e)
	}
	l.refill, l.burst = l.capacity, l.capacity
	switch {
	case !l.evenly() || l.money: // money that refills is a mistake already
		l.refill = count{}
	case l.capacity.unlimited:
		l = moneyReader{r}.unlimited(f, l)
	default:
		if e, ok := f.get("refill"); ok {
			l.refill = moneyReader{r}.number(l, e, "refill")
		}
		if e, ok := f.get("burst"); ok {
			l.burst = moneyReader{r}.number(l, e, "burst")
		}
	}
	if e, ok := f.get("per_call"); ok {
		l.perCall = moneyReader{r}.number(l, e, "per_call")
	}
	return l
}

// checkLimit reports contradictions between the numbers of l. It skips those of which no number is written in
// this mapping: they have been reported at the base limit.
func (r *resourceReader) checkLimit(l limit) {
	if pos, ok := ownPlace(l.burst, l.capacity); ok && l.burst.n < l.capacity.n {
		r.add(pos, rules.BurstCapacity, "burst %s of %s is below its capacity %s: raise burst, or leave it out "+
			"(it is capacity then)", number.Grouped(l.burst.n), l.what, number.Grouped(l.capacity.n))
	}
	if pos, ok := ownPlace(l.perCall, l.burst); ok && l.perCall.n > l.burst.n && !l.prepaid() {
		most := "burst"
		if !l.evenly() {
			most = "capacity"
		}
		r.add(pos, rules.PerCallBurst, "per_call %s of %s is above its %s %s: such a call could never be "+
			"served, lower per_call or raise %s",
			l.written(l.perCall.n), l.what, most, l.written(l.burst.n), most)
	}
	every := count{n: l.every.d.Milliseconds(), ok: l.every.ok, own: l.every.own, pos: l.every.pos}
	if pos, ok := ownPlace(l.refill, every); ok && l.refill.n > maxPerMilli*every.n { // at most 3.2*10^14
		r.add(pos, rules.RefillRate, "%s refills %s tokens every %s: it can be at most 10^7 per second, %slower "+
			"refill",
			l.what, number.Grouped(l.refill.n), duration.Written(l.every.d), ifOwn(every, "raise every or "))
	}
	if pos, ok := ownPlace(l.refill, l.burst, every); ok && !fillsInTime(l.burst.n, l.refill.n, every.n) {
		r.add(pos, rules.FillTime, "%s takes more than %d days to be full from empty (burst %s, refill %s every "+
			"%s): raise refill, or lower burst%s",
			l.what, maxFillDays, number.Grouped(l.burst.n), number.Grouped(l.refill.n), duration.Written(l.every.d),
			ifOwn(every, " or every"))
	}
}

// fillsInTime reports whether burst/refill periods of milli milliseconds are within the bound. It computes in
// 128 bits.
func fillsInTime(burst, refill, milli int64) bool {
	const most = maxFillDays * uint64(day/time.Millisecond)
	needHi, needLo := bits.Mul64(uint64(burst), uint64(milli))
	haveHi, haveLo := bits.Mul64(uint64(refill), most)
	return needHi < haveHi || needHi == haveHi && needLo <= haveLo
}

// ownPlace returns the place of the first of cs that is written in this mapping. ok is false if there is
// none, or if one of cs is malformed.
func ownPlace(cs ...count) (pos Pos, ok bool) {
	for _, c := range slices.Backward(cs) {
		if !c.ok {
			return Pos{}, false
		}
		if c.own {
			pos, ok = c.pos, true
		}
	}
	return pos, ok
}

// ifOwn returns text if c is written in this mapping, else "".
func ifOwn(c count, text string) string {
	if c.own {
		return text
	}
	return ""
}
