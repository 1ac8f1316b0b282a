package dynamo

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/store"
)

// batch serves the requests of a queue: one write after the other, each an update of one bucket or a
// transaction of several. One goroutine at a time works on it.
type batch struct {
	scheduler *scheduler
	roster    roster
	targets   targets
	attempt   attempts // the write at hand

	// A batch of one bucket needs no allocation for its target.
	single  target
	singles [1]*target
}

// newBatch returns a batch for q that begins with r, if r is not nil. The caller has made q busy.
func (s *scheduler) newBatch(q *queue, r *request) *batch {
	var b *batch
	if r != nil {
		b = r.batch
	}
	if b == nil {
		b = &batch{}
	}
	b.scheduler, b.roster.scheduler, b.roster.queue = s, s, q
	if r != nil {
		b.roster.pending = append(b.roster.pending, r)
	}
	return b
}

// newDetachedBatch returns a batch for r beside all queues: to read, or to write what applies to one state of
// a bucket only.
func (s *scheduler) newDetachedBatch(r *request) *batch {
	return s.newBatch(&queue{cached: &cachedBucket{}}, r)
}

// init makes the targets those of the first request. All requests of a queue have the same, but for lazy
// settles, which have one of them.
func (b *batch) init() {
	if b.targets != nil {
		return
	}
	portions := b.roster.pending[0].portions
	if b.targets = b.singles[:]; len(portions) > 1 {
		b.targets = make([]*target, len(portions))
	}
	for i := range portions {
		if b.targets[i] = &b.single; i > 0 {
			b.targets[i] = &target{}
		}
		b.targets[i].init(&portions[i])
	}
	b.attempt.lostAt = b.targets[0]
}

// step decides on the pending requests by what is known. If that is not enough, it reads, pauses or writes,
// once.
func (b *batch) step(ctx context.Context) {
	b.init()
	decision := plan.Write
	if b.attempt.transaction == nil {
		decision = b.decide()
		if b.roster.removeEnded(); decision == plan.None {
			return
		}
	}
	b.attempt.ctx = ctx
	switch {
	// A pause comes only before something to send. A refused write's image may deny at once, or show that there
	// is nothing left to race for.
	case b.attempt.err != nil && !b.skipsPause():
		b.roster.detachLazy(b.targets)
		b.pause(ctx)
	case decision == plan.Read:
		b.readMissing(ctx)
	default:
		b.attempt.err = nil
		b.send(ctx)
	}
	if b.roster.removeEnded(); b.targets.unknown() && len(b.roster.maybeApplied) == 0 {
		b.dropUnknown()
	}
}

// skipsPause reports whether the next attempt needs no pause. The last one lost a race for the refill. The
// winner has claimed that by now, and the stored tokens suffice for many.
func (b *batch) skipsPause() bool {
	t := b.targets[0]
	_, lost := errors.AsType[*store.ContendedError](b.attempt.err)
	if !lost || len(b.targets) > 1 || t.plan.Path != plan.Retry || !b.roster.mayRetry() {
		return false
	}
	for i, balance := range t.image.Balances {
		if t.demand.Take != nil && t.demand.Take[i] > 0 && balance.Tokens < balance.Burst/2 {
			return false
		}
	}
	return true
}

// reset makes what follows another write.
func (b *batch) reset() {
	b.roster.included, b.roster.maybeApplied = nil, nil
	last := b.attempt
	b.attempt = attempts{lostAt: b.targets[0], plannedAt: last.plannedAt, denied: last.denied, ctx: last.ctx}
	for _, t := range b.targets {
		t.reset()
	}
}

// readMissing reads what the targets need for a decision.
func (b *batch) readMissing(ctx context.Context) {
	bounded, cancel := withAttemptTimeout(ctx, b.roster.pending)
	defer cancel()
	denied := b.attempt.denied
	b.attempt.denied = nil
	o, err := reader{b.scheduler, b.targets}.fetch(bounded)
	switch o {
	case wire.Applied:
		if t := b.targets[0]; b.targets.unknown() && len(b.targets) == 1 && t.wrote(b.attempt.op) {
			b.finishApplied(ctx, &t.sent.plan, b.roster.maybeApplied)
		}
		return
	case wire.Failed:
		b.roster.finishAll(b.roster.pending, err, b.targets)
		return
	}
	if denied != nil { // known already, whatever the rest of the chain says and whatever the failure policy
		b.roster.finish(b.roster.included[0], denied, b.targets)
		return
	}
	b.count(b.roster.pending, nil)
	b.attempt.err = b.attempt.unavailable(b.targets.resourceName(), o, err)
}

