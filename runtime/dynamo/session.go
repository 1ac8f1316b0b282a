package dynamo

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/members"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/background"
	"github.com/sluice-go/sluice/runtime/internal/lookups"
	"github.com/sluice-go/sluice/runtime/store"
)

// session is a Store opened for one Limiter. It implements store.Session.
type session struct {
	scheduler  *scheduler
	resources  []*resource
	revision   int64 // the schema's
	lookups    *lookups.Members
	background background.Tasks
	recorded   sync.Once // the revision, in the table
	closing    chan struct{}
	closed     sync.Once
}

// resource returns what was opened as def. There are few, and an interface is hashed slower than compared.
func (s *session) resource(def store.Definition) *resource {
	for _, r := range s.resources {
		if r.def == def {
			return r
		}
	}
	return nil
}

// Close implements store.Session. It has lazy settles written, and waits until lost charges are given back.
func (s *session) Close(ctx context.Context) error {
	s.closed.Do(func() { close(s.closing) })
	return s.background.Wait(ctx)
}

// Acquire implements store.Session. One part is charged as its resource's cascade says; several are charged
// together.
func (s *session) Acquire(ctx context.Context, call *store.Call) error {
	r, err := s.newRequest(ctx, call, acquireCost)
	if err != nil {
		return err
	}
	r.called = s.scheduler.conn.At(call.Called)
	compensated := r.portions[0].resource.Spec.Cascade == store.CascadeCompensated
	if len(call.Parts) == 1 && len(r.portions) > 1 && compensated {
		return s.acquireCompensated(r)
	}
	return s.perform(r)
}

// perform submits r and fills in its call's buckets.
func (s *session) perform(r *request) error {
	defer r.report(s.scheduler.conn)
	return s.scheduler.submit(r)
}

// acquireCost is what an acquire takes of each bucket of a part.
func acquireCost(part *store.Part, _ *store.Bucket) []int64 { return part.Cost }

// settleDifference is what a settle adds to a bucket's charge. A limit that was missing in the bucket was not
// charged, so it is neither charged nor given back now.
func settleDifference(part *store.Part, b *store.Bucket) []int64 {
	cost := make([]int64, len(part.Cost))
	for i := range cost {
		if b.Dropped == nil || !b.Dropped[i] {
			cost[i] = bucket.Sub(part.Actual[i], part.Cost[i])
		}
	}
	return cost
}

