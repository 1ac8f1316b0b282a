// Package bucket is the arithmetic of a token bucket that refills lazily: exact, in integers, without clock
// or I/O. Not for import: stores and generated code import it.
//
// Tokens are counted in millitokens and time in milliseconds since the Unix epoch. Every function is pure and
// total: sums and differences saturate at the bounds of int64 instead of wrapping, so that no input panics or
// overflows.
package bucket

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Milli is the number of millitokens in one token.
const Milli = 1000

// Limit holds one limit's parameters: Capacity, Burst and Refill in millitokens, Period in milliseconds.
// Refill tokens arrive every Period, evenly, up to Burst; Capacity is what the schema calls the limit and
// takes no part in the arithmetic.
//
// A windowed limit has a Refill of 0: its whole Burst comes back when the window ends. Its Period is the
// nominal length of a window. An in-flight limit has a Refill of 0 and a Period of 1: tokens come back when
// their lease ends. A prepaid limit is a windowed one whose window does not end: only grants add to it.
type Limit struct{ Capacity, Burst, Refill, Period int64 }

// Absent reports whether l is the zero Limit, of a bucket that does not have the limit: nothing is stored of
// it, and nothing charged. A closed limit is not absent.
func (l Limit) Absent() bool { return l.Period == 0 }

// Windowed reports whether l comes back when a window ends, and does not refill.
func (l Limit) Windowed() bool { return l.Refill == 0 && l.Period > inFlightPeriod }

// neverPeriod is the Period of a prepaid limit, in ms: 100 years, longer than any window.
const neverPeriod = 100 * 365 * day

// NeverEnds is the end of the window of a prepaid limit, in ms: the end of year 9999, as that of its ttl.
const NeverEnds = LastExpiry * 1000

// Prepaid reports whether l is a windowed limit whose window does not end.
func (l Limit) Prepaid() bool { return l.Refill == 0 && l.Period == neverPeriod }

// InWindows returns a limit of capacity whole tokens in each window. period is the nominal length of a
// window. It saturates; parts of a millisecond are dropped.
func InWindows(capacity int64, period time.Duration) Limit {
	tokens := Mul(capacity, Milli)
	return Limit{Capacity: tokens, Burst: tokens, Period: period.Milliseconds()}
}

// Per returns a limit of capacity whole tokens every period, refilled by capacity and without extra burst. It
// saturates; parts of a millisecond are dropped.
func Per(capacity int64, period time.Duration) Limit {
	tokens := Mul(capacity, Milli)
	return Limit{Capacity: tokens, Burst: tokens, Refill: tokens, Period: period.Milliseconds()}
}

// WithBurst returns l with another burst, in whole tokens.
func (l Limit) WithBurst(tokens int64) Limit {
	l.Burst = Mul(tokens, Milli)
	return l
}

// String writes l in whole tokens: 5 per 1m0s, burst 8, refill 2, where burst and refill stand only if they
// are not the capacity. A windowed limit is 5 in windows of 24h0m0s, a prepaid one 5 prepaid, and an
// in-flight one 5 in flight.
// A Limit does not know its unit: one of money, in nano-units, is written as if those were millitokens.
func (l Limit) String() string {
	if l.InFlight() {
		return tokens(l.Capacity) + " in flight"
	}
	if l.Prepaid() {
		return tokens(l.Capacity) + " prepaid"
	}
	if l.Windowed() {
		return fmt.Sprintf("%s in windows of %v", tokens(l.Capacity), milliseconds(l.Period))
	}
	s := fmt.Sprintf("%s per %v", tokens(l.Capacity), milliseconds(l.Period))
	if l.Burst != l.Capacity {
		s += ", burst " + tokens(l.Burst)
	}
	if l.Refill != l.Capacity {
		s += ", refill " + tokens(l.Refill)
	}
	return s
}

