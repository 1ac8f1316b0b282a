package dynamo

import (
	"context"
	"slices"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
)

// giveUp gives back what r was charged, whose caller did not wait for it.
func (c *charge) giveUp(r *request) {
	for i := range r.shares {
		c.background.Start(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), c.env.SettleTimeout)
			defer cancel()
			_ = c.submit(c.giving(ctx, r, i)) // what fails is told to the observer, and comes back by refill
		})
	}
}

// abandon gives up a write of unknown outcome for which nobody is left: what acquires took is given back, of each bucket on
// its own, and only if nobody wrote to it since. It does not keep anybody waiting: Close does that.
func (c *charge) abandon() {
	c.endUnsure()
	for _, l := range c.legs {
		if slices.ContainsFunc(l.sent.take, plan.Positive) {
			own := &leg{resource: l.resource, shape: l.shape, settling: true, entity: l.entity, kind: l.kind, memory: l.memory}
			lost, op, ctx := l.sent, c.op, c.base
			c.background.Start(func() { c.undo(ctx, own, lost, op) })
		}
	}
	c.reset()
}

// undo gives back what acquires took by the write of that op, if it is the last of l's bucket. Other than a settle's refund it
// may go again when its outcome is unknown: it applies to the charge's op, and leaves its own.
func (s *session) undo(ctx context.Context, l *leg, lost *sent, op string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.env.SettleTimeout)
	defer cancel()
	img := lost.plan.Image
	if lost.plan.Path == plan.Reshape { // if it was applied, the bucket has this schema's limits
		img = lost.plan.Predict(op)
	}
	p := plan.NewAdjust(negated(lost.take), img, &l.shape.Shape, s.now())
	p.Decision, p.Reverses = plan.Write, op
	r := &request{ctx: ctx, settle: true, shares: []share{{}}}
	r.deadline, _ = ctx.Deadline()
	c := s.apart(r)
	c.legs, c.lostAt, c.op = []*leg{l}, l, wire.NewOp()
	for !r.ended {
		c.tried(c.members, nil)
		bounded, cancel := attempt(ctx, c.members)
		reply := c.send(bounded, l, &p, c.op)
		cancel()
		switch reply.outcome {
		case wire.Applied:
			l.learn(reply.img, reply.sent)
			if plan.ExpiresTooSoon(l.view.Image) {
				c.mend(ctx, l)
			}
			return
		case wire.Refused:
			l.learn(reply.img, reply.sent)
			return
		case wire.Conflict:
			c.failed = c.lost()
		case wire.Throttled, wire.NotSent, wire.Unknown:
			c.failed = c.unavailable(reply.outcome, reply.err)
		default:
			return
		}
		c.pause(ctx)
	}
}

// negated returns what gives cost back.
func negated(cost []int64) []int64 {
	back := slices.Clone(cost)
	for i := range back {
		back[i] = -back[i]
	}
	return back
}
