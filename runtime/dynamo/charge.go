package dynamo

import (
	"context"
	"errors"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/store"
)

// charge is a lane's work: one write after the other, each an update of one bucket or a transaction of several. All tries
// of a write have the same op, so that one which was applied although its reply was lost is recognised.
type charge struct {
	*session

	lane    *lane
	legs    []*leg
	members []*request // who is to be served, in order of arrival
	aboard  []*request // those of them whom the legs' plans serve
	party   []*request // those who were aboard in each try of unknown outcome
	behind  []*request // acquires for whom nothing is left after those aboard
	planned int64      // when that was found, ms

	op        string
	tries     int                // of this write, and of reads that failed before it
	failed    error              // what the last of them met, until the pause that follows
	met       error              // the same, from that pause on
	lostAt    *leg               // where the last race was lost
	conflicts int                // tries that met a transaction
	throttled bool               // some try was
	cause     error              // of the last try that had no answer for another reason than want of time
	pending   *transaction       // of unknown outcome: it goes again as it is
	known     *store.DeniedError // why the only one aboard is denied, while the rest of the chain is still to be read
	base      context.Context    // of the last step

	// What a lone write of one bucket needs, in one piece.
	first leg
	one   [1]*leg
}

// newCharge returns l's work, which begins with r, if that is not nil. The caller has made l busy.
func (s *session) newCharge(l *lane, r *request) *charge {
	var c *charge
	if r != nil {
		c = r.work
	}
	if c == nil {
		c = &charge{}
	}
	c.session, c.lane = s, l
	if r != nil {
		c.members = append(c.members, r)
	}
	return c
}

// apart returns work for r beside all lanes: to read, or to write what applies to one state of a bucket alone.
func (s *session) apart(r *request) *charge {
	return s.newCharge(&lane{memory: &memory{}}, r)
}

// board makes the legs those of the first member, as all have the same.
func (c *charge) board() {
	if c.legs != nil {
		return
	}
	shares := c.members[0].shares
	if c.legs = c.one[:]; len(shares) > 1 {
		c.legs = make([]*leg, len(shares))
	}
	for i := range shares {
		if c.legs[i] = &c.first; i > 0 {
			c.legs[i] = &leg{}
		}
		c.legs[i].board(&shares[i])
	}
	c.lostAt = c.legs[0]
}

// step decides on members by what is known, and then reads or writes once if that is needed.
func (c *charge) step(ctx context.Context) {
	c.board()
	verdict := plan.Write
	if c.pending == nil {
		verdict = c.choices()
		if c.sweep(); verdict == plan.None {
			return
		}
	}
	c.base = ctx
	switch {
	// Only now, with something to send, does it matter how the last try ended: a refused write's image may deny at once, or
	// show that there is nothing left to race for.
	case c.failed != nil && !c.unrivalled():
		c.disembark()
		c.pause(ctx)
	case verdict == plan.Read:
		c.look(ctx)
	default:
		c.failed = nil
		c.try(ctx)
	}
	if c.sweep(); c.unknown() && len(c.party) == 0 {
		c.abandon()
	}
}

// unrivalled reports that the next try needs no pause: the last one lost a race for the refill, which is claimed by now, and
// what is stored suffices for many.
func (c *charge) unrivalled() bool {
	l := c.legs[0]
	if _, lost := errors.AsType[*store.ContendedError](c.failed); !lost || len(c.legs) > 1 || l.plan.Path != plan.Retry || !c.mayTry() {
		return false
	}
	for i, b := range l.view.Image.Balances {
		if l.Take != nil && l.Take[i] > 0 && b.Tokens < b.Burst/2 {
			return false
		}
	}
	return true
}

// reset makes what comes next another write.
func (c *charge) reset() {
	c.op, c.tries, c.failed, c.met, c.cause, c.conflicts, c.throttled, c.pending = "", 0, nil, nil, nil, 0, false, nil
	c.aboard, c.party, c.lostAt = nil, nil, c.legs[0]
	for _, l := range c.legs {
		l.sent, l.resolved, l.surveyed, l.passed, l.view.Confirmed = nil, false, false, false, false
		l.view.Image, l.seen, l.shape = l.memory.known() // others may have written to it beside this lane
	}
}

// look reads what the legs lack.
func (c *charge) look(ctx context.Context) {
	bounded, cancel := attempt(ctx, c.members)
	defer cancel()
	known := c.known
	c.known = nil
	o, err := c.fetch(bounded)
	switch o {
	case wire.Applied:
		if c.unknown() && len(c.legs) == 1 && c.wrote(c.legs[0]) { // a try without reply had been applied
			c.finish(ctx, c.legs[0], &c.legs[0].sent.plan, c.party)
		}
		return
	case wire.Failed:
		c.endAll(c.members, func(*request) error { return err })
		return
	case wire.Refused, wire.Conflict: // somebody else has carried the bucket over, or written to what was to be carried
		c.tried(c.members, nil)
		if o == wire.Conflict {
			c.conflicts++
		}
		c.failed = c.lost()
		return
	}
	if known != nil { // whatever the rest would say, and whatever policy there is for not being told
		c.end(c.aboard[0], known)
		return
	}
	c.tried(c.members, nil)
	c.failed = c.unavailable(o, err)
}

// tried counts a try for those whom it is to serve, and for those whom it is to leave nothing.
func (c *charge) tried(all, behind []*request) {
	c.tries++
	c.lane.memory.mu.Lock()
	defer c.lane.memory.mu.Unlock()
	for _, r := range all {
		r.tries++
	}
	for _, r := range behind {
		r.tries++
	}
}

