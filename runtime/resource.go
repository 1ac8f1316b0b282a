package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluice-go/sluice/runtime/internal/balances"
	"github.com/sluice-go/sluice/runtime/internal/chains"
	"github.com/sluice-go/sluice/runtime/internal/deadlines"
	"github.com/sluice-go/sluice/runtime/internal/observers"
	"github.com/sluice-go/sluice/runtime/internal/outage"
	"github.com/sluice-go/sluice/runtime/internal/prefetch"
	"github.com/sluice-go/sluice/runtime/internal/tokens"
	"github.com/sluice-go/sluice/runtime/store"
)

// Acquirer is what *Resource implements: the type a handler takes, so that a test can pass a fake.
type Acquirer[E Entity, C any] interface {
	Acquire(ctx context.Context, entity E, cost C, opts ...CallOption) (*Lease[C], error)
	Wait(ctx context.Context, entity E, cost C, opts ...CallOption) (*Lease[C], error)
	Do(
		ctx context.Context, entity E, cost C, fn func(context.Context, *Lease[C]) error, opts ...CallOption,
	) error
	Peek(ctx context.Context, entity E) (*Snapshot[C], error)
}

// LimitOf is the name of a limit of the resource whose cost is C, such as limits.GPT4TPM. The name of another
// resource's limit does not compile in its place, nor does a string.
type LimitOf[C any] interface {
	LimitName
	Of(C) // does nothing
}

// Resource is the typed entry to one resource: E is the kinds it accepts, C its cost struct. It is safe for
// concurrent use.
//
// The compiler makes a copy of each method for each resource of a schema. So the methods of generic types
// only convert, and do not embed the untyped part: its methods would be copied too.
type Resource[E Entity, C any] struct {
	untyped *resource
	costs   *costs[C]
}

// costs converts between costs and vectors of whole tokens.
type costs[C any] struct {
	toVector   func(C, []int64) []int64
	fromVector func([]int64) C
}

// resource is the untyped part.
type resource struct {
	core     *core
	def      store.Definition
	spec     *store.Spec
	defaults callOptions
	costs    any // the Resource's costs[C], for its leases
}

// costsOf returns the conversions of r, whose cost struct is C.
func costsOf[C any](r *resource) *costs[C] { return r.costs.(*costs[C]) }

// Name returns the resource's name in the schema.
func (r *Resource[E, C]) Name() string { return r.untyped.spec.Resource }

// Logger returns the log that WithLogger set, for middlewares.
func (r *Resource[E, C]) Logger() *slog.Logger { return r.untyped.core.env.Logger }

// With returns a Resource that shares r's state and has other call defaults. A bad option is reported by its
// calls.
func (r *Resource[E, C]) With(opts ...CallOption) *Resource[E, C] {
	return &Resource[E, C]{untyped: r.untyped.with(opts), costs: r.costs}
}

func (r *resource) with(opts []CallOption) *resource {
	shared := *r
	shared.defaults = *r.defaults.with(opts)
	return &shared
}

// Acquire takes cost from the entity's bucket and, as the resource's cascade says, from those of its
// ancestors whose kind has one: from all of them, or from none. A cost is in whole tokens, or in money; a 0
// means the per_call of the entity's kind. Compensated charges bucket by bucket and gives back on a refusal,
// so others may see tokens as taken for a moment; atomic never shows that. Ancestors come from entity or, if
// it leaves them to a look-up (UserByID), from the store. The process remembers them for as long as
// WithCacheTTL says.
//
// It fails with:
//   - a *DeniedError when tokens are missing, in whichever bucket;
//   - a *CostTooLargeError when waiting cannot help;
//   - an *InvalidError for bad input, such as a cost of a limit that no kind of the chain has, or an entity
//     that a look-up does not find;
//   - an *UnavailableError when the store did not answer within the Budget, look-ups included, and the
//     failure policy is Deny;
//   - a *ContendedError when every attempt lost its race or met another transaction;
//   - a *SetupError when the installation is at fault;
//   - ctx's error when the caller gave up.
//
// Unless it returns nil, nothing is charged. The exception is a write whose reply was lost. It is given back
// if nobody has written to the bucket since; else it stands, charged and not admitted.
//
// In shadow (Shadow, or shadow: true in limits.yaml) it fails only for bad input, the installation and ctx.
// Any other error becomes its lease's Shadowed.
func (r *Resource[E, C]) Acquire(
	ctx context.Context, entity E, cost C, opts ...CallOption,
) (*Lease[C], error) {
	v := r.untyped.core.vectors()
	l, err := r.untyped.acquire(ctx, entity, r.costs.toVector(cost, v.whole[:0]), v, opts)
	return (*Lease[C])(l), err
}

