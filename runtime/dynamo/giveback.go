package dynamo

import (
	"context"

	"github.com/sluice-go/sluice/runtime"
)

// giveBack undoes a charge whose outcome is unknown after all, once, and only if nobody wrote since. It does not keep the
// caller waiting: Close does that.
func (s *session) giveBack(ctx context.Context, c *charge) {
	s.background.start(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.env.SettleTimeout)
		defer cancel()
		back := make([]int64, len(c.cost))
		for i := range back {
			back[i] = -c.sent.cost[i]
		}
		img := c.sent.img
		if c.sent.path == reshape { // if it was applied, the bucket has this schema's limits
			img = c.reshaped(img, s.now())
		}
		b := &slot{resource: c.resource, bucket: &runtime.Bucket{Entity: c.bucket.Entity, Kind: c.bucket.Kind}, memory: c.memory, shape: c.slot.shape}
		p := planAdjust(back, img, c.slot.shape, s.now())
		p.verdict, p.undo = write, c.op
		for {
			switch r := s.send(ctx, b, &p, newOp()); r.outcome {
			case applied, refused:
				b.learn(r.img)
				return
			case unapplied:
				if c.pause(ctx, r.err) != nil {
					return
				}
				c.tries++
			default:
				return // whether it was given back is unknown: never twice
			}
		}
	})
}
