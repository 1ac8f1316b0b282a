package redisstore

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/window"
	"github.com/sluice-go/sluice/runtime/store"
)

// Acquire implements store.Session. A call with any cascade is one script call: all or none.
func (s *session) Acquire(ctx context.Context, call *store.Call) error {
	r := s.newRequest(ctx, call, pathAcquire, func(part *store.Part) []int64 { return part.Cost })
	return s.perform(r)
}

// perform prepares r and has it served.
func (s *session) perform(r *request) error {
	if err := s.prepare(r); err != nil {
		r.fillCall(false)
		return err
	}
	return s.queues.of(r).serve(r)
}

// serve sends r, waits for its outcome and fills it into r's call.
func (q *queue) serve(r *request) error {
	q.submit(r.encode())
	ended, err := q.await(r)
	r.fillCall(ended)
	return err
}

// prepare resolves the limits in force for r's buckets, and rejects a request that can never succeed.
func (s *session) prepare(r *request) error {
	if err := r.checkTogether(s.db.Keys); err != nil {
		return err
	}
	if err := (resolver{s}).resolve(r); err != nil {
		return err
	}
	if r.path != pathAcquire {
		return nil
	}
	for i := range r.portions { // of a limit with windows, the script decides: a grant may have lifted it
		if r.portions[i].above(func(l bucket.Limit) bool { return !l.Windowed() }) {
			return r.exceeds()
		}
	}
	return nil
}

// above reports whether the portion's cost is more than a full bucket has of one of its limits.
func (p *portion) above(one func(bucket.Limit) bool) bool {
	for i, l := range p.inForce.Limits {
		if p.cost[i] > l.Burst && one(l) {
			return true
		}
	}
	return false
}

// exceeds returns an error for the first limit of which r asks more than a full bucket has, or nil.
func (r *request) exceeds() error {
	for i := range r.portions {
		p := &r.portions[i]
		if !p.above(func(l bucket.Limit) bool { return !l.Prepaid() }) {
			continue
		}
		full := &bucket.Image{Balances: bucket.Full(p.inForce.Limits), Missing: make([]bool, len(p.cost))}
		if err := store.Exceeds(p.spec, p.entity, full, p.cost, math.MaxInt64); err != nil {
			return err
		}
	}
	return nil
}

// Refused implements store.Session. The store caches no denials: it would go on denying for a second
// what another process refunds. A denial costs little: its portion of a script call, which changes nothing.
func (*session) Refused(store.Definition, []store.Link, []int64, int64) *store.DeniedError {
	return nil
}

// Settle implements store.Session. A settle is written like an acquire that nothing denies.
func (s *session) Settle(ctx context.Context, call *store.Call) error {
	r := s.newRequest(ctx, call, pathSettle, difference)
	later := call.Later
	call.Later = nil
	switch {
	case later == nil && !r.hasCost():
		return nil
	case later == nil:
		return s.perform(r)
	case !r.hasCost():
		later(nil)
		return nil
	}
	s.background.Begin()
	r.ctx, r.deadline = context.WithoutCancel(ctx), fromNow(s.env.SettleTimeout)
	r.later = func(err error) {
		defer s.background.End()
		r.fillCall(true)
		later(err)
	}
	s.background.Start(func() {
		if err := s.prepare(r); err != nil {
			r.later(err)
			return
		}
		s.queues.of(r).submit(r.encode())
	})
	return nil
}

// Extend implements store.Session. The script chooses the epoch by Redis's clock.
func (s *session) Extend(ctx context.Context, call *store.Call) error {
	b := &call.Parts[0].Buckets[0]
	held := b.Charges[0]
	nothing := func(*store.Part) []int64 { return make([]int64, len(held.Cost)) }
	r := s.newRequest(ctx, call, pathExtend, nothing)
	p := &r.portions[0]
	if p.back = window.Holds(held); len(p.back) > 0 {
		err := s.prepare(r)
		unsent := err != nil
		if !unsent {
			err = s.queues.of(r).serve(r)
			unsent = errors.Is(err, store.ErrNotSent) || err != nil && s.db.Classify(err) == database.Unapplied
		}
		if unsent {
			b.Epochs = slices.Clone(held.Epochs)
		}
		if err != nil {
			return err
		}
	}
	b.Epochs = make([]int64, len(held.Cost))
	for i, n := range held.Cost {
		key := slices.Index(p.has, i)
		switch {
		case n <= 0 || held.Epochs == nil:
		case held.Epochs[i] < 0:
			b.Epochs[i] = bucket.Lost
		case held.Epochs[i] > 0 && key >= 0:
			b.Epochs[i] = r.extended[key]
		}
	}
	return nil
}

// difference returns how much a settle adds to a part's charge, in millitokens.
func difference(part *store.Part) []int64 {
	cost := make([]int64, len(part.Cost))
	for i := range cost {
		cost[i] = bucket.Sub(part.Actual[i], part.Cost[i])
	}
	return cost
}

// Lookup implements store.Session.
func (s *session) Lookup(call *store.Call) {
	cost := func(part *store.Part) []int64 { return part.Cost }
	s.newRequest(context.Background(), call, pathAcquire, cost).fillCall(false)
}