// acquire is Acquire of cost, in whole tokens, which may be in v. It puts v back.
func (r *resource) acquire(
	ctx context.Context, entity Entity, cost []int64, v *vectors, opts []CallOption,
) (*lease, error) {
	called, o := r.core.env.Clock.Now(), r.defaults.with(opts)
	shadow := r.inShadow(o)
	if !shadow && o.bad == "" && ctx.Err() == nil && entity != nil {
		if denied := r.refused(ctx, entity, cost, v, called.UnixMilli()); denied != nil {
			r.core.vectorPool.Put(v)
			return nil, denied
		}
	}
	a, err := r.call(called, entity, cost, v)
	var by outage.Settler
	if err == nil {
		if err = r.ready(ctx, &a.call, o); err == nil {
			if shadow { // its lease needs what the store remembers
				by, err = r.attempt(ctx, &a.call, o)
			} else {
				by, err = r.admit(ctx, &a.call, r.core.acquire, o)
			}
		}
	}
	return r.lease(ctx, store.OperationAcquire, a, o, endOf(&a.call, shadow, by, err))
}

// Do acquires a lease, calls fn with the lease's context, and ends the lease:
//   - as fn did, if fn has ended it;
//   - by Release, if fn fails or panics;
//   - by Keep otherwise.
//
// It returns Acquire's error, or fn's. That also matches ErrLeaseLost if the loss of the lease has ended fn's
// context.
func (r *Resource[E, C]) Do(
	ctx context.Context, entity E, cost C, fn func(context.Context, *Lease[C]) error, opts ...CallOption,
) (err error) {
	l, err := r.Acquire(ctx, entity, cost, opts...)
	if err != nil {
		return err
	}
	defer l.Release(ctx)
	own, end := (*lease)(l).during(ctx)
	defer end()
	if err = fn(own, l); err == nil {
		end()
		l.Keep(ctx)
		return nil
	}
	if errors.Is(context.Cause(own), ErrLeaseLost) && !errors.Is(err, ErrLeaseLost) {
		return fmt.Errorf("%w: %w", ErrLeaseLost, err)
	}
	return err
}

// Peek reads the balances of the buckets that Acquire would charge, and changes nothing. It fails like
// Acquire, denials aside, whatever the failure policy: there is nothing to admit.
func (r *Resource[E, C]) Peek(ctx context.Context, entity E) (*Snapshot[C], error) {
	call, err := r.untyped.peek(ctx, entity)
	if err != nil {
		return nil, err
	}
	buckets, now := call.Parts[0].Buckets, r.untyped.now()
	least := balances.Whole(r.untyped.spec, balances.Least(r.untyped.spec, buckets, now))
	snap := &Snapshot[C]{Available: r.costs.fromVector(least), Buckets: make([]BucketSnapshot[C], len(buckets))}
	for i, v := range balances.Views(r.untyped.spec, buckets, now) {
		b := &snap.Buckets[i]
		b.Entity, b.Full, b.Exists = v.Entity, v.Full, v.Exists
		b.Available, b.Capacity = r.costs.fromVector(v.Available), r.costs.fromVector(v.Capacity)
		b.Burst, b.Prefetched = r.costs.fromVector(v.Burst), r.costs.fromVector(v.Prefetched)
	}
	return snap, nil
}

// peek reads the buckets of entity's chain.
func (r *resource) peek(ctx context.Context, entity Entity) (*request, error) {
	a := &acquisition{}
	call := &a.call
	err := r.chain(a, r.core.env.Clock.Now(), entity, r.core.vectors())
	if err == nil {
		err = r.ready(ctx, call, &r.defaults)
	}
	if err != nil {
		return nil, err
	}
	call.Deadline = deadlines.Of(r.core.env.Clock, call.Called, r.defaults.budget)
	if err = r.core.resolve(ctx, call); err == nil {
		err = r.core.peek(ctx, call)
	}
	return call, err
}

// acquisition is an acquire and the lease that it may become, in one allocation for each call.
type acquisition struct {
	call    request
	lease   lease
	part    [1]store.Part
	chain   [1]chains.Chain
	buckets [2]store.Bucket // of part; these and cost are enough for most
	cost    [4]int64
}

