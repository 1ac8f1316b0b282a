package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/store"
)

// request is one caller's logical write: to one bucket, or to several all or none.
type request struct {
	ctx      context.Context
	deadline time.Time // the caller's, ctx's included; zero for none
	theirs   bool      // it is ctx's, which says when it is over
	called   int64     // ms
	settle   bool      // debt is allowed and nothing is denied
	shares   []share
	work     *charge     // what a lone one is worked for by; nil for one that is made of another
	later    func(error) // told how it ended where nobody waits; else nil
	due      bool        // it has waited for another write to ride on, as long as it may

	// From here on whoever works for it writes, and its caller reads once it has ended.
	leg   int  // of whoever works for it, the first that is r's: a chain takes along what is owed to its buckets
	tries int  // made for it; written under the lane's lock, since a caller may leave before the end
	told  bool // its caller was, though it is still aboard
	err   error
	ended bool

	// The lane's lock guards these.
	done chan struct{} // closed once it has ended; nil while nobody waits for others to do the work
	gone bool          // its caller did not wait for the end
}

// share is what a request does to one bucket, and how that was left or found.
type share struct {
	*resource

	entity string // as stored
	kind   int
	memory *memory
	cost   []int64 // negative where tokens are given back

	truth   bool            // what is remembered was read for this request
	buckets []*store.Bucket // the call's: several parts may meet in one
	after   *bucket.Image
	limits  []bucket.Limit
	dropped []bool
}

// mostLegs is how many actions one transaction takes.
const mostLegs = 100

// request makes one of call: each bucket once. Costs of parts that meet in one are added up, as DynamoDB refuses two
// operations on one item.
func (s *session) request(ctx context.Context, call *store.Call, cost func(*store.Part, *store.Bucket) []int64) (*request, error) {
	lone := &struct { // most are of one bucket, and alone: then this is all of them
		request
		charge
		share  [1]share
		bucket [1]*store.Bucket
		member [1]*request
	}{}
	r := &lone.request
	r.ctx, r.called, r.deadline, r.work = ctx, call.Called.UnixMilli(), call.Deadline, &lone.charge
	r.work.members = lone.member[:0]
	if d, ok := ctx.Deadline(); ok && (r.deadline.IsZero() || d.Before(r.deadline)) {
		r.deadline, r.theirs = d, true
	}
	if r.shares = lone.share[:0]; len(call.Parts[0].Buckets) > 1 {
		r.shares = make([]share, 0, len(call.Parts[0].Buckets))
	}
	for i := range call.Parts {
		part := &call.Parts[i]
		of := s.resource(part.Def)
		for j := range part.Buckets {
			b := &part.Buckets[j]
			at := slices.IndexFunc(r.shares, func(sh share) bool { return sh.resource == of && sh.entity == b.Entity })
			if at >= 0 {
				r.shares[at].join(b, cost(part, b))
				continue
			}
			sh := share{resource: of, entity: b.Entity, kind: b.Kind, cost: cost(part, b), buckets: lone.bucket[:0:0], dropped: b.Dropped}
			if len(r.shares) == 0 {
				sh.buckets = lone.bucket[:0]
			}
			sh.buckets = append(sh.buckets, b)
			sh.memory = s.recall(of, b.Kind, b.Entity)
			sh.recall(s)
			r.shares = append(r.shares, sh)
		}
	}
	if len(r.shares) > mostLegs {
		return nil, &store.InvalidError{Resource: r.shares[0].spec.Resource, Field: "claims", Value: strconv.Itoa(len(r.shares)),
			Reason: fmt.Sprintf("are too many buckets: one transaction takes %d, so split the call", mostLegs)}
	}
	return r, nil
}

// recall notes what is remembered of the bucket.
func (sh *share) recall(s *session) {
	var known *override.Resolved
	if sh.after, _, known = sh.memory.known(); known != nil {
		sh.limits = known.InForce(s.now())
	}
}

// join adds another part's share of the same bucket.
func (sh *share) join(b *store.Bucket, cost []int64) {
	sh.cost = slices.Clone(sh.cost)
	for i := range sh.cost {
		sh.cost[i] = bucket.Add(sh.cost[i], cost[i])
	}
	sh.buckets = append(sh.buckets, b)
}

