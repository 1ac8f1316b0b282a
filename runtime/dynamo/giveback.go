package dynamo

import (
	"context"
	"slices"
)

// giveBack undoes a charge whose outcome is unknown after all: each bucket on its own, and only if nobody wrote to it
// since. It does not keep the caller waiting: Close does that.
func (c *charge) giveBack(ctx context.Context) {
	for _, l := range c.legs {
		c.background.start(func() { c.undo(ctx, l, l.sent) })
	}
}

// undo gives what was sent back if that is the last write of l's bucket. Other than a settle's refund it may go again when its
// outcome is unknown: it applies to the charge's op, and leaves its own.
func (c *charge) undo(ctx context.Context, l *leg, sent *plan) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.env.SettleTimeout)
	defer cancel()
	img := sent.img
	if sent.path == reshape { // if it was applied, the bucket has this schema's limits
		img = sent.predict(c.op)
	}
	// On its own from here: the call's buckets are the caller's again.
	own := &leg{resource: l.resource, want: want{settle: true, shape: l.shape}, entity: l.entity, kind: l.kind, memory: l.memory}
	undo := c.newCharge([]*leg{own})
	p := planAdjust(negated(sent.cost[:len(l.cost)]), img, l.shape, c.now())
	p.verdict, p.undo = write, c.op
	for {
		undo.tries++
		attempt, cancel := undo.attempt(ctx)
		r := c.send(attempt, own, &p, undo.op)
		cancel()
		switch r.outcome {
		case applied:
			own.learn(r.img, true)
			c.mend(ctx, own)
			return
		case refused:
			own.learn(r.img, true)
			return
		case conflict, throttled, unapplied, unknown:
			if undo.again(ctx, undo.unavailable(r.outcome, r.err)) != nil {
				return
			}
		default:
			return
		}
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
