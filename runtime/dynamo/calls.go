package dynamo

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/store"
)

// Acquire implements store.Session. One part goes as its resource's cascade says, several go together.
func (s *session) Acquire(ctx context.Context, call *store.Call) error {
	r, err := s.request(ctx, call, asked)
	if err != nil {
		return err
	}
	if len(call.Parts) == 1 && len(r.shares) > 1 && r.shares[0].spec.Cascade == store.CascadeCompensated {
		return s.compensated(r)
	}
	return s.perform(r)
}

// perform submits r and tells its call what became of it.
func (s *session) perform(r *request) error {
	defer r.show(s)
	return s.submit(r)
}

// asked is what an acquire takes of each bucket of a part.
func asked(part *store.Part, _ *store.Bucket) []int64 { return part.Cost }

// Settle implements store.Session. What the acquire could not charge, because a bucket had no such limit, is neither
// charged nor given back now. Each bucket is settled on its own, by a write unit at most, which it may share with others who wait
// for the bucket: all or none, which a transaction would give, is not needed for what has been admitted.
func (s *session) Settle(ctx context.Context, call *store.Call) error {
	r, err := s.request(ctx, call, difference)
	if err != nil {
		return err
	}
	r.settle = true
	if later := call.Later; later != nil {
		call.Later = nil
		s.settleLazily(r, later)
		return nil
	}
	return s.settle(r)
}

// settleLazily has each of r's shares, where it is anything, written with what is written next, and later told when all are.
func (s *session) settleLazily(r *request, later func(error)) {
	r.ctx = context.WithoutCancel(r.ctx)
	if !r.deadline.IsZero() {
		r.deadline, r.theirs = r.deadline.Add(lazy), false
	}
	all := []*request{}
	left := atomic.Int64{}
	errs := make([]error, len(r.shares))
	for i := range r.shares {
		if !r.shares[i].any() {
			continue
		}
		part := r.part(i, r.shares[i].cost)
		s.background.Begin() // Close waits for it, whoever writes it: that may be a caller, on no goroutine of the background's
		part.later = func(err error) {
			defer s.background.End()
			part.show(s)
			errs[i] = err
			if left.Add(-1) == 0 {
				later(errors.Join(errs...))
			}
		}
		if part.givesBack() {
			part.shares[0].memory.returned(1)
		}
		all = append(all, part)
	}
	if left.Store(int64(len(all))); len(all) == 0 {
		later(nil)
	}
	s.owe(all)
}

// difference is what a settle adds to a bucket's charge.
func difference(part *store.Part, b *store.Bucket) []int64 {
	cost := make([]int64, len(part.Cost))
	for i := range cost {
		if b.Dropped == nil || !b.Dropped[i] {
			cost[i] = bucket.Sub(part.Actual[i], part.Cost[i])
		}
	}
	return cost
}

// settle writes each of r's shares, where it is anything, side by side.
func (s *session) settle(r *request) error {
	var parts []*request
	for i := range r.shares {
		if r.shares[i].any() {
			parts = append(parts, r.part(i, r.shares[i].cost))
		}
	}
	errs := make([]error, len(parts))
	var running sync.WaitGroup
	for i, part := range parts {
		if i == len(parts)-1 { // the last, mostly the only one, on this goroutine
			errs[i] = s.perform(part)
			break
		}
		running.Go(func() { errs[i] = s.perform(part) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// Peek implements store.Session.
func (s *session) Peek(ctx context.Context, call *store.Call) error {
	r, err := s.request(ctx, call, asked)
	if err != nil {
		return err
	}
	defer r.show(s)
	c, err := s.readFor(ctx, r, func(l *leg) bool { return !l.view.Confirmed })
	if err != nil {
		return err
	}
	now := s.now()
	for i, l := range c.legs {
		if img := l.view.Image; img != nil && plan.Outdated(img, &l.shape.Shape) { // as the next acquire will find it
			p := plan.NewReshape(make([]int64, len(l.shape.Limits)), img, &l.shape.Shape, now)
			r.shares[i].after = p.Predict(img.Op)
		}
	}
	return nil
}

// readFor reads those of r's buckets that unread says so of, and the overrides where they are due. Of a missing bucket it tells
// what the next acquire will find.
func (s *session) readFor(ctx context.Context, r *request, unread func(*leg) bool) (*charge, error) {
	c := s.apart(r)
	c.board()
	for c.lacking(unread) && !r.ended {
		if c.failed != nil {
			c.pause(ctx)
			continue
		}
		c.look(ctx)
	}
	for _, l := range c.legs {
		if s.perLimit && !r.ended && l.view.Image == nil {
			var err error
			if l.view.Image, err = c.prospect(ctx, l); err != nil {
				return nil, err
			}
		}
	}
	c.found(r)
	return c, r.err
}

// lacking notes what is to be read: overrides that are due, and images that unread says so of. It reports whether that is
// anything.
func (c *charge) lacking(unread func(*leg) bool) bool {
	now, lacking := c.now(), false
	for _, l := range c.legs {
		l.lacks = c.lacksLevels(l, now)
		if unread(l) {
			l.lacks |= image
		}
		lacking = lacking || l.lacks != 0
	}
	return lacking
}

// Recall implements store.Session. Too many buckets are an error for those alone who charge them.
func (s *session) Recall(call *store.Call) {
	if r, err := s.request(context.Background(), call, asked); err == nil {
		r.show(s)
	}
}
