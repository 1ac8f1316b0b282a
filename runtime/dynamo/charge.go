package dynamo

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime"
)

// charge drives w to one committed write, or to the reason why there is none.
func (s *session) charge(ctx context.Context, b *slot, w *want) error {
	c := &charge{session: s, slot: b, want: w, op: newOp(), budget: s.attempts}
	err := c.run(ctx)
	if err != nil && c.unknown && !w.settle {
		s.giveBack(ctx, c)
	}
	return err
}

// charge is one logical write of one bucket: the same op on every try, so that a try which was applied although its reply
// was lost is recognised.
type charge struct {
	*session
	*slot
	*want

	op      string
	unknown bool  // some try may have been applied, or was although it failed
	tries   int   // writes, and reads that failed
	budget  int   // of tries
	cause   error // of the last try that failed for another reason than ctx
	sent    *plan // the last try that may have been applied
}

// run tries until a write is applied, or what is known decides against one. An acquire has a number of tries; a settle
// goes on until ctx ends.
func (c *charge) run(ctx context.Context) error {
	var failed error // what the last try met
	for {
		now := c.now()
		p := c.choose(c.want, c.current(now), now)
		p.settle = c.settle
		switch p.verdict {
		case refuse:
			c.bucket.After = p.img
			return runtime.Refuse(nil, c.spec, c.bucket.Entity, p.img, c.cost, now)
		case exceed:
			return runtime.Exceeds(c.spec, c.bucket.Entity, p.img, c.cost)
		case skip:
			return nil
		case look, write:
		}
		// Only now, with something to send, does it matter how the last try ended: a refused write's image may deny at once.
		if failed != nil {
			if err := c.again(ctx, failed); err != nil {
				return err
			}
			failed = nil
			continue // time has passed
		}
		var done bool
		var err error
		if p.verdict == look {
			done, failed, err = c.look(ctx)
		} else {
			done, failed, err = c.try(ctx, &p)
		}
		if done || err != nil {
			return err
		}
	}
}

// current is the view of the bucket as of now.
func (c *charge) current(now int64) view {
	v := c.view
	v.yield = c.memory.yield.Load() > now
	return v
}

// look reads the bucket. done reports that the charge turns out to have been applied; failed is why to try again, err why
// not to.
func (c *charge) look(ctx context.Context) (done bool, failed, err error) {
	switch o, err := c.read(ctx, c.slot); o {
	case applied:
	case fatal:
		return false, nil, err
	default:
		c.tries++
		return false, c.unavailable(err), nil
	}
	if c.unknown && c.view.img != nil && c.view.img.Op == c.op { // a try without reply had been applied
		c.finish(ctx, c.sent)
		return true, nil, nil
	}
	return false, nil, nil
}

// try sends p. Its results are look's.
func (c *charge) try(ctx context.Context, p *plan) (done bool, failed, err error) {
	op := c.op
	if p.bare {
		op = newOp()
	}
	c.tries++
	r := c.send(ctx, c.slot, p, op)
	if !p.bare && (r.outcome == unknown || r.stands) {
		c.unknown, c.sent = true, p
	}
	switch r.outcome {
	case applied:
		c.learn(r.img)
		if p.bare {
			c.recordRevision(ctx)
			return false, nil, nil
		}
		c.finish(ctx, p)
		return true, nil, nil
	case refused:
		return c.refused(ctx, p, op, r)
	case unknown:
		c.view.truth = false
		if c.settle && slices.ContainsFunc(p.cost, func(n int64) bool { return n < 0 }) {
			return false, nil, c.unavailable(r.err) // a refund that went out twice would mint tokens
		}
		return false, c.unavailable(r.err), nil
	case unapplied:
		c.view.truth = false
		return false, c.unavailable(r.err), nil
	default:
		return false, nil, r.err
	}
}