// Balance is one limit's stored state in a bucket (b_<limit>_{tk,cp,bx,ra,rp,tc,we,h0,h1,e}). Tokens is what
// it held at the bucket's Refilled instant, negative in debt; of a windowed limit, what the open window
// holds. Consumed is all that was ever charged, less what was given back. Ends is the end of the open window,
// in ms. It is 0 before the first window, and for a limit without windows.
//
// Cells has what open leases hold, by the parity of its epoch: of Epoch, the lowest one that was not swept
// yet, and of the next. Epoch is 0 for a limit that does not count holds.
type Balance struct {
	Limit

	Tokens, Consumed, Ends int64
	Cells                  [2]int64
	Epoch                  int64
}

// Over reports whether the window of b, a windowed limit, has ended at now, in ms. The stored end decides,
// never a calendar.
func (b Balance) Over(now int64) bool { return now >= b.Ends }

// String writes b in whole tokens: 3.5 of 5 per 1m0s, consumed 120. As with a Limit, it knows no money.
func (b Balance) String() string {
	return fmt.Sprintf("%s of %v, consumed %s", tokens(b.Tokens), b.Limit, tokens(b.Consumed))
}

// Image is a bucket as last seen. Images are not changed once made: several calls read one.
type Image struct {
	Refilled int64  // rf: refill is claimed up to this instant, ms
	Version  int64  // cv: what shape the bucket has
	TTL      int64  // s
	Op       string // id of the last write
	PlanOf   string // po: the entity whose plan it has, as stored; "" if that never was on one
	Balances []Balance
	Missing  []bool  // limits that the item does not have, in schema order; their balance is zero
	Extra    []Named // limits of the item that the schema does not have, by name
}

// RevisionUnit separates the two components of an image's Version (cv): the schema's revision, and the sum of
// the versions of overrides.
const RevisionUnit = 100_000_000_000_000

// Find returns the balance of a limit in img, which was read without a schema. ok is false if it has none.
func (img *Image) Find(limit string) (b Balance, ok bool) {
	for _, extra := range img.Extra {
		if extra.Name == limit {
			return extra.Balance, true
		}
	}
	return Balance{}, false
}

// Ends returns the ends of img's windows, by limit: nil if img is nil, or if no limit has windows.
func (img *Image) Ends() (ends []int64) {
	if img == nil {
		return nil
	}
	for i, b := range img.Balances {
		if !b.Windowed() {
			continue
		}
		if ends == nil {
			ends = make([]int64, len(img.Balances))
		}
		ends[i] = b.Ends
	}
	return ends
}

// Named is the balance of a limit that the schema does not know.
type Named struct {
	Name string
	Balance
}

// String writes n as its Balance, after its name.
func (n Named) String() string { return n.Name + ": " + n.Balance.String() }

// Refill returns what l yields between rf and now: floor(now*Refill/Period) - floor(rf*Refill/Period)
// millitokens, and 0 when now <= rf. The sum over any sequence of instants telescopes, so limits with
// different periods can have one rf in common without loss.
func Refill(l Limit, rf, now int64) int64 {
	if now <= rf || l.Refill <= 0 || l.Period <= 0 {
		return 0
	}
	elapsed := uint64(now) - uint64(rf) // exact for any rf < now
	whole := quotient(muladd(elapsed, uint64(l.Refill), remainder(l, rf)), uint64(l.Period))
	return int64(min(whole, math.MaxInt64))
}

// Available returns what b is worth at now, min(Tokens + refill, Burst), in millitokens. A window that is
// over is worth the Burst. Holds that are over count as given back.
func Available(b Balance, rf, now int64) int64 {
	switch {
	case b.Windowed() && b.Over(now):
		return b.Burst
	case b.Windowed(), b.InFlight():
		return Add(b.Tokens, b.expired(now))
	}
	return min(Add(b.Tokens, Refill(b.Limit, rf, now)), b.Burst)
}

// TooLarge reports whether b never holds cost, in millitokens: neither now, in ms, nor when it is full. A
// grant may lift a window above the burst, and a prepaid limit to any height.
func (b Balance) TooLarge(cost, now int64) bool {
	granted := b.Windowed() && !b.Over(now) && cost <= b.Tokens
	return cost > b.Burst && !b.Prepaid() && !granted
}