// count counts an attempt for all, and for leftover.
func (b *batch) count(all, leftover []*request) {
	b.attempt.n++
	b.roster.count(all, leftover)
}

// send sends what was planned. A write that charges nothing goes by itself, ahead of the rest.
func (b *batch) send(ctx context.Context) {
	if b.attempt.op == "" {
		b.attempt.op = wire.NewOp()
	}
	if len(b.targets) == 1 {
		b.sendOne(ctx, b.targets[0])
		return
	}
	if b.attempt.transaction == nil {
		for _, t := range b.targets {
			if t.plan.Uncharged {
				b.sendOne(ctx, t)
				return
			}
		}
	}
	b.sendTransaction(ctx)
}

// sendOne sends the plan of t: the only target, or one whose plan charges nothing.
func (b *batch) sendOne(ctx context.Context, t *target) {
	p, op := &t.plan, b.attempt.op
	if p.Uncharged {
		op = wire.NewOp()
	}
	b.count(b.roster.included, b.roster.leftover)
	noted := ctx
	if b.scheduler.onWrite != nil && !p.Uncharged { // an uncharged write serves no request
		noted = b.scheduler.onWrite(ctx, b.roster.included)
	}
	bounded, cancel := withAttemptTimeout(noted, b.roster.included)
	defer cancel()
	reply := b.scheduler.write(bounded, t, p, op)
	if !p.Uncharged && (reply.Outcome == wire.Unknown || reply.Stands) {
		b.roster.maybeApplied, t.sent = b.roster.included, &sent{p.Clone(), slices.Clone(t.demand.Take)}
	}
	switch reply.Outcome {
	case wire.Applied:
		t.update(reply.Image, reply.SentAt)
		if p.Uncharged {
			b.scheduler.onReshape(ctx)
			return
		}
		b.finishApplied(ctx, p, b.roster.included)
	case wire.Refused:
		b.refused(ctx, t, &reply)
	case wire.Conflict:
		b.attempt.conflicts++
		t.cached.noteConflict(reply.SentAt, false)
		b.attempt.err = b.attempt.lost()
	case wire.Unknown:
		t.confirmed = false
		b.attempt.err = b.attempt.unavailable(b.targets.resourceName(), reply.Outcome, reply.Err)
		// A refund whose outcome is unknown is never sent again: it would mint tokens.
		for _, r := range b.roster.included {
			if r.givesBack() && !p.Uncharged {
				b.roster.finish(r, b.attempt.errFor(r, b.targets.unknown()), b.targets)
			}
		}
	case wire.Throttled, wire.NotSent:
		t.confirmed = false
		b.attempt.err = b.attempt.unavailable(b.targets.resourceName(), reply.Outcome, reply.Err)
	default:
		b.roster.finishAll(b.roster.pending, reply.Err, b.targets)
	}
}

// write sends p to t's bucket under op, once.
func (s *scheduler) write(ctx context.Context, t *target, p *plan.Plan, op string) wire.Reply {
	attempt := wire.Attempt{Plan: p, Op: op, SettlesOnly: t.settlesOnly, Served: t.served}
	reply := s.conn.Write(ctx, &t.cached.at, attempt)
	if reply.Malformed {
		t.cached.invalidate() // the next call reads first, and so is not charged
	}
	return reply
}

// repairTTL writes the bucket's ttl anew: it was computed from an image with less debt than the bucket has.
func (s *scheduler) repairTTL(ctx context.Context, t *target) {
	p := t.adjust(make([]int64, len(t.image.Balances)), t.image, s.conn.Now())
	p.RepairsTTL = true
	if r := s.write(ctx, t, &p, wire.NewOp()); r.Outcome == wire.Applied {
		t.update(r.Image, r.SentAt)
	}
}

// refused handles a write to t whose condition failed. The reply's image is the truth.
func (b *batch) refused(ctx context.Context, t *target, reply *wire.Reply) {
	p, found := &t.plan, reply.Image
	t.update(found, reply.SentAt)
	switch {
	case !p.Uncharged && t.wrote(b.attempt.op): // an earlier copy had been applied
		if t.sent != nil {
			p = &t.sent.plan
		}
		b.finishApplied(ctx, p, b.roster.covered())
		return
	case found == nil && b.roster.mayRetry(): // the bucket is gone, so there is nobody to race with
		return
	}
	t.noteLost(p, found, b.scheduler.conn.Now())
	b.attempt.err = b.attempt.lost()
}

