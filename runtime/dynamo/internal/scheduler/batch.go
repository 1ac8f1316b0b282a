package scheduler

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/store"
)

// batch serves the requests of a queue: one write after the other, each an update of one bucket or a
// transaction of several. One goroutine at a time works on it.
type batch struct{ pauser }

// newBatch returns a batch for q that begins with r, if r is not nil. The caller has made q busy.
func (s *scheduler) newBatch(q *queue, r *Request) *batch {
	var b *batch
	if r != nil {
		b = r.batch
	}
	if b == nil {
		b = &batch{}
	}
	b.scheduler, b.roster.scheduler, b.roster.queue, b.roster.most = s, s, q, maxTargets
	if r != nil {
		b.roster.pending = append(b.roster.pending, r)
	}
	return b
}

// newDetachedBatch returns a batch for r that belongs to no queue, and only reads.
func (s *scheduler) newDetachedBatch(r *Request) *batch {
	b := s.newBatch(&queue{cached: &cachedBucket{}, chained: len(r.portions) > 1}, r)
	b.targets = b.roster.targetsOf(b.roster.candidates())
	return b
}

// run serves the queue until no request is left. The work serves several callers, so none can cancel it. Its
// context has the values of the oldest request's.
func (b *batch) run() {
	for b.collect() {
		b.step(context.WithoutCancel(b.roster.pending[0].ctx))
	}
}

// collect adds the waiting requests and deferred settles, and drops requests whose callers have left. It
// reports whether any are left. No request joins while a write's outcome is unknown: its op stands for the
// requests that it included.
func (b *batch) collect() bool {
	q := b.roster.queue
	if b.roster.unsure.exists() {
		if b.roster.awaitsUnknown(cmp.Or(b.attempt.err, b.attempt.lastErr)) {
			return true
		}
		b.dropUnknown()
	}
	b.awaitCallers()
	isNew := len(b.roster.pending) == 0
	q.cached.mu.Lock()
	all := slices.Clone(b.roster.pending) // the old slice is still in use
	if len(q.waiting) > 0 {
		all, q.waiting = append(all, q.waiting...), nil
	}
	b.roster.pending = slices.DeleteFunc(all, func(r *Request) bool { return r.abandoned || r.ended })
	if !slices.ContainsFunc(b.roster.pending, (*Request).isUrgent) {
		q.busy, q.lastErr = false, nil
		q.retire()
		q.cached.mu.Unlock()
		b.scheduler.deferSettles(b.roster.pending)
		return false
	}
	q.lastErr = cmp.Or(b.attempt.err, b.attempt.lastErr)
	q.cached.mu.Unlock()
	if isNew { // what is known may be from before these requests, as after a denial, which writes nothing
		b.reset()
	}
	b.roster.candidates()
	b.roster.attachLazy()
	return true
}

// step decides on the pending requests by what is known. If that is not enough, it reads, pauses or writes.
func (b *batch) step(ctx context.Context) {
	decision := plan.Write
	if b.roster.unsure.transaction == nil {
		decision = b.decide()
	}
	b.attempt.ctx = ctx
	b.roster.removeEnded()
	switch {
	case decision == plan.None:
		b.roster.returnLazy()
	// A pause comes only before something to send. A refused write's image may deny at once, or show that there
	// is nothing left to race for.
	case b.attempt.err != nil && !b.skipsPause():
		b.roster.detachLazy()
		b.pause(ctx)
	case b.pace(ctx), !b.enter(ctx): // it paused, or got no turn: the next step decides anew, on newer images
	default:
		defer b.scheduler.turns.Release(1) // also if an observer panics
		b.serve(ctx, decision)
	}
	if b.roster.removeEnded(); b.roster.unsure.exists() && len(b.roster.unsure.requests) == 0 {
		b.dropUnknown()
	}
}

// serve reads or writes, as it was decided before the batch got its turn. If it waited for that, it decides
// anew: requests may have ended, and what is known may be outdated.
func (b *batch) serve(ctx context.Context, decision plan.Decision) {
	if b.waited && b.roster.unsure.transaction == nil {
		if b.roster.removeEnded(); len(b.roster.pending) == 0 {
			return
		}
		decision = b.decide()
	}
	switch decision {
	case plan.Read:
		b.readMissing(ctx)
	case plan.Write:
		b.attempt.err = nil
		b.send(ctx)
	}
}

// reset prepares for the next write.
func (b *batch) reset() {
	b.roster.included, b.roster.unsure, b.attempt = nil, unsure{}, attempts{}
	if b.roster.queue.chained {
		b.roster.named = nil
	} else if len(b.roster.named) > 0 {
		b.roster.named[0].reset()
	}
}

