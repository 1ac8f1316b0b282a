package dynamo

import (
	"context"
	"slices"
	"sync"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
)

// refundAbandoned gives back what r was charged, whose caller did not wait for it. A failure is reported to
// the observer; the tokens come back by refill.
func (s *scheduler) refundAbandoned(r *request) {
	for i := range r.portions {
		s.background.Start(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), s.conn.Env.SettleTimeout)
			defer cancel()
			_ = s.submit(r.refund(ctx, i, s.conn.Now()))
		})
	}
}

// refundAll gives back what requests of one bucket each were charged. The caller waits for it unless ctx
// ends, so that after a denial nothing is charged. A failure is reported to the observer; the tokens come
// back by refill.
func (s *scheduler) refundAll(ctx context.Context, charged []*request) {
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
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// dropUnknown gives up a write of unknown outcome for which no caller waits. The tokens of acquires are given
// back, of each bucket by itself, and only if nobody wrote to it since. No caller waits for that, only Close.
func (b *batch) dropUnknown() {
	b.roster.finishUncertain(b.targets)
	for _, t := range b.targets {
		if slices.ContainsFunc(t.sent.take, positive) {
			own := &target{
				resource: t.resource, shape: t.shape, settlesOnly: true, entity: t.entity, kind: t.kind, cached: t.cached,
			}
			lost, op, ctx := t.sent, b.attempt.op, b.attempt.ctx
			b.scheduler.background.Start(func() { b.scheduler.reverseCharge(ctx, own, lost, op) })
		}
	}
	b.reset()
}

// reverseCharge gives back what acquires took of t by the write op, if that is the bucket's last write.
// Unlike a settle's refund it may be sent again when its outcome is unknown: its condition is the charge's
// op, and it leaves its own.
func (s *scheduler) reverseCharge(ctx context.Context, t *target, lost *sent, op string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.conn.Env.SettleTimeout)
	defer cancel()
	img := lost.plan.Image
	if lost.plan.Path == plan.Reshape { // if it was applied, the bucket has this schema's limits
		img = lost.plan.Predict(op)
	}
	p := t.adjust(negated(lost.take), img, s.conn.Now())
	p.Reverses = op
	r := &request{ctx: ctx, settle: true, portions: []portion{{resource: t.resource, entity: t.entity}}}
	r.deadline, _ = ctx.Deadline()
	b := s.newDetachedBatch(r)
	b.targets, b.attempt.lostAt, b.attempt.op = targets{t}, t, wire.NewOp()
	for !r.ended {
		b.count(b.roster.pending, nil)
		bounded, cancel := withAttemptTimeout(ctx, b.roster.pending)
		reply := s.write(bounded, t, &p, b.attempt.op)
		cancel()
		switch reply.Outcome {
		case wire.Applied:
			t.update(reply.Image, reply.SentAt)
			if plan.ExpiresTooSoon(t.image) {
				s.repairTTL(ctx, t)
			}
			return
		case wire.Refused:
			t.update(reply.Image, reply.SentAt)
			return
		case wire.Conflict:
			b.attempt.err = b.attempt.lost()
		case wire.Throttled, wire.NotSent, wire.Unknown:
			b.attempt.err = b.attempt.unavailable(b.targets.resourceName(), reply.Outcome, reply.Err)
		default:
			return
		}
		b.pause(ctx)
	}
}