// show tells the call what became of its buckets, or, if its caller did not wait for the end, what is remembered of them.
func (r *request) show(s *session) {
	for i := range r.shares {
		sh := &r.shares[i]
		if r.gone {
			sh = &share{memory: sh.memory, buckets: sh.buckets, dropped: sh.buckets[0].Dropped}
			sh.recall(s)
		}
		for _, b := range sh.buckets {
			b.After, b.Limits, b.Dropped = sh.after, sh.limits, sh.dropped
		}
	}
}

// part returns a request of r's for cost of its i-th bucket alone.
func (r *request) part(i int, cost []int64) *request {
	sh := r.shares[i]
	sh.cost = cost
	return &request{ctx: r.ctx, deadline: r.deadline, theirs: r.theirs, called: r.called, settle: r.settle, shares: []share{sh}}
}

// at returns r's share of the i-th leg of whoever works for it, nil for none.
func (r *request) at(i int) *share {
	if i -= r.leg; i < 0 || i >= len(r.shares) {
		return nil
	}
	return &r.shares[i]
}

// wants returns what r takes of the i-th leg, nil for nothing.
func (r *request) wants(i int) []int64 {
	if sh := r.at(i); sh != nil {
		return sh.cost
	}
	return nil
}

// pressing reports that r is not to wait for another write to ride on.
func (r *request) pressing() bool { return r.later == nil || r.due }

func (r *request) hasEnded() bool { return r.ended }

// givesBack reports whether r gives anything back.
func (r *request) givesBack() bool {
	return r.settle && slices.ContainsFunc(r.shares, func(sh share) bool { return slices.ContainsFunc(sh.cost, negative) })
}

func negative(n int64) bool { return n < 0 }

// any reports whether there is anything to write.
func (sh *share) any() bool {
	return slices.ContainsFunc(sh.cost, func(n int64) bool { return n != 0 })
}

// leaves returns what to tell r's caller, who leaves while a try for it may be under way, met being what the one before met,
// which others may be told too. A lost race stays one: what that try may charge yet is given back, so that trying again is
// safe, and no policy for an outage decides. The caller holds the lane's lock.
func (r *request) leaves(met error) error {
	if u, ok := errors.AsType[*store.UnavailableError](met); ok {
		own := *u
		own.Attempts = r.tries
		met = &own
	} else if lost, ok := errors.AsType[*store.ContendedError](met); ok {
		own := *lost
		own.Attempts = r.tries
		met = &own
		if r.settle {
			met = &store.UnavailableError{Resource: lost.Resource, Attempts: r.tries, Err: errContended}
		}
	}
	return r.ends(met)
}

// ends returns what to tell r's caller whose ctx is over, err being what the last try met, if there was one: its own
// cancellation as it is, and a deadline as what kept r from being done in time.
func (r *request) ends(err error) error {
	sh := &r.shares[0]
	if errors.Is(r.ctx.Err(), context.Canceled) {
		return fmt.Errorf("sluice: %s for %s: %w", sh.spec.Resource, sh.entity, context.Canceled)
	}
	if err == nil && r.tries == 0 {
		return &store.UnavailableError{Resource: sh.spec.Resource, Err: fmt.Errorf("%w: %w", store.ErrNotSent, context.DeadlineExceeded)}
	}
	if err == nil {
		return &store.UnavailableError{Resource: sh.spec.Resource, Attempts: r.tries, Err: context.DeadlineExceeded}
	}
	if u, ok := errors.AsType[*store.UnavailableError](err); ok && !errors.Is(u.Err, context.DeadlineExceeded) {
		own := *u // others may be told the same
		own.Err = errors.Join(context.DeadlineExceeded, u.Err)
		return &own
	}
	return err
}

// over reports that r's caller has no more time, or has left.
func (r *request) over() bool {
	return r.ctx.Err() != nil || !r.theirs && !r.deadline.IsZero() && left(r.deadline) <= 0
}
