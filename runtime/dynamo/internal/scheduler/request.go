package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/known"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/store"
)

// Request is what one caller has written: to one bucket, or to several, all or none.
type Request struct {
	ctx           context.Context
	deadline      time.Time // the earlier of the call's and ctx's; zero for none
	deadlineOfCtx bool      // deadline is ctx's, which fires by itself
	called        int64     // when the call began, ms
	settle        bool      // debt is allowed and nothing is denied
	extends       bool      // a settle that changes nothing but the epochs of holds
	portions      []portion
	batch         *batch      // allocated with the request, for the case that it is served alone; else nil
	onDone        func(error) // of a lazy settle, for which nobody waits; else nil
	overdue       bool        // a lazy settle that must not wait for another write any longer

	// The worker of the request's queue writes these. The caller reads them once the request has ended.
	free     int   // of attempts, those that were throttled or met a transaction
	attempts int   // written under the queue's lock as well, since a caller may leave before the end
	skipped  bool  // a pause was skipped for it, before its first attempt
	sent     bool  // a request was sent for it; written under the queue's lock as well
	answered bool  // the caller has its answer although the write may still be applied
	err      error // once ended
	ended    bool

	// The queue's lock guards these.
	done      chan struct{} // closed once the caller has its answer; nil while no caller waits for a worker
	abandoned bool          // the caller did not wait for the end
	written   int           // of an extension, the writes that may have been applied
}

// portion is what a request does to one bucket, and how the bucket was found or left.
type portion struct {
	resource *known.Resource
	entity   string // as stored
	kind     int
	cached   *cachedBucket
	target   *target            // the batch's, which the worker of the queue sets; nil before
	cost     []int64            // millitokens by limit; negative where tokens are given back
	windows  []*bucket.Calendar // of the limits; nil if none has windows
	charges  []bucket.Charge    // of a settle: what its lease took, oldest first; nil without windows and holds

	confirmed bool            // the cached image was read for this request
	buckets   []*store.Bucket // of the call: several of its parts may meet in one bucket
	after     *bucket.Image
	limits    []bucket.Limit
	dropped   []bool
	ends      []int64 // of the windows that it charged, by limit; nil if no limit has windows
	epochs    []int64 // in which what it took is held, by limit; nil if no limit counts holds
}

// maxTargets is how many items one TransactWriteItems takes.
const maxTargets = 100

// newRequest returns a request of call, in which each bucket occurs once. Costs of parts that meet in one
// bucket are added, since DynamoDB refuses two operations on one item. cost returns what a part does to a
// bucket. The plan that call has for a bucket counts; that of a settle counts only if none is known. The
// error is a *store.InvalidError for too many buckets.
func (s *scheduler) newRequest(
	ctx context.Context, call *store.Call, settles bool, cost func(*store.Part, *store.Bucket) []int64,
) (*Request, error) {
	single := newSingleRequest()
	r := &single.Request
	r.ctx, r.called, r.deadline = ctx, call.Called.UnixMilli(), call.Deadline
	if d, ok := ctx.Deadline(); ok && (r.deadline.IsZero() || d.Before(r.deadline)) {
		r.deadline, r.deadlineOfCtx = d, true
	}
	if len(call.Parts[0].Buckets) > 1 {
		r.portions = make([]portion, 0, len(call.Parts[0].Buckets))
	}
	for i := range call.Parts {
		part := &call.Parts[i]
		of := s.resource(part.Def)
		for j := range part.Buckets {
			b := &part.Buckets[j]
			own := of.Spec.CostOf(b.Kind, cost(part, b))
			same := func(pn portion) bool { return pn.isOf(of, b) }
			at := slices.IndexFunc(r.portions, same)
			if at >= 0 {
				r.portions[at].add(b, own)
				continue
			}
			pn := portion{
				resource: of, entity: b.Entity, kind: b.Kind, cost: own,
				buckets: single.bucket[:0:0], dropped: b.Dropped,
				windows: b.Calendars(of.Spec), charges: b.Charges,
			}
			if len(r.portions) == 0 {
				pn.buckets = single.bucket[:0]
			}
			pn.buckets = append(pn.buckets, b)
			pn.cached = s.cache.lookup(of, b.Kind, b.Entity)
			if b.Plan.Of != "" {
				pn.cached.known.NotePlan(&b.Plan, settles)
			}
			pn.loadCached(s.conn)
			r.portions = append(r.portions, pn)
		}
	}
	if len(r.portions) > maxTargets {
		return nil, &store.InvalidError{
			Resource: r.portions[0].resource.Spec.Resource, Field: "claims", Value: strconv.Itoa(len(r.portions)),
			Reason: fmt.Sprintf("are too many buckets: one transaction takes %d, so split the call", maxTargets),
		}
	}
	return r, nil
}