// Settle implements store.Session. Each bucket is settled by itself, by one write unit at most, which it may
// share with other requests. All or none, which a transaction would give, is not needed for what has been
// admitted.
func (s *session) Settle(ctx context.Context, call *store.Call) error {
	r, err := s.newRequest(ctx, call, settleDifference)
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

// settleLazily defers r's portions until their buckets are written next, and calls onDone once all are
// written.
func (s *session) settleLazily(r *request, onDone func(error)) {
	r.ctx = context.WithoutCancel(r.ctx)
	if !r.deadline.IsZero() {
		r.deadline, r.deadlineOfCtx = r.deadline.Add(deferFor), false
	}
	all := []*request{}
	left := atomic.Int64{}
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
			one.portions[0].cached.addGiveBacks(1)
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
	var all []*request
	for i := range r.portions {
		if r.portions[i].changes() {
			all = append(all, r.single(i, r.portions[i].cost))
		}
	}
	errs := make([]error, len(all))
	var running sync.WaitGroup
	for i, one := range all {
		if i == len(all)-1 { // the last one, mostly the only one, on this goroutine
			errs[i] = s.perform(one)
			break
		}
		running.Go(func() { errs[i] = s.perform(one) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// Peek implements store.Session.
func (s *session) Peek(ctx context.Context, call *store.Call) error {
	r, err := s.newRequest(ctx, call, acquireCost)
	if err != nil {
		return err
	}
	defer r.report(s.scheduler.conn)
	b, err := s.scheduler.peek(r, func(t *target) bool { return !t.confirmed })
	if err != nil {
		return err
	}
	now := s.scheduler.conn.Now()
	for i, t := range b.targets {
		r.portions[i].after = t.shape.Next(t.image, now)
	}
	return nil
}

// Lookup implements store.Session. A call of too many buckets is left as it is: acquiring it returns the
// error.
func (s *session) Lookup(call *store.Call) {
	if r, err := s.newRequest(context.Background(), call, acquireCost); err == nil {
		r.report(s.scheduler.conn)
	}
}

// lookupAttempts is how often a look-up is tried, since an acquire waits for it.
const lookupAttempts = 3

// Member implements store.Session.
func (s *session) Member(ctx context.Context, entity string) (m store.Member, found bool, err error) {
	return s.lookups.Member(ctx, entity)
}

// readMember reads an entity's item.
func (s *session) readMember(ctx context.Context, entity string) (m store.Member, found bool, err error) {
	conn := s.scheduler.conn
	retrier := s.scheduler.retrier(lookupAttempts)
	retrier.Budget = conn.Budget // an outage must not be met by more reads than were asked for
	var out *dynamodb.GetItemOutput
	err = retrier.Do(ctx, func() (err error) {
		began := conn.Env.Clock.Now()
		out, err = members.Get(ctx, conn.API, conn.Table, entity)
		if err != nil {
			out = &dynamodb.GetItemOutput{}
		}
		conn.Report(ctx, wire.ReadEvent("GetItem", "member", began, len(out.Item) > 0, out.ConsumedCapacity, err))
		return err
	})
	if err != nil {
		return store.Member{}, false, err
	}
	return members.Decode(entity, out.Item)
}

// retrier returns a retrier for calls that charge nothing.
func (s *scheduler) retrier(attempts int) wire.Retrier {
	conn := s.conn
	return wire.Retrier{
		Table: conn.Table, Attempts: attempts, After: conn.Env.Clock.After, Jitter: s.jitter,
	}
}

// acquireCompensated charges r's buckets one by one, the scarcest first. If one fails, it gives back what the
// others were charged.
func (s *session) acquireCompensated(r *request) error {
	defer r.report(s.scheduler.conn)
	// One call reads what is missing of all. If it gets no answer, the charges try again.
	r.batch = nil // the portions are served one by one
	b := s.scheduler.newDetachedBatch(r)
	b.init()
	if (reader{s.scheduler, b.targets}).needs(func(t *target) bool { return t.image == nil }) {
		if b.readMissing(r.ctx); r.ended {
			return r.err
		}
	}
	now := s.scheduler.conn.Now()
	order, rooms := make([]int, len(b.targets)), make([]float64, len(b.targets))
	for i, t := range b.targets {
		order[i] = i
		r.portions[i].confirmed = t.confirmed
		demand := plan.Demand{Take: r.portions[i].cost}
		if t.shape != nil {
			demand.Shape = &t.shape.Shape
		}
		rooms[i] = demand.LeastLeft(plan.State{Image: t.image, Confirmed: t.confirmed}, now)
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
		rest.portions = append(rest.portions, r.portions[i])
	}
	now := s.scheduler.conn.Now()
	b, failed := s.scheduler.peek(&rest, func(t *target) bool { return !t.state(now).Confirmed })
	if failed != nil {
		return err
	}
	planner{s.scheduler, b.targets}.plan([]*request{&rest}, now)
	for _, t := range b.targets {
		if t.plan.Decision == plan.TooLarge {
			return store.Exceeds(t.resource.Spec, t.entity, t.plan.Image, t.demand.Take)
		}
		if img := t.plan.DeniedImage(); img != nil {
			denied = store.Refuse(denied, t.resource.Spec, t.entity, img, t.demand.Take, now)
		}
	}
	index := func(of store.Refusal) int {
		return slices.IndexFunc(r.portions, func(pn portion) bool { return pn.entity == of.Entity })
	}
	slices.SortStableFunc(denied.Refusals, func(a, b store.Refusal) int {
		return cmp.Compare(index(a), index(b))
	})
	return err
}
