package dynamo

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/known"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/background"
	"github.com/sluice-go/sluice/runtime/internal/lookups"
	"github.com/sluice-go/sluice/runtime/store"
)

// session is a Store opened for one Limiter. It implements store.Session.
type session struct {
	scheduler  *scheduler
	revision   int64 // the schema's
	lookups    *lookups.Members
	background background.Tasks
	recorded   sync.Once // the revision, in the table
	closing    chan struct{}
	closed     sync.Once
}

// Close implements store.Session. It writes lazy settles, and waits until abandoned charges are given back.
func (s *session) Close(ctx context.Context) error {
	s.closed.Do(func() { close(s.closing) })
	return s.background.Wait(ctx)
}

// Acquire implements store.Session. One part is charged as its resource's cascade says; several are charged
// together. Overrides that are due are read beside the write. If they have changed, what was charged by the
// old ones is given back, and the new ones decide.
func (s *session) Acquire(ctx context.Context, call *store.Call) error {
	r, err := s.scheduler.newRequest(ctx, call, acquireCost)
	if err != nil {
		return err
	}
	refresh := s.refreshDue(r)
	if refresh != nil {
		defer refresh.End()
	}
	if err = s.acquireOnce(r, call); refresh != nil && store.IsDecision(err) && isOutdated(r, refresh) {
		if err == nil {
			s.scheduler.refundAll(ctx, r.singles())
		}
		if r, err = s.scheduler.newRequest(ctx, call, acquireCost); err != nil {
			return err
		}
		err = s.acquireOnce(r, call)
	}
	r.report(s.scheduler.conn)
	return err
}

// isOutdated waits for a read of overrides, as long as r's caller has time. It reports whether they have
// changed since r was decided.
func isOutdated(r *request, refresh *known.Refresh) bool {
	if r.abandoned { // its worker may still write to it
		return false
	}
	ctx, cancel := withLastDeadline(r.ctx, []*request{r})
	defer cancel()
	return slices.ContainsFunc(r.portions, func(pn portion) bool {
		return refresh.Outdated(ctx, &pn.cached.known, pn.after)
	})
}

// refreshDue begins to read the overrides of r's buckets that are due, after Refreshes of these buckets that
// other requests have begun. It returns nil if none are due, or if these Refreshes take too long.
func (s *session) refreshDue(r *request) *known.Refresh {
	isDue := func(pn portion) bool {
		f, due := s.scheduler.reader.Due(pn.resource, &pn.cached.known, s.scheduler.conn.Now())
		return f != nil || due
	}
	for slices.ContainsFunc(r.portions, isDue) && !r.isOver() {
		own, others := s.scheduler.reader.Begin(r.views(), s.scheduler.conn.Now())
		if own != nil {
			s.background.Start(func() { s.readBeside(r, own) })
		}
		if others == nil {
			return own
		}
		if !others.Wait(r.ctx, besideFor(r)) {
			break
		}
	}
	return nil
}

// readBeside reads f's overrides beside r's write. If it gets no turn, ctx is over, and Read sends nothing.
func (s *session) readBeside(r *request, f *known.Refresh) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), besideFor(r))
	defer cancel()
	if s.scheduler.turns.Acquire(ctx, 1) == nil {
		defer s.scheduler.turns.Release(1)
	}
	s.scheduler.reader.Read(ctx, f)
}

// besideFor bounds how long a read may delay r: half of r's time, and of that for which old overrides serve.
func besideFor(r *request) time.Duration {
	if r.deadline.IsZero() {
		return known.BesideFor / 2
	}
	return min(known.BesideFor, remaining(r.deadline)) / 2
}

// acquireOnce submits r, or its portions one by one.
func (s *session) acquireOnce(r *request, call *store.Call) error {
	r.called = s.scheduler.conn.At(call.Called)
	compensated := r.portions[0].resource.Spec.Cascade == store.CascadeCompensated
	if len(call.Parts) == 1 && len(r.portions) > 1 && compensated {
		return s.acquireCompensated(r)
	}
	return s.scheduler.submit(r)
}

// acquireCost is what an acquire takes of each bucket of a part.
func acquireCost(part *store.Part, _ *store.Bucket) []int64 { return part.Cost }

// Settle implements store.Session. Each bucket is settled by itself, by one write, which it may share with
// other requests. The first give-back after another process has written costs one more (docs/design.md,
// "Outcomes"). All or none, which a transaction would give, is not needed for what has been admitted.
func (s *session) Settle(ctx context.Context, call *store.Call) error {
	r, err := s.scheduler.newRequest(ctx, call, (*store.Part).Difference)
	if err != nil {
		return err
	}
	r.settle, r.called = true, s.scheduler.conn.At(call.Called)
	if onDone := call.Later; onDone != nil {
		call.Later = nil
		s.settleLazily(r, onDone)
		return nil
	}
	return s.settleNow(r)
}

// settleLazily defers r's portions until their buckets are written next. It calls onDone once all are.
func (s *session) settleLazily(r *request, onDone func(error)) {
	r.ctx = context.WithoutCancel(r.ctx)
	if !r.deadline.IsZero() {
		r.deadline, r.deadlineOfCtx = r.deadline.Add(deferFor), false
	}
	all, left := []*request{}, atomic.Int64{}
	errs := make([]error, len(r.portions))
	for i := range r.portions {
		if !r.portions[i].changes() {
			continue
		}
		one := r.single(i, r.portions[i].cost)
		s.background.Begin() // Close waits for it, even if a caller's goroutine writes it
		one.onDone = func(err error) {
			defer s.background.End()
			one.report(s.scheduler.conn)
			errs[i] = err
			if left.Add(-1) == 0 {
				onDone(errors.Join(errs...))
			}
		}
		if one.givesBack() {
			one.portions[0].cached.known.AddGiveBacks(1)
		}
		all = append(all, one)
	}
	if left.Store(int64(len(all))); len(all) == 0 {
		onDone(nil)
	}
	s.scheduler.deferSettles(all)
}

