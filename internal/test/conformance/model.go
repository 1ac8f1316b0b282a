package conformance

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// ideal is a bucket as it should be: one balance for each limit.
type ideal struct {
	limits  []bucket.Limit
	windows []*bucket.Calendar // by limit, nil where it refills; nil if all do
	tokens  []int64            // at this instant, ms
	at      int64
	ends    []int64 // of the open window, 0 before the first and where the limit refills
	used    []int64 // usage: what was taken, and not given back by a settle or release
	holds   []*hold // what open leases and dead processes hold
	ahead   []int64 // by limit: the latest epoch in which a reset or a revision may have a hold be; 0 for none
}

func newIdeal(limits []bucket.Limit, windows []*bucket.Calendar) *ideal {
	n := len(limits)
	b := &ideal{limits: limits, windows: windows, ends: make([]int64, n), used: make([]int64, n),
		ahead: make([]int64, n)}
	for _, l := range limits {
		b.tokens = append(b.tokens, l.Burst)
	}
	return b
}

func (b *ideal) balance(i int, now int64) bucket.Balance {
	return bucket.Balance{Limit: b.limits[i], Tokens: b.tokens[i] + b.over(i, now), Ends: b.ends[i]}
}

// available returns what the i-th limit has at now, in millitokens.
func (b *ideal) available(i int, now int64) int64 {
	return bucket.Available(b.balance(i, now), b.at, now)
}

// wait returns how long after now the i-th limit has cost.
func (b *ideal) wait(i int, now, cost int64) time.Duration {
	return bucket.RetryAfter(b.balance(i, now), b.at, now, cost)
}

// take takes cost at now, into debt if need be. It gives negative costs back. Of a limit with windows, a cost
// opens the next window if the last one is over, in which nothing is held.
func (b *ideal) take(cost []int64, now int64) {
	b.sweep(now)
	for i, c := range cost {
		switch {
		case b.limits[i].Absent() || b.limits[i].Windowed() && c == 0:
			continue
		case b.limits[i].Windowed() && now >= b.ends[i]:
			b.tokens[i], b.ends[i] = b.limits[i].Burst, b.windows[i].End(now, b.ends[i])
			b.endAll(i)
		}
		b.tokens[i] = min(b.available(i, now)-c, b.limits[i].Burst)
	}
	b.at = max(b.at, now)
}

// reshape puts limits in force since the last take. Usage of a window stays, and what is held. A limit that
// is new is full.
func (b *ideal) reshape(limits []bucket.Limit) {
	for i, l := range limits {
		if l.Windowed() || l.InFlight() {
			b.tokens[i] += l.Burst - b.limits[i].Burst
			continue
		}
		b.tokens[i] = min(b.tokens[i], l.Burst)
	}
	b.limits = limits
}

// portion is what a call asks of one bucket, in millitokens.
type portion struct {
	*ideal
	resource, entity string
	names            []string // of limits
	cost             []int64
	charges          []taking // what a lease took, oldest first
}

// taking is what one call of a lease took, and what it holds of that.
type taking struct {
	bucket.Charge
	holds []*hold // by limit, nil for what is not held; nil if nothing is
}

// pay takes p's cost at now, and adds it to p's charges.
func (p *portion) pay(now int64) {
	p.take(p.cost, now)
	for i, c := range p.cost {
		if !p.limits[i].Absent() {
			p.used[i] += c
		}
	}
	p.charges = append(p.charges, taking{bucket.Charge{Cost: p.cost, Ends: slices.Clone(p.ends)}, nil})
}

// settle turns what p took into actual at now. Nothing comes back to a window that is over, or that is not
// the open one.
func (p *portion) settle(actual []int64, now int64) {
	p.sweep(now)
	change := slices.Clone(actual)
	for i, c := range p.cost {
		switch change[i] -= c; {
		case p.limits[i].Absent():
			continue
		case p.limits[i].InFlight():
			change[i] = p.slots(i, actual[i] == 0)
			continue
		}
		p.used[i] += change[i]
		if p.limits[i].Windowed() {
			change[i] = p.returned(i, change[i], now)
		}
	}
	p.take(change, now)
}

// returned returns what the settle of a windowed limit takes, of which it is to take change.
func (p *portion) returned(i int, change, now int64) int64 {
	back := max(0, -change)
	change = max(0, change)
	for _, c := range slices.Backward(p.charges) {
		part := min(back, c.Cost[i])
		back -= part
		if c.Ends[i] != p.ends[i] || now >= p.ends[i] {
			continue
		}
		if h := c.hold(i); h != nil && !h.end() { // all of it comes back by itself
			change += h.tokens
		}
		change -= part
	}
	return change
}

// judge holds a store's answers to the model.
type judge struct{ slack int64 }

// of returns how many millitokens l may be off.
func (j judge) of(l bucket.Limit) int64 {
	if l.Absent() || l.Refill%l.Period == 0 {
		return 0
	}
	return j.slack
}

// late returns how far retry after may be off.
func (j judge) late(l bucket.Limit) time.Duration {
	slack := j.of(l)
	if slack == 0 {
		return 0
	}
	return time.Duration((slack*l.Period+l.Refill-1)/l.Refill+1) * time.Millisecond
}

// exceeding returns the errors, in order, of the portions' costs that exceed a burst.
func exceeding(portions []portion) (all []store.CostTooLargeError) {
	for _, s := range portions {
		for i, cost := range s.cost {
			if cost > s.limits[i].Burst && !s.limits[i].Absent() {
				all = append(all, store.CostTooLargeError{
					Resource: s.resource, Entity: s.entity, Limit: s.names[i],
					Requested: cost / bucket.Milli, Burst: s.limits[i].Burst / bucket.Milli,
				})
			}
		}
	}
	return all
}

