package dynamo

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/store"
)

// pause waits for the next try, and ends those for whom there is none.
func (c *charge) pause(ctx context.Context) {
	_, outage := errors.AsType[*store.UnavailableError](c.failed)
	spent := outage && !c.retries.Take(ctx)
	for _, r := range c.members {
		switch {
		case r.over():
			c.quit(r, r.ends(c.told(r)))
		case !r.settle && (spent || r.tries >= c.attempts):
			c.quit(r, c.told(r))
		}
	}
	if c.sweep(); len(c.members) == 0 {
		return
	}
	tries := c.tries
	if outage { // who has just come does not wait as long as those who have tried for long; a race is lost to the same writers
		for _, r := range c.members {
			tries = min(tries, max(r.tries, 1))
		}
	}
	most := wire.Backoff(firstPause, tries)
	if spent {
		most = time.Second // settles have until their time-out, and nowhere else to go
	}
	var company <-chan struct{}
	if outage && !c.unknown() { // while it is unknown what became of a write, nobody joins
		company = c.lane.company()
	}
	ctx, cancel := untilFirst(ctx, c.members)
	defer cancel()
	select {
	case <-company:
	case <-c.env.Clock.After(time.Duration(c.jitter() * float64(most))):
	case <-ctx.Done():
		for _, r := range c.members {
			if r.over() {
				c.quit(r, r.ends(c.told(r)))
			}
		}
	}
	c.failed, c.met = nil, c.failed
}

// quit ends r, for which there is no other try. While it is unknown whether its part was charged, together with others', it
// stays aboard: its caller is told now, and given back later what turns out to have been charged.
func (c *charge) quit(r *request, err error) {
	if r.settle || r.done == nil || !c.unknown() || !slices.Contains(c.party, r) {
		c.end(r, err)
		return
	}
	c.lane.memory.mu.Lock()
	defer c.lane.memory.mu.Unlock()
	if r.told = true; !r.gone {
		r.err, r.gone = err, true
		close(r.done)
	}
}

// soonest returns the first deadline among all who have not been told yet, zero for none. Of one that is its context's, that
// tells.
func soonest(all []*request) (first time.Time) {
	for _, r := range all {
		if d := r.deadline; !r.told && !r.theirs && !d.IsZero() && (first.IsZero() || d.Before(first)) {
			first = d
		}
	}
	return first
}

// untilFirst returns a context that ends with the first deadline among all.
func untilFirst(ctx context.Context, all []*request) (context.Context, context.CancelFunc) {
	if first := soonest(all); !first.IsZero() {
		return context.WithDeadline(ctx, first)
	}
	return ctx, func() {}
}

// firstPause is the longest sleep after a charge's first try; the last ones are up to 256 ms. Shorter pauses lose more races,
// each at a write unit: in the simulation's overload, 64 writers at 13 times the limit, 4.4 writes per admitted acquire with
// 2 ms and 2.7 with 8; longer ones would keep an uncontended bucket's second try waiting.
const firstPause = 8 * time.Millisecond

// attempt bounds one try for all. Who has less time than the others leaves by itself, and does not cut them off; a lone caller
// who works for itself cannot.
func attempt(ctx context.Context, all []*request) (context.Context, context.CancelFunc) {
	if len(all) == 0 {
		return context.WithTimeout(ctx, shortestAttempt)
	}
	last, settles := all[0].deadline, true
	for _, r := range all {
		if r.deadline.IsZero() || last.IsZero() {
			last = time.Time{}
		} else if r.deadline.After(last) {
			last = r.deadline
		}
		settles = settles && r.settle
	}
	if last.IsZero() {
		return ctx, func() {}
	}
	within := left(last)
	switch {
	case settles: // they have much more time than acquires, which may wait behind them
		within = max(within*3/20, shortestAttempt)
	case len(all) == 1: // a request that nobody answers leaves time for another
		within = max(within/2, shortestAttempt)
	default: // they have waited for another's reply, so there are some
		within = max(within*3/4, shortestAttempt)
	}
	if own, ok := ctx.Deadline(); all[0].done == nil && all[0].tries <= 1 && (!ok || own.After(last)) { // else ctx ends it
		within = min(within, left(last)) // a later try may outlast it, rather than leave open what became of it
	}
	return context.WithTimeout(ctx, within)
}

// shortestAttempt is far above what DynamoDB takes for one item.
const shortestAttempt = 100 * time.Millisecond
