package redisstore

import (
	"context"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// Acquire implements runtime.Session. Whatever its cascade, a call is one script call: all or none.
func (s *session) Acquire(ctx context.Context, call *runtime.Call) error {
	r := s.request(ctx, call, pathAcquire, func(part *runtime.Part) []int64 { return part.Cost })
	return s.perform(r)
}

// perform has r written, and tells its call what became of it.
func (s *session) perform(r *request) error {
	if err := s.prepare(r); err != nil {
		r.show(false)
		return err
	}
	l := s.lineOf(r)
	l.submit(r.priced())
	ended, err := l.await(r)
	r.show(ended)
	return err
}

// prepare finds out by what r's buckets are charged, and refuses what cannot be.
func (s *session) prepare(r *request) error {
	if err := s.together(r); err != nil {
		return err
	}
	if err := s.resolve(r); err != nil {
		return err
	}
	if r.path != pathAcquire {
		return nil
	}
	for i := range r.shares {
		if err := r.shares[i].exceeds(); err != nil {
			return err
		}
	}
	return nil
}

// exceeds says that the bucket can never hold what it is asked for.
func (sh *share) exceeds() error {
	for i, l := range sh.shape.limits {
		if sh.cost[i] > l.Burst {
			full := &bucket.Image{Balances: bucket.Full(sh.shape.limits), Missing: make([]bool, len(sh.cost))}
			return runtime.Exceeds(sh.spec, sh.entity, full, sh.cost)
		}
	}
	return nil
}

// Refused implements runtime.Session. It remembers no denials: what another process gives back would be refused for a second,
// and a denial costs its share of a script call, which changes nothing.
func (*session) Refused(runtime.Definition, []runtime.Link, []int64, int64) *runtime.DeniedError {
	return nil
}

// Settle implements runtime.Session. A settle is written like an acquire, that nothing refuses.
func (s *session) Settle(ctx context.Context, call *runtime.Call) error {
	r := s.request(ctx, call, pathSettle, difference)
	later := call.Later
	call.Later = nil
	switch {
	case later == nil && !r.any():
		return nil
	case later == nil:
		return s.perform(r)
	case !r.any():
		later(nil)
		return nil
	}
	s.background.Begin()
	r.ctx, r.deadline = context.WithoutCancel(ctx), after(s.env.SettleTimeout)
	r.later = func(err error) {
		defer s.background.End()
		r.show(true)
		later(err)
	}
	s.background.Start(func() {
		if err := s.prepare(r); err != nil {
			r.later(err)
			return
		}
		s.lineOf(r).submit(r.priced())
	})
	return nil
}

// difference is what a settle adds to a part's charge.
func difference(part *runtime.Part) []int64 {
	cost := make([]int64, len(part.Cost))
	for i := range cost {
		cost[i] = bucket.Sub(part.Actual[i], part.Cost[i])
	}
	return cost
}

// Recall implements runtime.Session.
func (s *session) Recall(call *runtime.Call) {
	s.request(context.Background(), call, pathAcquire, func(part *runtime.Part) []int64 { return part.Cost }).show(false)
}