// unknown reports that some try may have been applied, or was although it failed. A transaction is of all legs.
func (c *charge) unknown() bool { return len(c.legs) > 0 && c.legs[0].sent != nil }

// wrote reports that the last write of l, as far as is known, was this one.
func (c *charge) wrote(l *leg) bool { return l.view.Image != nil && l.view.Image.Op == c.op }

// try sends what was chosen: a bare reshape by itself, ahead of the rest.
func (c *charge) try(ctx context.Context) {
	if c.op == "" {
		c.op = wire.NewOp()
	}
	if len(c.legs) == 1 {
		c.tryOne(ctx, c.legs[0])
		return
	}
	if c.pending == nil {
		for _, l := range c.legs {
			if l.plan.Uncharged {
				c.tryOne(ctx, l)
				return
			}
		}
	}
	c.tryTransaction(ctx)
}

// tryOne sends the plan of one leg: of the only one, or a bare reshape.
func (c *charge) tryOne(ctx context.Context, l *leg) {
	p, op := &l.plan, c.op
	if p.Uncharged {
		op = wire.NewOp()
	}
	c.tried(c.aboard, c.behind)
	served := ctx // a bare write, and what mends a ttl afterwards, serve nobody
	if c.joint != nil && !p.Uncharged {
		served = c.joint(ctx, c.aboard)
	}
	bounded, cancel := attempt(served, c.aboard)
	defer cancel()
	r := c.send(bounded, l, p, op)
	if !p.Uncharged && (r.outcome == wire.Unknown || r.stands) {
		c.party, l.sent = c.aboard, &sent{p.Clone(), slices.Clone(l.Take)}
	}
	switch r.outcome {
	case wire.Applied:
		l.learn(r.img, r.sent)
		if p.Uncharged {
			c.recordRevision(ctx)
			return
		}
		c.finish(ctx, l, p, c.aboard)
	case wire.Refused:
		c.refused(ctx, l, p, &r)
	case wire.Conflict:
		c.conflicts++
		l.memory.raced(r.sent, false)
		c.failed = c.lost()
	case wire.Unknown:
		l.view.Confirmed = false
		c.failed = c.unavailable(r.outcome, r.err)
		// What gives back went out once: twice it would mint tokens.
		for _, r := range c.aboard {
			if r.givesBack() && !p.Uncharged {
				c.end(r, c.told(r))
			}
		}
	case wire.Throttled, wire.NotSent:
		l.view.Confirmed = false
		c.failed = c.unavailable(r.outcome, r.err)
	default:
		c.endAll(c.members, func(*request) error { return r.err })
	}
}

// refused draws the consequence of a failed condition, whose image is the truth.
func (c *charge) refused(ctx context.Context, l *leg, p *plan.Plan, r *reply) {
	found := r.img
	l.learn(found, r.sent)
	switch {
	case !p.Uncharged && c.wrote(l): // an earlier copy had been applied
		if l.sent != nil {
			p = &l.sent.plan
		}
		c.finish(ctx, l, p, c.covered())
		return
	case found == nil && c.mayTry(): // nobody to race with
		return
	}
	c.raced(l, p, found)
	c.failed = c.lost()
}

// mayTry reports whether all who are aboard have tries left.
func (c *charge) mayTry() bool {
	return !slices.ContainsFunc(c.aboard, func(r *request) bool { return !r.settle && r.tries >= c.attempts })
}

// covered returns those for whom a write stands that is known by its op.
func (c *charge) covered() []*request {
	if len(c.party) > 0 {
		return c.party
	}
	return c.aboard
}

// raced notes that p lost to another writer, who left found.
func (c *charge) raced(l *leg, p *plan.Plan, found *bucket.Image) {
	if found != nil {
		l.memory.raced(c.now(), p.Path == plan.Normal && found.Version == p.Image.Version)
	}
}

// finish notes what p did for all, the applied plan of the only leg, mends what it left, and ends them.
func (c *charge) finish(ctx context.Context, l *leg, p *plan.Plan, all []*request) {
	c.committed(ctx, all, 0, p)
	if plan.ExpiresTooSoon(l.view.Image) {
		bounded, cancel := attempt(ctx, all)
		c.mend(bounded, l)
		cancel()
	}
	c.done(all)
}

// mend writes the bucket's ttl anew, which turned out too short: the image that it was computed from knew less debt than the
// bucket has.
func (s *session) mend(ctx context.Context, l *leg) {
	p := plan.NewAdjust(make([]int64, len(l.view.Image.Balances)), l.view.Image, &l.shape.Shape, s.now())
	p.Decision, p.RepairsTTL = plan.Write, true
	if r := s.send(ctx, l, &p, wire.NewOp()); r.outcome == wire.Applied {
		l.learn(r.img, r.sent)
	}
}

// committed notes for all what p did, the applied plan of the i-th leg: how it left the bucket, and which limits that had no
// use for. An earlier try may have said so of others.
func (c *charge) committed(ctx context.Context, all []*request, i int, p *plan.Plan) {
	l, dropped := c.legs[i], p.Missing
	if dropped != nil {
		dropped = dropped[:len(l.spec.Limits)]
	}
	for _, r := range all {
		sh := r.at(i)
		if sh == nil {
			continue
		}
		sh.after, sh.limits, sh.dropped = l.view.Image, l.shape.Limits, dropped
	}
	if p.Path == plan.Reshape {
		c.recordRevision(ctx)
	}
}
