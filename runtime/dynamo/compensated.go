package dynamo

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// compensated charges the legs one by one, the scarcest first, and gives back what it has charged if one refuses.
func (s *session) compensated(ctx context.Context, legs []*leg) error {
	if err := s.prefetch(ctx, legs); err != nil {
		return err
	}
	order, now := slices.Clone(legs), s.now()
	slices.SortStableFunc(order, func(a, b *leg) int { return cmp.Compare(a.room(now), b.room(now)) })
	for i, l := range order {
		err := s.charge(ctx, []*leg{l})
		if err == nil {
			continue
		}
		s.refund(ctx, order[:i])
		return s.overChain(ctx, err, legs, order[i:])
	}
	return nil
}

// prefetch reads what is missing of all legs in one call. Where that fails for want of an answer, the charges try again.
func (s *session) prefetch(ctx context.Context, legs []*leg) error {
	c := s.newCharge(legs)
	if !c.lacking(func(l *leg) bool { return l.view.img == nil }) {
		return nil
	}
	_, _, err := c.look(ctx)
	return err
}

// room is the least share of a burst that l's cost would leave, as far as is known.
func (l *leg) room(now int64) float64 {
	least := 1.0
	if l.view.img == nil {
		return least // full
	}
	for i, b := range l.view.img.Balances {
		if l.cost[i] > 0 && !l.view.img.Missing[i] {
			left := bucket.Sub(bucket.Available(b, l.view.img.Refilled, now), l.cost[i])
			least = min(least, float64(left)/float64(b.Burst))
		}
	}
	return least
}

// overChain completes a denial by the first of rest with the refusals of those that were not asked, so that retry after
// holds for the whole chain.
func (s *session) overChain(ctx context.Context, err error, legs, rest []*leg) error {
	denied, ok := errors.AsType[*runtime.DeniedError](err)
	if others := rest[1:]; ok && len(others) > 0 {
		c := s.newCharge(others)
		if c.peek(ctx) != nil {
			return err // as far as is known
		}
		now := s.now()
		for _, l := range others {
			p := c.choose(&l.want, l.current(now), now)
			if p.verdict == exceed {
				return runtime.Exceeds(l.spec, l.entity, p.img, l.cost)
			}
			if img := p.refusing(); img != nil {
				denied = runtime.Refuse(denied, l.spec, l.entity, img, l.cost, now)
			}
		}
		place := func(r runtime.Refusal) int {
			return slices.IndexFunc(legs, func(l *leg) bool { return l.entity == r.Entity })
		}
		slices.SortStableFunc(denied.Refusals, func(a, b runtime.Refusal) int { return cmp.Compare(place(a), place(b)) })
	}
	return err
}

// refund gives back what the legs were charged. The caller waits for it, so that after a denial nothing is charged, unless
// its context ends.
func (s *session) refund(ctx context.Context, legs []*leg) {
	if len(legs) == 0 {
		return
	}
	back := make([]*leg, len(legs))
	for i, l := range legs {
		charged := &runtime.Part{Cost: l.cost, Actual: make([]int64, len(l.cost))}
		own := &runtime.Bucket{Entity: l.entity, Kind: l.kind}
		back[i] = s.leg(l.resource, own, want{cost: difference(charged, l.buckets[0]), called: s.now()})
	}
	done := make(chan struct{})
	s.background.start(func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.env.SettleTimeout)
		defer cancel()
		_ = s.settle(ctx, back) // what fails is told to the observer, and comes back by refill
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
}