// RetryAfter returns the time from now until b can serve cost (millitokens): in whole milliseconds, rounded
// up, never early, and 0 if it can now. It saturates, and is math.MaxInt64 if time does not help: the burst
// of b is below cost, or b is prepaid. It is FullRetry, a hint, for an in-flight limit.
func RetryAfter(b Balance, rf, now, cost int64) time.Duration {
	switch {
	case Available(b, rf, now) >= cost:
		return 0
	case cost > b.Burst, b.Prepaid():
		return math.MaxInt64
	case b.InFlight():
		return FullRetry
	}
	return milliseconds(Sub(ReadyAt(b, rf, cost), now))
}

// ReadyAt returns the first instant, in milliseconds, at which b holds tokens (millitokens), if burst does
// not cap it. That is rf if it does already, math.MaxInt64 if it never will. A windowed limit has its tokens
// at the end of its window, unless that never ends. For a limit in flight it is rf too: nobody knows when
// leases end.
func ReadyAt(b Balance, rf, tokens int64) int64 {
	switch {
	case tokens <= b.Tokens, b.InFlight():
		return rf
	case b.Windowed():
		return b.Ends
	}
	if b.Refill <= 0 || b.Period <= 0 {
		return math.MaxInt64
	}
	missing := uint64(tokens) - uint64(b.Tokens) // at least 1, exact
	// missing*Period - r is positive, since r < Period.
	x := mul(missing, uint64(b.Period)).minus(remainder(b.Limit, rf))
	return after(rf, ceiling(x, uint64(b.Refill)))
}

// LastExpiry is the latest ttl there is, in seconds: the end of year 9999.
const LastExpiry = 253402300799

// Expiry returns the ttl, in seconds, of a bucket that holds b. It is rf plus twice the time to be full from
// empty, or from b's own balance if that is lower. So a bucket is full when it is deleted. Expiry saturates
// at LastExpiry.
//
// A bucket with a window is kept for half a window after its end, and for a minute at least. A writer that
// then creates it anew cannot open the same window again, even if its clock or its zone's rules differ. One
// with holds is kept until every hold of now is over, also those that other writers take meanwhile.
func Expiry(b Balance, rf int64) int64 {
	at := Add(b.Ends, max(b.Period/2, minute))
	switch {
	case b.InFlight():
		at = rf
	case !b.Windowed():
		b.Tokens = min(b.Tokens, 0)
		full := ReadyAt(b, rf, b.Burst)
		at = Add(full, Sub(full, rf))
	case b.Ends == 0: // no window is open
		at = rf
	}
	if b.Holds() {
		at = max(at, EpochEnd(max(b.Epoch, Epoch(rf))+NewRing+3))
	}
	if at > LastExpiry*1000 {
		return LastExpiry
	}
	return at/1000 + min(1, max(0, at%1000))
}

const minute = int64(time.Minute / time.Millisecond)

func milliseconds(ms int64) time.Duration {
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}

// Negated returns the cost that gives cost back.
func Negated(cost []int64) []int64 {
	back := slices.Clone(cost)
	for i := range back {
		back[i] = -back[i]
	}
	return back
}

// Full returns full balances with parameters limits.
func Full(limits []Limit) []Balance {
	full := make([]Balance, len(limits))
	for i, l := range limits {
		full[i] = Balance{Limit: l, Tokens: l.Burst}
	}
	return full
}

// WholeRefill returns l's rate of refill exactly: tokens, not millitokens, that come back within period, ms.
// That is a longer period than l's if a part of a token comes back within it.
func (l Limit) WholeRefill() (tokens, period int64) {
	if l.Refill%Milli == 0 {
		return l.Refill / Milli, l.Period
	}
	divisor, rest := l.Refill, Mul(l.Period, Milli)
	for rest != 0 { // Euclid's algorithm
		divisor, rest = rest, divisor%rest
	}
	return l.Refill / divisor, Mul(l.Period, Milli) / divisor
}
