package bucket

import (
	"iter"
	"math"
	"slices"
)

// Step is what one write does to a windowed limit.
type Step struct {
	Fill   int64 // added before the cost is taken: what opens the next window
	Lo, Hi int64 // the bounds of Tokens; math.MinInt64 and math.MaxInt64 for none
	Ends   int64 // of the window that is open after the write
}

// Step returns the step of a write at now, in ms, to a windowed limit. take is what acquires take, cost what
// acquires and settles take, and give what comes back to the open window. c opens the next window. It is not
// asked if cost is 0 or the window is open: the stored end decides. ok is false if there are too few tokens
// for take.
func (b Balance) Step(c *Calendar, take, cost, give, now int64) (s Step, ok bool) {
	s = Step{Lo: math.MinInt64, Hi: math.MaxInt64, Ends: b.Ends}
	switch {
	case !b.Over(now) && take > 0:
		s.Lo = Sub(take, give)
		return s, b.Tokens >= s.Lo
	case b.Over(now) && cost > 0: // a claim: the balance must be the image's
		s.Fill, s.Lo, s.Hi = Sub(b.Burst, b.Tokens), b.Tokens, b.Tokens
		if s.Ends = c.End(now, b.Ends); c.nominal() != b.Period {
			s.Ends = Add(max(now, b.Ends), b.Period) // a newer binary has windows of another length
		}
		return s, take <= b.Burst
	}
	return s, true
}

// Reshape returns the step of a write at now, in ms, that gives a windowed limit the numbers of l and takes
// cost. Usage of the open window stays. If l has shorter windows, so that the open one would last for more
// than two of them, it ends as c says. A changed start or zone alone makes a window of up to one and a half,
// and a shift of the clock. A zone that moves across the date line shifts it by a day. ok is false if there
// are too few tokens.
func (b Balance) Reshape(c *Calendar, l Limit, cost, now int64) (s Step, ok bool) {
	reshaped := b
	reshaped.Limit, reshaped.Tokens = l, Add(b.Tokens, Sub(l.Burst, b.Burst))
	longest := 2 * l.Period
	if c.Half() > 0 {
		longest += day
	}
	if b.Ends > Add(now, longest) && !l.Prepaid() {
		reshaped.Ends = c.End(now, 0)
	}
	s, ok = reshaped.Step(c, cost, cost, 0, now)
	more := Sub(reshaped.Tokens, b.Tokens) // the bounds are of the stored balance
	s.Fill = Add(s.Fill, more)
	if s.Lo != math.MinInt64 {
		s.Lo = Sub(s.Lo, more)
	}
	if s.Hi != math.MaxInt64 {
		s.Hi = Sub(s.Hi, more)
	}
	return s, ok
}

// Charge is what one acquire, or one More, took of a bucket.
type Charge struct {
	Cost []int64 // in millitokens and schema order
	Ends []int64 // ms, by limit: the ends of the windows that it was taken from, 0 for none; nil if all are 0

	// Epochs are those in which its tokens are held, by limit: 0 for a limit without holds, Lost for a hold that
	// does not count any more. It is nil if all are 0.
	Epochs []int64
}

// lapsed returns what of n tokens of the i-th limit, whose balance is b, counts in usage alone. More than
// was charged lapses too.
func (b Balance) lapsed(n int64, i int, charges []Charge, now int64) (lapsed int64) {
	lapsed = n
	for part, ends := range Returned(n, i, charges) {
		if ends == b.Ends && !b.Over(now) {
			lapsed = Sub(lapsed, part)
		}
	}
	return lapsed
}

// Returned yields the parts of n tokens of the i-th limit that come back to charges, and the ends of the
// windows that they were taken from. Charges are oldest first, and the newest comes back first.
func Returned(n int64, i int, charges []Charge) iter.Seq2[int64, int64] {
	return func(yield func(part, ends int64) bool) {
		for _, c := range slices.Backward(charges) {
			part := min(n, c.Cost[i])
			if part <= 0 {
				continue
			}
			if n -= part; !yield(part, c.ends(i)) {
				return
			}
		}
	}
}

// Filled returns the end of b's window once it is filled at an instant, in ms, with the numbers of l. It is a
// millisecond later, so that what was charged before does not come back. A window that is too long for l is
// over at once. Filled is 0 if no window was opened yet. One that never ends stays as it is.
func (b Balance) Filled(l Limit, at int64) int64 {
	switch {
	case l.Prepaid():
		return NeverEnds
	case b.Ends == 0:
		return 0
	case b.Ends > Add(at, 2*l.Period+day):
		return at
	}
	return b.Ends + 1
}