// call makes a Call of cost, in whole tokens, which may be in v. It puts v back, and returns a Call even with
// an error, for events.
func (r *resource) call(called time.Time, entity Entity, cost []int64, v *vectors) (*acquisition, error) {
	a := &acquisition{}
	a.part[0].Cost = append(a.cost[:0], cost...)
	err := r.chain(a, called, entity, v)
	if err != nil {
		return a, err
	}
	part := &a.part[0]
	empty, err := tokens.Scale(r.spec, part.Buckets[0].Kind, true, part.Cost)
	if err == nil && empty {
		err = tokens.ErrEmpty(r.spec)
	}
	return a, err
}

// chain fills in a's Call on the buckets of entity's chain, up to where look-ups continue it. It puts v back.
func (r *resource) chain(a *acquisition, called time.Time, entity Entity, v *vectors) error {
	defer r.core.vectorPool.Put(v)
	a.call.Called, a.call.Parts, a.call.chains = called, a.part[:], a.chain[:]
	part, on := &a.part[0], &a.chain[0]
	part.Def, part.Buckets, on.Spec = r.def, a.buckets[:0], r.spec
	links, err := on.Follow(part, entity, v.links[:0])
	if err == nil {
		r.core.swaps.Warn(r.core.env.Logger, r.core.kinds, links)
	}
	return err
}

// ready returns why call must not be sent: a bad option, or a caller that has given up and is not to be
// charged.
func (r *resource) ready(ctx context.Context, call *request, o *callOptions) error {
	bad, reason := o.bad, o.want
	if bad == "" && o.pools == yes {
		if barred := prefetch.Barred(r.spec); barred != "" {
			bad, reason = fmt.Sprintf("Prefetch(%v)", o.ahead), "the resource "+barred
		}
	}
	if bad != "" {
		return &InvalidError{
			Resource: r.spec.Resource, Field: "option", Value: bad, Reason: "is out of range: " + reason,
		}
	}
	if ctx.Err() != nil {
		return r.abandoned(ctx, call)
	}
	return nil
}

// abandoned returns ctx's error for call, whose caller has given up.
func (r *resource) abandoned(ctx context.Context, call *request) error {
	entity := store.Quote(call.Parts[0].Buckets[0].Entity)
	return fmt.Errorf("sluice: %s for %s: %w", r.spec.Resource, entity, ctx.Err())
}

// admit asks the store for call by step, within o's budget. If the store cannot answer, o's policy decides.
func (r *resource) admit(
	ctx context.Context, call *request, step step, o *callOptions,
) (outage.Settler, error) {
	if call.Prefetch = o.ahead; o.pools == 0 {
		call.Prefetch = r.spec.Prefetch
	}
	within := func(ctx context.Context) error { return r.core.within(ctx, o.budget, call, step) }
	by, err := r.core.fallback.Admit(ctx, r.core.session, &call.Request, within, o.policy)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil, r.abandoned(ctx, call)
	}
	return by, err
}

// lease reports to the observer how a, an acquire or a wait, has ended, and returns its lease or its error.
func (r *resource) lease(
	ctx context.Context, operation string, a *acquisition, o *callOptions, end ending,
) (*lease, error) {
	ended := r.core.env.Clock.Now()
	r.report(ctx, operation, &a.call, ended, end)
	if end.err != nil {
		return nil, end.err
	}
	l, part := &a.lease, &a.part[0]
	rec := &l.own
	if mayHold(r.spec, part, end.by) && end.shadowed == nil {
		rec, part = newHolder(l, part, end.by, ended)
	}
	part.NoteCharges()
	rec.resource, rec.by, rec.options, rec.shadowed = r, end.by, o, end.shadowed
	rec.buckets, rec.at = part.Buckets, ended.UnixMilli()
	if rec.shadowed != nil {
		rec.buckets = balances.Seen(part.Buckets)
	}
	rec.Begin(part, rec.holder != nil)
	l.record = rec
	rec.hold(l)
	return l, nil
}

// report calls the observer with how call, an acquire or a wait, has ended.
func (r *resource) report(ctx context.Context, operation string, call *request, ended time.Time, end ending) {
	observers.Acquired(ctx, r.core.env.Observer, operation, &call.Call, ended,
		observers.Outcome{Err: end.err, Shadowed: end.shadowed, Outage: call.Outage})
}

func (r *resource) now() int64 { return r.core.env.Clock.Now().UnixMilli() }