// refused draws the consequence of a failed condition, whose image is the truth.
func (c *charge) refused(ctx context.Context, p *plan, op string, r reply) (done bool, failed, err error) {
	c.learn(r.img)
	switch {
	case r.img != nil && r.img.Op == op && !p.bare: // an earlier copy had been applied
		c.finish(ctx, p)
		return true, nil, nil
	case r.img == nil && c.tries < c.budget: // nobody to race with
		return false, nil, nil
	case p.path == normal && r.img != nil && r.img.Version == p.img.Version:
		c.memory.yield.Store(c.now() + contention)
	}
	return false, c.lost(), nil
}

// again waits for the next try, or returns why there is none, failed being what the last one met.
func (c *charge) again(ctx context.Context, failed error) error {
	if ctx.Err() != nil {
		return c.ended(ctx, failed)
	}
	if !c.settle && c.tries >= c.budget {
		return failed
	}
	return c.pause(ctx, failed)
}

// unavailable is the error of a try that had no answer. A context that ended during the last try says little: then it
// names what an earlier one met as well.
func (c *charge) unavailable(err error) error {
	if setup, ok := errors.AsType[*runtime.SetupError](err); ok {
		return setup
	}
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		c.cause = err
	} else if c.cause != nil {
		err = fmt.Errorf("%w, after %w", err, c.cause)
	}
	return &runtime.UnavailableError{Resource: c.spec.Resource, Attempts: c.tries, Err: err}
}

// lost returns the error of a charge that lost its races. It is a ContendedError, which promises that nothing was charged
// and that trying again is safe, only where that is so.
func (c *charge) lost() error {
	if !c.unknown && !c.settle {
		return &runtime.ContendedError{Resource: c.spec.Resource, Entity: c.bucket.Entity, Attempts: c.tries}
	}
	return &runtime.UnavailableError{Resource: c.spec.Resource, Attempts: c.tries, Err: errContended}
}

var errContended = errors.New("every write lost its race against other writers")

// ended returns what to tell a caller whose context is over, err being what the last try met: its own cancellation as it
// is, and a deadline as what kept the charge from being done in time.
func (c *charge) ended(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("sluice: %s for %s: %w", c.spec.Resource, c.bucket.Entity, ctx.Err())
	}
	if u, ok := errors.AsType[*runtime.UnavailableError](err); ok && !errors.Is(u.Err, context.DeadlineExceeded) {
		u.Err = errors.Join(context.DeadlineExceeded, u.Err)
	}
	return err
}

// pause sleeps before the next try: full jitter, up to 8 ms after the first and 256 ms in the end. Shorter pauses lose
// more races, each at a write unit: in the simulation's overload, 64 writers at 13 times the limit, 4.4 writes per
// admitted acquire with 2 ms and 2.7 with 8; longer ones would keep an uncontended bucket's second try waiting.
func (c *charge) pause(ctx context.Context, err error) error {
	most := 8 * time.Millisecond << min(c.tries-1, 5)
	select {
	case <-c.env.Clock.After(time.Duration(c.jitter() * float64(most))):
		return nil
	case <-ctx.Done():
		return c.ended(ctx, err)
	}
}

// finish notes what the applied plan did, and mends its ttl if it turns out too short: the image that it was computed
// from knew less debt than the bucket has.
func (c *charge) finish(ctx context.Context, p *plan) {
	if p.missing != nil {
		c.bucket.Dropped = p.missing[:len(c.cost)]
	}
	if p.path == reshape {
		c.recordRevision(ctx)
	}
	if img := c.view.img; img != nil && shortLived(img) {
		mend := planAdjust(make([]int64, len(c.cost)), img, c.slot.shape, c.now())
		mend.verdict, mend.repair = write, true
		if r := c.send(ctx, c.slot, &mend, newOp()); r.outcome == applied {
			c.learn(r.img)
		}
	}
}

// newOp returns an id for a logical write: 72 random bits.
func newOp() string {
	var id [9]byte
	rand.Read(id[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(id[:])
}