// isOf reports whether pn's bucket is b, of a resource.
func (pn *portion) isOf(r *known.Resource, b *store.Bucket) bool {
	return pn.entity == b.Entity && pn.kind == b.Kind && pn.resource.Opened() == r.Opened() &&
		pn.resource.Spec.ResourceOf(pn.kind) == r.Spec.ResourceOf(b.Kind)
}

// loadCached sets after and limits from the cache.
func (pn *portion) loadCached(c *wire.Conn) {
	img, _, shape := pn.cached.known.Snapshot()
	if pn.after = img; shape != nil {
		pn.limits = shape.InForce(c.Now())
	}
}

// add adds what another part of the call does to the same bucket.
func (pn *portion) add(b *store.Bucket, cost []int64) {
	pn.cost = slices.Clone(pn.cost)
	for i := range pn.cost {
		pn.cost[i] = bucket.Add(pn.cost[i], cost[i])
	}
	pn.buckets = append(pn.buckets, b)
}

// changes reports whether the portion's cost is anything but 0, or its charges hold anything.
func (pn *portion) changes() bool {
	return slices.ContainsFunc(pn.cost, func(n int64) bool { return n != 0 }) || pn.holds()
}

// holds reports whether the charges of a settle hold anything.
func (pn *portion) holds() bool {
	return slices.ContainsFunc(pn.charges, func(c bucket.Charge) bool { return c.Holds() })
}

// Report fills in the call's buckets: as the request left or found them, or from the cache if the caller did
// not wait.
func (r *Request) Report(c *wire.Conn) {
	for i := range r.portions {
		pn := &r.portions[i]
		if r.abandoned {
			pn = &portion{cached: pn.cached, buckets: pn.buckets, dropped: pn.buckets[0].Dropped}
			pn.loadCached(c)
		}
		for _, b := range pn.buckets {
			b.After, b.Limits, b.Dropped, b.Ends = pn.after, pn.limits, pn.dropped, pn.ends
			b.Epochs = pn.epochs
		}
	}
}

// single returns a request for cost of the i-th portion's bucket alone, with r's context and times.
func (r *Request) single(i int, cost []int64) *Request {
	pn := r.portions[i]
	pn.cost, pn.target = cost, nil
	return &Request{
		ctx: r.ctx, deadline: r.deadline, deadlineOfCtx: r.deadlineOfCtx, called: r.called, settle: r.settle,
		extends:  r.extends,
		portions: []portion{pn},
	}
}

// Unsent reports whether no write for r, an extension that has failed, was applied, or will be.
func (r *Request) Unsent() bool {
	mu := &r.portions[0].cached.mu
	mu.Lock()
	defer mu.Unlock()
	return r.written == 0
}

// singles returns a request for each of r's buckets that r takes from or gives back to.
func (r *Request) singles() (all []*Request) {
	for i := range r.portions {
		if r.portions[i].changes() {
			all = append(all, r.single(i, r.portions[i].cost))
		}
	}
	return all
}

// views returns views of r's buckets that are not loaded yet.
func (r *Request) views() (all []*known.View) {
	for i := range r.portions {
		v := r.portions[i].view()
		all = append(all, &v)
	}
	return all
}

func (pn *portion) view() known.View {
	return known.View{Resource: pn.resource, Entity: pn.entity, Kind: pn.kind, Bucket: &pn.cached.known}
}

// refund returns a settle that gives back what r was charged of its i-th bucket. It has until ctx's deadline.
func (r *Request) refund(ctx context.Context, i int, now int64) *Request {
	pn := &r.portions[i]
	back := bucket.Negated(pn.cost)
	for j, dropped := range pn.dropped {
		if dropped {
			back[j] = 0
		}
	}
	refund := r.single(i, back)
	refund.ctx, refund.called, refund.settle = ctx, now, true
	refund.deadline, refund.deadlineOfCtx = ctx.Deadline()
	refund.portions[0].buckets = nil
	if pn.ends != nil || pn.epochs != nil {
		refund.portions[0].charges = []bucket.Charge{{Cost: pn.cost, Ends: pn.ends, Epochs: pn.epochs}}
	}
	return refund
}

// portionOf returns r's portion of t, nil if it has none.
func (r *Request) portionOf(t *target) *portion {
	for i := range r.portions {
		if pn := &r.portions[i]; pn.target == t {
			return pn
		}
	}
	return nil
}

