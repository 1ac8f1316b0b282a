package dynamo

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// charge is one logical write: of one bucket by an update, of several by a transaction. Every try has the same op, so
// that one which was applied although its reply was lost is recognised.
type charge struct {
	*session

	legs []*leg
	op   string

	tries     int  // writes, and reads that failed
	lostAt    *leg // where the last race was lost
	budget    int  // of tries
	conflicts int  // tries that met a transaction
	throttled bool // some try was
	cause     error
	pending   *transaction // of unknown outcome: it goes again as it is
}

func (s *session) newCharge(legs []*leg) *charge {
	return &charge{session: s, legs: legs, op: newOp(), lostAt: legs[0], budget: s.attempts}
}

// settling reports that it settles a lease, of which it has one bucket.
func (c *charge) settling() bool { return c.legs[0].settle }

// charge drives the legs' wants to one committed write, or to the reason why there is none.
func (s *session) charge(ctx context.Context, legs []*leg) error {
	c := s.newCharge(legs)
	err := c.run(ctx)
	if err != nil && c.unknown() && !c.settling() {
		c.giveBack(ctx)
	}
	return err
}

// run tries until a write is applied, or what is known decides against one. An acquire has a number of tries; a settle
// goes on until ctx ends.
func (c *charge) run(ctx context.Context) error {
	var failed error // what the last try met
	for {
		verdict := write
		var known *runtime.DeniedError // while the rest of the chain is still to be read
		if c.pending == nil {
			now := c.now()
			switch verdict = c.choices(now); verdict {
			case refuse:
				return c.denied(now)
			case exceed:
				return c.exceeded()
			case skip:
				return nil
			case look:
				known = c.denied(now)
			case write:
			}
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
		if verdict == look {
			if done, failed, err = c.look(ctx); failed != nil && known != nil {
				return known // whatever the rest would say, and whatever policy there is for not being told
			}
		} else {
			done, failed, err = c.try(ctx)
		}
		if done || err != nil {
			return err
		}
	}
}

// choices plans every leg, and returns what to do about them all.
func (c *charge) choices(now int64) verdict {
	var lacking, doubted, refused, exceeded bool
	skipped := 0
	for _, l := range c.legs {
		l.lacks = c.lacksLevels(l, now)
		if l.shape == nil {
			if l.view.img == nil && !l.view.truth {
				l.lacks |= image // both in one read
			}
			lacking = true
			continue
		}
		l.plan = c.choose(&l.want, l.current(now), now)
		l.lacks |= l.lacksWhole(&l.plan)
		switch l.plan.verdict {
		case look:
			l.lacks |= image
			doubted = doubted || l.view.img != nil
		case refuse:
			refused = true
		case exceed:
			exceeded = true
		case skip:
			skipped++
		case write:
			if len(c.legs) > 1 {
				l.plan.fence()
			}
		}
		lacking = lacking || l.lacks != 0
	}
	if doubted || refused || exceeded { // a denial is to say how the whole chain stands: in one read, and no worse than it is
		for _, l := range c.legs {
			if l.shape != nil && l.plan.verdict == write && !l.view.truth && !l.passed {
				l.lacks |= image
				lacking = true
			}
		}
	}
	switch {
	case lacking:
		return look
	case exceeded:
		return exceed
	case refused:
		return refuse
	case skipped == len(c.legs):
		return skip
	}
	return write
}

// denied returns the denial of all legs that refuse, as far as is known: nil for none.
func (c *charge) denied(now int64) *runtime.DeniedError {
	var denied *runtime.DeniedError
	for _, l := range c.legs {
		if img := l.plan.refusing(); img != nil && l.lacks == 0 {
			l.show(img)
			denied = runtime.Refuse(denied, l.spec, l.entity, img, l.cost, now)
		}
	}
	return denied
}

// exceeded returns the error of the first leg whose cost is above a burst.
func (c *charge) exceeded() error {
	for _, l := range c.legs {
		if l.plan.verdict == exceed {
			return runtime.Exceeds(l.spec, l.entity, l.plan.img, l.cost)
		}
	}
	return nil
}

// current is the view of the bucket as of now.
func (l *leg) current(now int64) view {
	v := l.view
	v.yield = l.memory.yield.Load() > now
	return v
}

// look reads what the legs lack. done reports that the charge turns out to have been applied; failed is why to try again,
// err why not to.
func (c *charge) look(ctx context.Context) (done bool, failed, err error) {
	attempt, cancel := c.attempt(ctx)
	defer cancel()
	switch o, err := c.fetch(attempt); o {
	case applied:
	case fatal:
		return false, nil, err
	default:
		c.tries++
		return false, c.unavailable(o, err), nil
	}
	if c.unknown() && len(c.legs) == 1 && c.wrote(c.legs[0]) { // a try without reply had been applied
		c.finish(ctx, c.legs[0], c.legs[0].sent)
		return true, nil, nil
	}
	return false, nil, nil
}

// unknown reports that some try may have been applied, or was although it failed. A transaction is of all legs.
func (c *charge) unknown() bool { return c.legs[0].sent != nil }

// wrote reports that the last write of l, as far as is known, was this charge.
func (c *charge) wrote(l *leg) bool { return l.view.img != nil && l.view.img.Op == c.op }

// peek reads the buckets consistently, and the overrides where they are due.
func (c *charge) peek(ctx context.Context) error {
	for c.lacking(func(l *leg) bool { return !l.view.truth }) {
		_, failed, err := c.look(ctx)
		if err == nil && failed != nil {
			err = c.again(ctx, failed)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lacking notes what is to be read: overrides that are due, and images that unread says so of. It reports whether that is
// anything.
func (c *charge) lacking(unread func(*leg) bool) bool {
	now, lacking := c.now(), false
	for _, l := range c.legs {
		l.lacks = c.lacksLevels(l, now)
		if unread(l) {
			l.lacks |= image
		}
		lacking = lacking || l.lacks != 0
	}
	return lacking
}

// try sends what was chosen: a bare reshape by itself, ahead of the rest. Its results are look's.
func (c *charge) try(ctx context.Context) (done bool, failed, err error) {
	if len(c.legs) == 1 {
		return c.tryOne(ctx, c.legs[0])
	}
	if c.pending == nil {
		for _, l := range c.legs {
			if l.plan.bare {
				return c.tryOne(ctx, l)
			}
		}
	}
	return c.tryTransaction(ctx)
}

// tryOne sends the plan of one leg: of the only one, or a bare reshape.
func (c *charge) tryOne(ctx context.Context, l *leg) (done bool, failed, err error) {
	p, op := l.plan, c.op
	if p.bare {
		op = newOp()
	}
	c.tries++
	refund := l.settle && slices.ContainsFunc(p.cost, negative)
	attempt, cancel := ctx, context.CancelFunc(func() {})
	if !refund { // which has only one
		attempt, cancel = c.attempt(ctx)
	}
	defer cancel()
	r := c.send(attempt, l, &p, op)
	if !p.bare && (r.outcome == unknown || r.stands) {
		l.sent = &p
	}
	switch r.outcome {
	case applied:
		l.learn(r.img, true)
		if p.bare {
			c.recordRevision(ctx)
			return false, nil, nil
		}
		c.finish(ctx, l, &p)
		return true, nil, nil
	case refused:
		return c.refused(ctx, l, &p, r.img)
	case conflict:
		c.conflicts++
		return false, c.lost(), nil
	case unknown:
		l.view.truth = false
		if refund {
			return false, nil, c.unavailable(r.outcome, r.err) // one that went out twice would mint tokens
		}
		return false, c.unavailable(r.outcome, r.err), nil
	case throttled, unapplied:
		l.view.truth = false
		return false, c.unavailable(r.outcome, r.err), nil
	default:
		return false, nil, r.err
	}
}

func negative(n int64) bool { return n < 0 }

// refused draws the consequence of a failed condition, whose image is the truth.
func (c *charge) refused(ctx context.Context, l *leg, p *plan, found *bucket.Image) (done bool, failed, err error) {
	l.learn(found, true)
	switch {
	case !p.bare && c.wrote(l): // an earlier copy had been applied
		c.finish(ctx, l, p)
		return true, nil, nil
	case found == nil && c.tries < c.budget: // nobody to race with
		return false, nil, nil
	}
	c.raced(l, p, found)
	return false, c.lost(), nil
}

// raced notes that p, a Normal, lost to another writer: for a while this process's leave room at the top.
func (c *charge) raced(l *leg, p *plan, found *bucket.Image) {
	if p.path == normal && found != nil && found.Version == p.img.Version {
		l.memory.yield.Store(c.now() + contention)
	}
}

// unavailable is the error of a try that had no answer. A context that ended during the last try says little: then it
// names what an earlier one met as well.
func (c *charge) unavailable(o outcome, err error) error {
	if setup, ok := errors.AsType[*runtime.SetupError](err); ok {
		return setup
	}
	c.throttled = c.throttled || o == throttled
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		c.cause = err
	} else if c.cause != nil {
		err = fmt.Errorf("%w, after %w", err, c.cause)
	}
	return &runtime.UnavailableError{Resource: c.legs[0].spec.Resource, Attempts: c.tries, Throttled: c.throttled, Err: err}
}

// lost returns the error of a charge that lost its races. It is a ContendedError, which promises that nothing was charged
// and that trying again is safe, only where that is so.
func (c *charge) lost() error {
	l := c.lostAt
	if !c.unknown() && !c.settling() {
		return &runtime.ContendedError{Resource: l.spec.Resource, Entity: l.entity, Attempts: c.tries, Conflicts: c.conflicts}
	}
	return &runtime.UnavailableError{Resource: l.spec.Resource, Attempts: c.tries, Throttled: c.throttled, Err: errContended}
}

var errContended = errors.New("every write lost its race against other writers")

// finish notes what p did, the applied plan of the only leg, and mends what it left.
func (c *charge) finish(ctx context.Context, l *leg, p *plan) {
	c.committed(ctx, l, p)
	c.mend(ctx, l)
}

// mend writes the bucket's ttl anew if it turns out too short: the image that it was computed from knew less debt than the
// bucket has.
func (s *session) mend(ctx context.Context, l *leg) {
	if l.view.img == nil || !shortLived(l.view.img) {
		return
	}
	p := planAdjust(make([]int64, len(l.view.img.Balances)), l.view.img, l.shape, s.now())
	p.verdict, p.repair = write, true
	if r := s.send(ctx, l, &p, newOp()); r.outcome == applied {
		l.learn(r.img, true)
	}
}

// committed notes what p did, l's applied plan: it tells the caller which limits the bucket had no use for. An earlier try
// of the same call may have said so of others.
func (c *charge) committed(ctx context.Context, l *leg, p *plan) {
	dropped := p.missing
	if dropped != nil {
		dropped = dropped[:len(l.cost)]
	}
	for _, b := range l.buckets {
		b.Dropped = dropped
	}
	if p.path == reshape {
		c.recordRevision(ctx)
	}
}

// newOp returns an id for a logical write: 72 random bits.
func newOp() string {
	var id [9]byte
	rand.Read(id[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(id[:])
}