// acquire says what is wrong with err, the outcome of a call for portions that was decided on at now. It
// returns "" if nothing is. If a call asks its buckets one by one, any may be the first to refuse, and the
// others are not asked.
func (j judge) acquire(portions []portion, now int64, err error, oneByOne bool) string {
	if wrong, judged := tooLarge(portions, err, oneByOne); judged {
		return wrong
	}
	var must, may []string // refuse
	denied, ok := errors.AsType[*store.DeniedError](err)
	if err != nil && !ok {
		return fmt.Sprintf("failed: %v", err)
	}
	var refusals []store.Refusal
	if denied != nil {
		refusals = denied.Refusals
	}
	for _, s := range portions {
		for i, cost := range s.cost {
			have, slack := s.available(i, now), j.of(s.limits[i])
			what := fmt.Sprintf("%s %s: %s of %s mt", s.entity, s.names[i], thousands(have), thousands(cost))
			switch {
			case s.limits[i].Absent(), cost <= 0 || have > cost+slack || slack == 0 && have == cost:
				continue
			case have < cost-slack || slack == 0:
				must = append(must, what)
			default:
				may = append(may, what)
			}
			if len(refusals) == 0 || refusals[0].Entity != s.entity || refusals[0].Limit != s.names[i] {
				if n := len(must); n > 0 && must[n-1] == what && (!oneByOne || denied == nil) {
					return fmt.Sprintf("%s refuses, and was not named next: %v", what, err)
				}
				continue
			}
			if wrong := j.refusal(&s, i, now, refusals[0]); wrong != "" {
				return wrong
			}
			refusals = refusals[1:]
		}
	}
	switch {
	case len(refusals) > 0:
		return fmt.Sprintf("refused by %+v, which has the tokens, or out of turn: %v", refusals[0], err)
	case denied == nil && len(must) > 0:
		return fmt.Sprintf("admitted, though %q", must)
	case denied != nil && len(must)+len(may) == 0:
		return fmt.Sprintf("denied, though nothing refuses: %v", err)
	case denied != nil:
		return summary(denied)
	}
	return ""
}

// tooLarge judges err by the costs that exceed a burst. judged is false if these do not decide.
func tooLarge(portions []portion, err error, oneByOne bool) (wrong string, judged bool) {
	never := exceeding(portions)
	got, ok := errors.AsType[*store.CostTooLargeError](err)
	switch {
	case never != nil && !oneByOne:
		if !ok || *got != never[0] {
			return fmt.Sprintf("got %v\nwant %v", err, &never[0]), true
		}
		return "", true
	case ok && slices.Contains(never, *got):
		return "", true
	case never != nil && err == nil:
		return fmt.Sprintf("admitted\nwant %v", &never[0]), true
	}
	return "", false
}

// refusal says what is wrong with the refusal of s's i-th limit.
func (j judge) refusal(s *portion, i int, now int64, got store.Refusal) string {
	l, have := s.limits[i], s.available(i, now)
	slack, late := j.of(l), j.late(l)
	want := s.wait(i, now, s.cost[i])
	least, most := max(0, have-slack)/bucket.Milli, max(0, have+slack)/bucket.Milli
	if got.Resource != s.resource || got.Requested != s.cost[i]/bucket.Milli || got.Available < least ||
		got.Available > most ||
		got.RetryAfter < want-late || got.RetryAfter > want+late || got.RetryAfter < time.Millisecond ||
		!j.resets(got.Resets, s.ideal, i, now) {
		return fmt.Sprintf("refusal %+v\nwant %s of %s mt of %s %s of %s, for %v, give or take %v, until %v",
			got, thousands(have), thousands(s.cost[i]), s.names[i], s.entity, s.resource, want, late, s.resets(i, now))
	}
	return ""
}

// resets reports whether got is when b's i-th limit resets, as a call at now is told.
func (j judge) resets(got time.Time, b *ideal, i int, now int64) bool {
	return got.Equal(b.resets(i, now))
}

// resets returns the end of the i-th limit's open window, the zero time if none is open at now.
func (b *ideal) resets(i int, now int64) time.Time {
	if !b.limits[i].Windowed() || now >= b.ends[i] {
		return time.Time{}
	}
	return time.UnixMilli(b.ends[i]).UTC()
}

// summary says what is wrong with the fields of denied that summarise its refusals.
func summary(denied *store.DeniedError) string {
	longest := denied.Refusals[0]
	for _, r := range denied.Refusals[1:] {
		if r.RetryAfter > longest.RetryAfter {
			longest = r
		}
	}
	said := store.Refusal{
		Resource: denied.Resource, Entity: denied.Entity, Limit: denied.Limit,
		Requested: denied.Requested, Available: denied.Available, RetryAfter: denied.RetryAfter,
		Resets: denied.Resets,
	}
	if said != longest {
		return fmt.Sprintf("the denial says %+v\nits longest refusal %+v", said, longest)
	}
	return ""
}

// thousands writes millitokens such that tokens can be read.
func thousands(milli int64) string {
	sign := ""
	if milli < 0 {
		sign, milli = "-", -milli
	}
	return fmt.Sprintf("%s%d'%03d", sign, milli/bucket.Milli, milli%bucket.Milli)
}