// costOf returns what r takes of t, negative where it gives back, nil for nothing.
func (r *Request) costOf(t *target) []int64 {
	if pn := r.portionOf(t); pn != nil {
		return pn.cost
	}
	return nil
}

// recordFound notes in the portions of r, which was not written, how its buckets were found.
func (r *Request) recordFound(now int64) {
	for i := range r.portions {
		pn := &r.portions[i]
		t := pn.target
		if t == nil {
			continue
		}
		if pn.after = t.Image; t.Shape != nil {
			pn.limits = t.Shape.InForce(now)
		}
		if img := t.plan.DeniedImage(); img != nil && t.Needs == 0 {
			pn.after = img
		}
		if r.extends {
			pn.epochs = t.plan.Extended(&pn.charges[0])
		}
	}
}

func (r *Request) hasEnded() bool { return r.ended }

// isLazy reports whether r is a lazy settle, which another write may include.
func (r *Request) isLazy() bool { return r.onDone != nil }

// meetsDeferred reports whether lazy settles wait for a write to one of r's buckets.
func (r *Request) meetsDeferred() bool {
	return slices.ContainsFunc(r.portions, func(pn portion) bool { return pn.cached.hasDeferred.Load() })
}

// mayLeaveSlot reports whether r takes holds for a caller who may leave before the write has ended. A worker
// sends such a write, so that its outcome becomes known, and what it took is given back.
func mayLeaveSlot(r *Request) bool {
	return !r.settle && r.ctx.Done() != nil && slices.ContainsFunc(r.portions, func(pn portion) bool {
		return pn.resource.Spec.Held != nil
	})
}

// isUrgent reports whether r must not wait for another write.
func (r *Request) isUrgent() bool { return r.onDone == nil || r.overdue }

// givesBack reports whether r is a settle that gives anything back.
func (r *Request) givesBack() bool {
	return r.settle && slices.ContainsFunc(r.portions, func(pn portion) bool {
		return slices.ContainsFunc(pn.cost, negative) || pn.holds()
	})
}

func positive(n int64) bool { return n > 0 }

func negative(n int64) bool { return n < 0 }

// isOver reports whether r's caller has no time left.
func (r *Request) isOver() bool {
	return r.ctx.Err() != nil || !r.deadlineOfCtx && !r.deadline.IsZero() && remaining(r.deadline) <= 0
}

// leaveErr returns the error for a caller that leaves while an attempt may be under way. lastErr is the error
// of the attempt before, which other callers may share. An acquire's lost race stays a *store.ContendedError:
// what the attempt under way may charge is given back, so trying again is safe and no failure policy decides.
// The caller holds the queue's lock.
func (r *Request) leaveErr(lastErr error) error {
	return r.overErr((&attempts{lastErr: lastErr}).errFor(r, false))
}

// overErr returns the error for a caller whose time is over. err is the error of the last attempt, nil if
// none has ended. A cancellation stays one. A deadline is joined with what kept the request from its answer.
func (r *Request) overErr(err error) error {
	pn := &r.portions[0]
	name := pn.resource.Spec.Resource
	if errors.Is(r.ctx.Err(), context.Canceled) {
		return fmt.Errorf("sluice: %s for %s: %w", name, store.Quote(pn.entity), context.Canceled)
	}
	if err == nil {
		err = &store.UnavailableError{Resource: name, Attempts: max(r.attempts, 1), Err: context.DeadlineExceeded}
	}
	if u, ok := errors.AsType[*store.UnavailableError](err); ok && !errors.Is(u.Err, context.DeadlineExceeded) {
		own := *u
		own.Err = errors.Join(context.DeadlineExceeded, u.Err)
		err = &own
	}
	if !r.sent { // the attempt served other requests alone
		return store.Unsent(err)
	}
	return err
}

// remaining returns the time until a context's deadline, which is the system's, whatever the Clock.
func remaining(deadline time.Time) time.Duration {
	return time.Until(deadline) //nolint:forbidigo // see above
}

// withLastDeadline bounds ctx by the last deadline among requests that are not answered. A deadline taken
// from a request's context is skipped; the context fires by itself.
func withLastDeadline(ctx context.Context, all []*Request) (context.Context, context.CancelFunc) {
	var last time.Time
	for _, r := range all {
		switch d := r.deadline; {
		case r.answered, r.deadlineOfCtx:
		case d.IsZero():
			return ctx, func() {}
		case d.After(last):
			last = d
		}
	}
	if last.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, last)
}