// settleNow writes r's portions side by side.
func (s *session) settleNow(r *request) error {
	all := r.singles()
	errs := make([]error, len(all))
	serve := func(i int) {
		errs[i] = s.scheduler.submit(all[i])
		all[i].report(s.scheduler.conn)
	}
	var running sync.WaitGroup
	for i := range all {
		if i == len(all)-1 { // the last one, mostly the only one, on this goroutine
			serve(i)
			break
		}
		running.Go(func() { serve(i) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// Peek implements store.Session.
func (s *session) Peek(ctx context.Context, call *store.Call) error {
	r, err := s.scheduler.newRequest(ctx, call, acquireCost)
	if err != nil {
		return err
	}
	defer r.report(s.scheduler.conn)
	b, err := s.scheduler.peek(r, func(t *target) bool { return !t.Confirmed })
	if err != nil {
		return err
	}
	now := s.scheduler.conn.Now()
	for i, t := range b.targets {
		r.portions[i].after = t.Shape.Next(t.Image, t.windows, now)
	}
	return nil
}

// Lookup implements store.Session. A call of too many buckets stays as it is: acquiring it returns the error.
func (s *session) Lookup(call *store.Call) {
	if r, err := s.scheduler.newRequest(context.Background(), call, acquireCost); err == nil {
		r.report(s.scheduler.conn)
	}
}

// Refused implements store.Session, by what is known.
func (s *session) Refused(
	def store.Definition, chain []store.Link, cost []int64, now int64,
) *store.DeniedError {
	r := s.scheduler.resource(def)
	var all [known.MaxChain]*known.Bucket
	if len(chain) > len(all) {
		return nil
	}
	for i := range chain {
		// A bucket that denies again and again moves to the front once a second, when its image is too old to deny
		// and an acquire reads it.
		if all[i] = s.scheduler.cache.peek(r, chain[i].Kind, chain[i].ID); all[i] == nil {
			return nil
		}
	}
	return s.scheduler.reader.Refused(r, all[:len(chain)], cost, now)
}

// Overrides implements store.Session. This session goes by what it writes at once, other sessions once their
// cached overrides are due.
func (s *session) Overrides() store.OverrideStore {
	c := s.scheduler
	retrier := c.conn.Retrier(wire.OperatorAttempts, c.jitter)
	stored := operator.OverridesWith(c.conn.API, retrier, c.conn.Env.Clock.Now)
	return &lookups.Overrides{OverrideStore: stored, Wrote: func(resource, at string, filled bool) {
		for _, r := range c.resources {
			if r.Spec.Resource == resource {
				r.Wrote(at, filled, c.cache.peek)
			}
		}
	}}
}

// Member implements store.Session.
func (s *session) Member(ctx context.Context, entity string) (m store.Member, found bool, err error) {
	return s.lookups.Member(ctx, entity)
}

// acquireCompensated charges r's buckets one by one, the scarcest first. If one fails, it refunds the others.
func (s *session) acquireCompensated(r *request) error {
	r.batch = nil // the portions are served one by one
	b := s.scheduler.newDetachedBatch(r)
	if b.needs(s.scheduler.conn.Now(), func(t *target) bool { return t.Image == nil }) {
		b.readInTurn(r.ctx)
	}
	if r.ended {
		return r.err
	}
	now := s.scheduler.conn.Now()
	order, rooms := make([]int, len(b.targets)), make([]float64, len(b.targets))
	for i, t := range b.targets {
		order[i] = i
		r.portions[i].confirmed = t.Confirmed
		demand := plan.Demand{Take: r.portions[i].cost}
		if t.Shape != nil {
			demand.Shape = &t.Shape.Shape
		}
		rooms[i] = demand.LeastLeft(plan.State{Image: t.Image, Confirmed: t.Confirmed}, now)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rooms[a], rooms[b]) })
	var charged []*request
	for n, i := range order {
		one := r.single(i, r.portions[i].cost)
		err := s.scheduler.submit(one)
		if one.abandoned {
			r.portions[i].loadCached(s.scheduler.conn)
		} else {
			r.portions[i] = one.portions[0]
		}
		if err == nil {
			charged = append(charged, one)
			continue
		}
		s.scheduler.refundAll(r.ctx, charged)
		return s.completeDenial(r, err, order[n+1:])
	}
	return nil
}

// completeDenial adds to a denial by one of r's buckets the refusals of others that were not charged, so that
// retry after holds for the whole chain. If they cannot be read, the denial stays as it is. If one of them
// can never hold the cost, the error is that instead.
func (s *session) completeDenial(r *request, err error, others []int) error {
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
	now := s.scheduler.conn.Now()
	b, failed := s.scheduler.peek(&rest, func(t *target) bool { return !t.state(now).Confirmed })
	if failed != nil {
		return err
	}
	b.plan([]*request{&rest}, now)
	for _, t := range b.targets {
		if t.plan.Decision == plan.TooLarge {
			return store.Exceeds(t.Resource.Spec, t.Entity, t.plan.Image, t.demand.Take)
		}
		if img := t.plan.DeniedImage(); img != nil {
			denied = t.refuse(denied, img, t.demand.Take, now)
		}
	}
	store.SortRefusals(denied, func(of store.Refusal) int {
		return slices.IndexFunc(r.portions, func(pn portion) bool { return pn.entity == of.Entity })
	})
	return err
}
