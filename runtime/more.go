package runtime

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/runtime/internal/local"
	"github.com/sluice-go/sluice/runtime/internal/outage"
	"github.com/sluice-go/sluice/runtime/internal/parked"
	"github.com/sluice-go/sluice/runtime/internal/tokens"
	"github.com/sluice-go/sluice/runtime/store"
)

// More acquires more of the lease's buckets and adds it to the lease: Settle, Release and Cost are then of
// both together. more is in whole tokens; a 0 is 0, not per_call. The options are those of the acquire, and a
// Budget begins anew. The calls that change one lease are served one after the other.
//
// It fails as Acquire does, and then leaves the lease as it was. It also fails with:
//   - ErrSettled, if the lease has ended before, or is nil;
//   - ErrLeaseLost, if the lease is lost;
//   - an *InvalidError for a cost of nothing, and for the zero Lease.
//
// A call that the failure policy or shadow mode admits adds nothing: Settle charges it. A Degraded lease
// takes more from where it took before, and a Shadowed one nothing.
func (l *Lease[C]) More(ctx context.Context, more C) error {
	if err := (*lease)(l).check(); err != nil {
		return err
	}
	return (*lease)(l).more(ctx, costsOf[C](l.record.resource).toVector(more, nil))
}

// more has l take cost, in whole tokens, as well.
func (l *lease) more(ctx context.Context, cost []int64) error {
	rec := l.record
	if err := rec.LockFor(ctx); err != nil {
		return fmt.Errorf("sluice: %s: while the lease was extended: %w", rec.resource.spec.Resource, err)
	}
	defer rec.Unlock()
	switch {
	case rec.Spent():
		return ErrSettled
	case rec.holder != nil && rec.IsLost():
		return ErrLeaseLost
	}
	r, call := rec.resource, rec.again()
	part := &call.Parts[0]
	part.Cost = cost
	empty, err := tokens.Scale(r.spec, part.Buckets[0].Kind, false, part.Cost)
	if err == nil && empty {
		err = tokens.ErrEmpty(r.spec)
	}
	if err != nil || rec.shadowed != nil {
		return err
	}
	var how ending
	switch held := rec.by.(type) {
	case outage.Unrecorded:
		return nil
	case *local.Held:
		// The bucket here may have ended since. It starts again as the store last showed it, not full.
		r.core.session.Lookup(&call.Call)
		var taken *local.Held
		if taken, how.err = r.core.fallback.Locals.Acquire(&call.Call); how.err == nil {
			held.Add(taken)
		}
		how.by = held
	default:
		if how.err = r.ready(ctx, call, rec.options); how.err == nil {
			how.by, how.err = r.attempt(ctx, call, rec.options)
		}
		how = endOf(call, r.inShadow(rec.options), how.by, how.err)
	}
	ended := r.core.env.Clock.Now()
	r.report(ctx, store.OperationAcquire, call, ended, how)
	if how.err == nil && how.shadowed == nil && outage.Degraded(how.by) == outage.Degraded(rec.by) {
		rec.add(part, ended.UnixMilli())
		rec.hold(l)
	} else if here, ok := how.by.(*local.Held); ok && how.err == nil {
		part.Actual = part.Cost // but for slots, which nobody else would give back
		_ = here.Settle(ctx, &call.Call)
	}
	return how.err
}

// again returns a call on the lease's buckets, as they were found.
func (r *record) again() *request {
	of := r.resource
	call := requestOf(of.spec, of.core.env.Clock.Now(), store.Part{Def: of.def})
	call.Again = true
	for _, b := range r.Part().Buckets {
		own := b.Unfilled()
		own.Source = b.Source
		call.Parts[0].Buckets = append(call.Parts[0].Buckets, own)
	}
	return call
}

// add adds more, which was taken at at (ms), to what the lease took. The caller has locked r.
func (r *record) add(more *store.Part, at int64) {
	sum := parked.Sum(r.Part(), more)
	r.Set(sum)
	r.wrote(sum.Buckets, at)
}