// dropUnknown gives up a write of unknown outcome for which no caller waits. The tokens of acquires are given
// back, of each bucket by itself, and only if nobody wrote to it since. No caller waits for that, only Close.
func (b *batch) dropUnknown() {
	b.roster.finishUncertain((*Request).isLazy)
	op, ctx := b.attempt.op, b.attempt.ctx
	for _, t := range b.roster.unsure.targets {
		unknown := t.sent
		for unknown != nil && !slices.ContainsFunc(unknown.take, positive) {
			unknown = unknown.earlier
		}
		if unknown != nil {
			own := &target{View: t.View, cached: t.cached}
			own.SettlesOnly = true
			b.scheduler.background.Start(func() { b.scheduler.reverseCharge(ctx, own, unknown, op) })
		}
	}
	b.reset()
}

// readInTurn waits for a turn, then reads what is missing. It ends requests whose deadline passes meanwhile.
func (b *batch) readInTurn(ctx context.Context) {
	if b.enter(ctx) {
		defer b.scheduler.turns.Release(1)
		b.readMissing(ctx)
	}
}

// peek reads r's buckets for which unread holds, and the overrides that are due. The error is r's.
func (s *scheduler) peek(r *Request, unread func(*target) bool) (*batch, error) {
	b := s.newDetachedBatch(r)
	for b.needs(s.conn.Now(), unread) && !r.ended {
		if b.attempt.err != nil {
			b.pause(r.ctx)
		} else if !b.pace(r.ctx) {
			b.readInTurn(r.ctx)
		}
	}
	r.recordFound(s.conn.Now())
	return b, r.err
}

// peekUnconfirmed reads those of r's buckets whose image is not confirmed, and notes in r how all are found.
func (s *scheduler) peekUnconfirmed(r *Request) error {
	b, err := s.peek(r, func(t *target) bool { return !t.Confirmed })
	if err != nil {
		return err
	}
	now := s.conn.Now()
	for i, t := range b.targets {
		r.portions[i].after = t.Shape.Next(t.Image, t.windows, now)
	}
	return nil
}

// acquireCompensated charges r's buckets one by one, the scarcest first. If one fails, it refunds the others.
func (s *scheduler) acquireCompensated(r *Request) error {
	r.batch = nil // the portions are served one by one
	b := s.newDetachedBatch(r)
	if b.needs(s.conn.Now(), func(t *target) bool { return t.Image == nil }) {
		b.readInTurn(r.ctx)
	}
	if r.ended {
		return r.err
	}
	now := s.conn.Now()
	order, left := make([]int, len(b.targets)), make([]float64, len(b.targets))
	for i, t := range b.targets {
		order[i] = i
		r.portions[i].confirmed = t.Confirmed
		demand := plan.Demand{Take: r.portions[i].cost}
		if t.Shape != nil {
			demand.Shape = &t.Shape.Shape
		}
		left[i] = demand.LeastLeft(plan.State{Image: t.Image, Confirmed: t.Confirmed}, now)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(left[a], left[b]) })
	var charged []*Request
	for n, i := range order {
		one := r.single(i, r.portions[i].cost)
		err := s.submit(one)
		if one.abandoned {
			r.portions[i].loadCached(s.conn)
		} else {
			r.portions[i] = one.portions[0]
		}
		if err == nil {
			charged = append(charged, one)
			continue
		}
		s.refundAll(r.ctx, charged)
		return s.completeDenial(r, err, order[n+1:])
	}
	return nil
}

// completeDenial adds to a denial by one of r's buckets the refusals of others that were not charged, so that
// retry after holds for the whole chain. If they cannot be read, the denial stays as it is. If one of them
// can never hold the cost, the error is that instead.
func (s *scheduler) completeDenial(r *Request, err error, others []int) error {
	denied, ok := errors.AsType[*store.DeniedError](err)
	if !ok || len(others) == 0 {
		return err
	}
	rest := *r
	rest.portions, rest.ended, rest.err = nil, false, nil
	for _, i := range others {
		pn := r.portions[i]
		pn.target = nil
		rest.portions = append(rest.portions, pn)
	}
	now := s.conn.Now()
	b, failed := s.peek(&rest, func(t *target) bool { return !t.state(now).Confirmed })
	if failed != nil {
		return err
	}
	b.plan([]*Request{&rest}, now)
	for _, t := range b.targets {
		if t.plan.Decision == plan.TooLarge {
			return store.Exceeds(t.specFor(&rest), t.Entity, t.plan.Image, t.demand.Take, math.MaxInt64)
		}
		if img := t.plan.DeniedImage(); img != nil {
			denied = t.refuse(denied, &rest, img, t.demand.Take, now)
		}
	}
	store.SortRefusals(denied, func(of store.Refusal) int {
		return slices.IndexFunc(r.portions, func(pn portion) bool { return pn.entity == of.Entity })
	})
	return err
}