// finishApplied ends all, for whom p was applied to the only target. If the bucket's ttl turns out too short,
// it is repaired.
func (b *batch) finishApplied(ctx context.Context, p *plan.Plan, all []*request) {
	t := b.targets[0]
	b.scheduler.recordApplied(ctx, t, all, 0, p)
	if plan.ExpiresTooSoon(t.image) {
		bounded, cancel := withAttemptTimeout(ctx, all)
		b.scheduler.repairTTL(bounded, t)
		cancel()
	}
	b.commit(all)
}

// commit ends the requests for which the plans were applied, and denies those for which nothing is left.
func (b *batch) commit(all []*request) {
	b.roster.finishAll(all, nil, b.targets)
	b.roster.denyLeftover(b.targets, b.attempt.plannedAt)
	b.reset()
}

// firstPause is the longest sleep after the first attempt of a write; the last ones are up to 256 ms. Shorter
// pauses lose more races, each at a write unit. In the simulation's overload, 64 writers at 13 times the
// limit, 2 ms takes 4.4 writes per admitted acquire and 8 ms takes 2.7. Longer ones would delay the second
// attempt on an uncontended bucket.
const firstPause = 8 * time.Millisecond

// shortestAttempt is far above what DynamoDB takes for one item.
const shortestAttempt = 100 * time.Millisecond

// pause waits for the next attempt, and ends the requests that have none.
func (b *batch) pause(ctx context.Context) {
	_, outage := errors.AsType[*store.UnavailableError](b.attempt.err)
	spent := outage && !b.scheduler.conn.Budget.Take(ctx)
	for _, r := range b.roster.pending {
		switch {
		case r.isOver():
			b.giveUpOver(r)
		case !r.settle && (spent || r.attempts >= b.scheduler.attempts):
			b.roster.giveUp(r, b.attempt.errFor(r, b.targets.unknown()), b.targets)
		}
	}
	if b.roster.removeEnded(); len(b.roster.pending) == 0 {
		return
	}
	n := b.attempt.n
	if outage { // the pause is that of the newest request; after a lost race, the writers are the same for all
		for _, r := range b.roster.pending {
			n = min(n, max(r.attempts, 1))
		}
	}
	longest := wire.Backoff(firstPause, n)
	if spent {
		longest = time.Second // settles have until their time-out, and nowhere else to go
	}
	var arrival <-chan struct{}
	if outage && !b.targets.unknown() { // nobody joins a write of unknown outcome
		arrival = b.roster.queue.nextArrival()
	}
	ctx, cancel := withFirstDeadline(ctx, b.roster.pending)
	defer cancel()
	select {
	case <-arrival:
	case <-b.scheduler.conn.Env.Clock.After(time.Duration(b.scheduler.jitter() * float64(longest))):
	case <-ctx.Done():
		for _, r := range b.roster.pending {
			if r.isOver() {
				b.giveUpOver(r)
			}
		}
	}
	b.attempt.err, b.attempt.lastErr = nil, b.attempt.err
}

// giveUpOver ends r, whose caller has no time left.
func (b *batch) giveUpOver(r *request) {
	b.roster.giveUp(r, r.overErr(b.attempt.errFor(r, b.targets.unknown())), b.targets)
}

// withFirstDeadline bounds ctx by the first deadline among requests that are not answered. A deadline
// taken from a request's context is skipped; the context fires by itself.
func withFirstDeadline(ctx context.Context, all []*request) (context.Context, context.CancelFunc) {
	var first time.Time
	for _, r := range all {
		if d := r.deadline; !r.answered && !r.deadlineOfCtx && !d.IsZero() && (first.IsZero() || d.Before(first)) {
			first = d
		}
	}
	if first.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, first)
}

// withAttemptTimeout bounds one attempt for all. It leaves time for another attempt if this one gets no
// reply. A request with less time than the others leaves by itself and does not cut them off. One that its
// own caller serves cannot leave.
func withAttemptTimeout(ctx context.Context, all []*request) (context.Context, context.CancelFunc) {
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
	within := remaining(last)
	switch {
	case settles: // they have much more time than acquires, which may wait behind them
		within = max(within*3/20, shortestAttempt)
	case len(all) == 1:
		within = max(within/2, shortestAttempt)
	default: // they have waited for another write's reply, so replies come
		within = max(within*3/4, shortestAttempt)
	}
	// A later attempt may outlast the caller's time, rather than leave its outcome unknown.
	if own, ok := ctx.Deadline(); all[0].done == nil && all[0].attempts <= 1 && (!ok || own.After(last)) {
		within = min(within, remaining(last))
	}
	return context.WithTimeout(ctx, within)
}
