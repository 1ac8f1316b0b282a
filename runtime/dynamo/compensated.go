package dynamo

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/store"
)

// compensated charges r's buckets one by one, the scarcest first, and gives back what it has charged if one refuses.
func (s *session) compensated(r *request) error {
	defer r.show(s)
	// What is missing of all is read in one call. Where that fails for want of an answer, the charges try again.
	r.work = nil // its parts go one by one
	c := s.apart(r)
	c.board()
	if c.lacking(func(l *leg) bool { return l.view.Image == nil }) {
		if c.look(r.ctx); r.ended {
			return r.err
		}
	}
	order, now := make([]int, len(c.legs)), s.now()
	for i := range order {
		order[i] = i
	}
	rooms := make([]float64, len(c.legs))
	for i, l := range c.legs {
		r.shares[i].truth = l.view.Confirmed
		rooms[i] = l.scarcity(r.shares[i].cost, now)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rooms[a], rooms[b]) })
	var charged []*request
	for n, i := range order {
		part := r.part(i, r.shares[i].cost)
		err := s.submit(part)
		if part.gone {
			r.shares[i].recall(s)
		} else {
			r.shares[i] = part.shares[0]
		}
		if err == nil {
			charged = append(charged, part)
			continue
		}
		s.refund(r.ctx, charged)
		return s.overChain(r, err, order[n+1:])
	}
	return nil
}

// scarcity is the least share of a burst that cost would leave, as far as is known.
func (l *leg) scarcity(cost []int64, now int64) float64 {
	least := 1.0
	if l.shape != nil && l.shape.Ceiling != nil {
		w := plan.Demand{Take: cost, Shape: &l.shape.Shape}
		if _, ok := w.DenyByQuota(l.view, now); ok {
			return math.Inf(-1)
		}
	}
	if l.view.Image == nil {
		return least // full
	}
	for i, b := range l.view.Image.Balances {
		if cost[i] > 0 && !l.view.Image.Missing[i] {
			left := bucket.Sub(bucket.Available(b, l.view.Image.Refilled, now), cost[i])
			least = min(least, float64(left)/float64(b.Burst))
		}
	}
	return least
}

// overChain completes a denial by one of r's buckets with the refusals of others that were not asked, so that retry after
// holds for the whole chain.
func (s *session) overChain(r *request, err error, others []int) error {
	denied, ok := errors.AsType[*store.DeniedError](err)
	if !ok || len(others) == 0 {
		return err
	}
	rest := *r
	rest.shares, rest.ended, rest.err = nil, false, nil
	for _, i := range others {
		rest.shares = append(rest.shares, r.shares[i])
	}
	now := s.now()
	c, failed := s.readFor(r.ctx, &rest, func(l *leg) bool { return !l.current(now).Confirmed })
	if failed != nil {
		return err // as far as is known
	}
	c.plan([]*request{&rest}, now)
	for _, l := range c.legs {
		if l.plan.Decision == plan.TooLarge {
			return store.Exceeds(l.spec, l.entity, l.plan.Image, l.Take)
		}
		if img := l.plan.DeniedImage(); img != nil {
			denied = store.Refuse(denied, l.spec, l.entity, img, l.Take, now)
		}
	}
	place := func(of store.Refusal) int {
		return slices.IndexFunc(r.shares, func(sh share) bool { return sh.entity == of.Entity })
	}
	slices.SortStableFunc(denied.Refusals, func(a, b store.Refusal) int { return cmp.Compare(place(a), place(b)) })
	return err
}

// refund gives back what parts were charged. The caller waits for it, so that after a denial nothing is charged, unless its
// context ends.
func (s *session) refund(ctx context.Context, parts []*request) {
	if len(parts) == 0 {
		return
	}
	done := make(chan struct{})
	s.background.Start(func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.env.SettleTimeout)
		defer cancel()
		var running sync.WaitGroup
		for _, part := range parts {
			running.Go(func() { _ = s.submit(s.giving(ctx, part, 0)) }) // what fails is told to the observer, and comes back by refill
		}
		running.Wait()
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// giving returns a settle that gives back what r was charged of its i-th bucket.
func (s *session) giving(ctx context.Context, r *request, i int) *request {
	sh := &r.shares[i]
	back := negated(sh.cost)
	for j, dropped := range sh.dropped {
		if dropped {
			back[j] = 0
		}
	}
	g := r.part(i, back)
	g.ctx, g.called, g.settle = ctx, s.now(), true
	g.deadline, g.theirs = ctx.Deadline()
	g.shares[0].buckets = nil
	return g
}