// refundAbandoned gives back what r was charged, whose caller did not wait for it. A failure is reported to
// the observer; the tokens come back by refill.
func (s *scheduler) refundAbandoned(r *Request) {
	for i := range r.portions {
		s.background.Start(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), s.conn.Env.SettleTimeout)
			defer cancel()
			_ = s.submit(r.refund(ctx, i, s.conn.Now()))
		})
	}
}

// refundAll gives back what requests of one bucket each were charged. The caller waits for it while it has
// time, so that after a denial nothing is charged. A failure is reported to the observer; the tokens come
// back by refill.
func (s *scheduler) refundAll(ctx context.Context, charged []*Request) {
	if len(charged) == 0 {
		return
	}
	done := make(chan struct{})
	s.background.Start(func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.conn.Env.SettleTimeout)
		defer cancel()
		var running sync.WaitGroup
		for _, r := range charged {
			running.Go(func() { _ = s.submit(r.refund(ctx, 0, s.conn.Now())) })
		}
		running.Wait()
	})
	bounded, cancel := withLastDeadline(ctx, charged)
	defer cancel()
	select {
	case <-done:
	case <-bounded.Done():
	}
}

// reverseCharge gives back what acquires took of t by a write of unknown outcome, or by an earlier one under
// the same op. Its condition is that op and the write's ttl, so it applies only while that write is the
// bucket's last. So, unlike a refund, it may be sent again when its own outcome is unknown. No caller asks
// for it: each attempt counts as a retry, so that an outage is not multiplied.
func (s *scheduler) reverseCharge(ctx context.Context, t *target, unknown *unknownWrite, op string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.conn.Env.SettleTimeout)
	defer cancel()
	for n := 1; unknown != nil && ctx.Err() == nil; n++ {
		if t.cached.pacer.TakeReversal(ctx, s.conn.Budget, &s.reversals, s.conn.Env.Clock.Now()) {
			switch s.tryReverse(ctx, t, unknown, op) {
			case wire.Refused: // the image says which one was the last write, if any
				unknown = unknown.before(t.Image, op)
				continue
			case wire.Applied, wire.Failed:
				return
			}
		}
		select {
		case <-s.conn.Env.Clock.After(time.Duration(s.seams.Jitter() * float64(wire.Backoff(firstPause, n)))):
		case <-ctx.Done():
		}
	}
}

// tryReverse sends the write of reverseCharge once, when it has a turn. It is Failed if no time is left. Each
// attempt has an op of its own: if a late copy charges again, another attempt reverses that.
func (s *scheduler) tryReverse(
	ctx context.Context, t *target, unknown *unknownWrite, op string,
) wire.Outcome {
	u := &unknown.plan
	img, taken := u.Image, bucket.Charge{Cost: unknown.take, Epochs: u.ChargedEpochs()}
	if u.Path == plan.Reshape || u.Ends != nil || u.Holds != nil { // it may have opened a window, or swept
		img = u.Predict(op)
		taken.Ends = img.Ends()
	}
	p := plan.NewAdjustWrite(taken, img, &t.Shape.Shape, s.conn.Now())
	p.Reverses, p.ReversesTTL = op, unknown.plan.TTL
	if ctx.Err() != nil || s.turns.Acquire(ctx, 1) != nil {
		return wire.Failed
	}
	defer s.turns.Release(1)
	bounded, cancel := context.WithTimeout(ctx, t.cached.pacer.LongestAttempt())
	defer cancel()
	reply := s.write(bounded, t, &p, wire.NewOp())
	if reply.Outcome == wire.Applied || reply.Outcome == wire.Refused {
		t.cached.pacer.Repay(s.conn.Budget)
		t.Update(reply.Image, reply.SentAt)
	}
	if reply.Outcome == wire.Applied && plan.ExpiresTooSoon(t.Image) {
		s.repairTTL(ctx, t)
	}
	return reply.Outcome
}

// singleRequest is a request of one bucket and all that serving it alone takes, in one allocation.
type singleRequest struct {
	Request
	batch
	portion [1]portion
	bucket  [1]*store.Bucket
	pending [1]*Request
}

// newSingleRequest returns a request with room for one portion of one bucket.
func newSingleRequest() *singleRequest {
	single := &singleRequest{}
	single.Request.batch = &single.batch
	single.portions = single.portion[:0]
	single.batch.roster.pending = single.pending[:0]
	return single
}
