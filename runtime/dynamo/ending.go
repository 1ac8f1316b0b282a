package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/store"
)

// end has r end with err, unless it has ended.
func (c *charge) end(r *request, err error) {
	if r.ended {
		return
	}
	if err != nil {
		c.found(r)
	}
	c.lane.memory.mu.Lock()
	r.ended = true
	gone := r.gone
	if !gone { // who has gone knows why
		if r.err = err; r.done != nil {
			close(r.done)
		}
	}
	c.lane.memory.mu.Unlock()
	switch {
	case r.later != nil:
		if r.givesBack() {
			r.shares[0].memory.returned(-1)
		}
		c.background.Start(func() { r.later(err) }) // not on this goroutine, for which others wait: observers are told
	case gone && err == nil && !r.settle:
		c.giveUp(r)
	}
}

// sweep forgets those who have ended.
func (c *charge) sweep() {
	for _, list := range [...]*[]*request{&c.members, &c.aboard, &c.party} {
		if slices.ContainsFunc(*list, (*request).hasEnded) { // the lists may share what they are made of
			*list = slices.DeleteFunc(slices.Clone(*list), (*request).hasEnded)
		}
	}
}

// found notes for r, which has come to nothing, how its buckets were found.
func (c *charge) found(r *request) {
	for i, l := range c.legs {
		sh := r.at(i)
		if sh == nil {
			continue
		}
		if sh.after = l.view.Image; l.shape != nil {
			sh.limits = l.shape.InForce(c.now())
		}
		if img := l.plan.DeniedImage(); img != nil && l.lacks == 0 {
			sh.after = img
		}
	}
}

// endAll ends requests as err says.
func (c *charge) endAll(all []*request, err func(*request) error) {
	for _, r := range all {
		c.end(r, err(r))
	}
}

// done ends those for whom the legs' plans were written, and those for whom these left nothing.
func (c *charge) done(all []*request) {
	for _, r := range all {
		c.end(r, nil)
	}
	c.pass()
	c.reset()
}

// unavailable is the error of a try that had no answer. A context that ended during the last try says little: then it
// names what an earlier one met as well.
func (c *charge) unavailable(o wire.Outcome, err error) error {
	if setup, ok := errors.AsType[*store.SetupError](err); ok {
		return setup
	}
	c.throttled = c.throttled || o == wire.Throttled
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		c.cause = err
	} else if c.cause != nil {
		err = fmt.Errorf("%w, after %w", err, c.cause)
	}
	return &store.UnavailableError{Resource: c.legs[0].spec.Resource, Throttled: c.throttled, Err: err}
}

// lost is what a try met that lost its race, or met a transaction at work.
func (c *charge) lost() error {
	return &store.ContendedError{Resource: c.lostAt.spec.Resource, Entity: c.lostAt.entity, Conflicts: c.conflicts}
}

// told returns what r is told of what the last try met. A ContendedError promises that nothing was charged and that trying
// again is safe: it is one only where that is so.
func (c *charge) told(r *request) error {
	if u, ok := errors.AsType[*store.UnavailableError](c.failed); ok {
		own := *u
		own.Attempts = r.tries
		return &own
	}
	lost, ok := errors.AsType[*store.ContendedError](c.failed)
	switch {
	case !ok:
		return c.failed
	case !c.unknown() && !r.settle:
		own := *lost
		own.Attempts = r.tries
		return &own
	}
	return &store.UnavailableError{Resource: lost.Resource, Attempts: r.tries, Throttled: c.throttled, Err: errContended}
}

var errContended = errors.New("every write lost its race against other writers")
