package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

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
type Resource[E Entity, C any] struct {
	*resource
	defaults   callOptions
	toVector   func(C, []int64) []int64
	fromVector func([]int64) C
}

// resource is the untyped part.
type resource struct {
	core *core
	def  store.Definition
	spec *store.Spec
}

// Name returns the resource's name in the schema.
func (r *resource) Name() string { return r.spec.Resource }

// Logger returns the log that WithLogger set, for middlewares.
func (r *resource) Logger() *slog.Logger { return r.core.env.Logger }

// With returns a Resource that shares r's state and has other call defaults. A bad option is reported by its
// calls.
func (r *Resource[E, C]) With(opts ...CallOption) *Resource[E, C] {
	shared := *r
	shared.defaults = *r.defaults.with(opts)
	return &shared
}

// Acquire takes cost from the entity's bucket and, as the resource's cascade says, from those of its
// ancestors whose kind has one: from all of them, or from none. A cost is in whole tokens; a 0 means the
// per_call of the entity's kind. Compensated charges bucket by bucket and gives back on a refusal, so others
// may see tokens as taken for a moment; atomic never shows that. Ancestors come from entity or, if it leaves
// them to a look-up (UserByID), from the store. The process remembers them for as long as WithCacheTTL says.
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
	called, o := r.core.env.Clock.Now(), r.defaults.with(opts)
	shadow := r.inShadow(o)
	if !shadow && o.bad == "" && ctx.Err() == nil && any(entity) != nil {
		if denied := r.refused(ctx, entity, cost, called.UnixMilli()); denied != nil {
			return nil, denied
		}
	}
	a, err := r.call(called, entity, cost)
	var by settler
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

// Do acquires a lease, calls fn, and ends the lease:
//   - as fn did, if fn has ended it;
//   - by Release, if fn fails or panics;
//   - by Keep otherwise.
//
// It returns Acquire's error, or fn's.
func (r *Resource[E, C]) Do(
	ctx context.Context, entity E, cost C, fn func(context.Context, *Lease[C]) error, opts ...CallOption,
) (err error) {
	lease, err := r.Acquire(ctx, entity, cost, opts...)
	if err != nil {
		return err
	}
	defer lease.Release(ctx)
	if err = fn(ctx, lease); err == nil {
		lease.Keep(ctx)
	}
	return err
}

// Peek reads the balances of the buckets that Acquire would charge, and changes nothing. It fails like
// Acquire, denials aside, whatever the failure policy: there is nothing to admit.
func (r *Resource[E, C]) Peek(ctx context.Context, entity E) (*Snapshot[C], error) {
	a, err := r.chain(r.core.env.Clock.Now(), entity)
	call := &a.call
	if err == nil {
		err = r.ready(ctx, call, &r.defaults)
	}
	if err != nil {
		return nil, err
	}
	call.Deadline = deadline(r.core.env.Clock, call.Called, r.defaults.budget)
	if err = r.core.resolve(ctx, call); err == nil {
		err = r.core.peek(ctx, call)
	}
	if err != nil {
		return nil, err
	}
	return r.snapshot(call, r.now()), nil
}

// acquisition is an acquire and the lease that it may become, in one allocation for each call.
type acquisition[C any] struct {
	call    request
	lease   Lease[C]
	part    [1]store.Part
	chain   [1]chain
	buckets [2]store.Bucket // of part; these and cost are enough for most
	cost    [4]int64
}

// call makes a Call of typed arguments. It returns one even with an error, for events.
func (r *Resource[E, C]) call(called time.Time, entity E, cost C) (*acquisition[C], error) {
	a, err := r.chain(called, entity)
	if err != nil {
		return a, err
	}
	part := &a.part[0]
	part.Cost = r.toVector(cost, a.cost[:0])
	empty, err := tokens.Scale(r.spec, part.Buckets[0].Kind, true, part.Cost)
	if err == nil && empty {
		err = tokens.ErrEmpty(r.spec)
	}
	return a, err
}

// chain makes a Call on the buckets of entity's chain, up to where look-ups continue it.
func (r *Resource[E, C]) chain(called time.Time, entity E) (*acquisition[C], error) {
	a := &acquisition[C]{}
	a.call.Called, a.call.Parts, a.call.chains = called, a.part[:], a.chain[:]
	part, on := &a.part[0], &a.chain[0]
	part.Def, part.Buckets, on.spec = r.def, a.buckets[:0], r.spec
	if any(entity) == nil {
		return a, &InvalidError{Resource: r.spec.Resource, Field: "entity", Reason: "is nil"}
	}
	s := r.core.vectorPool.Get().(*vectors)
	defer r.core.vectorPool.Put(s)
	links := entity.Chain(s.links[:0])
	if err := follow(on, part, links); err != nil {
		return a, err
	}
	r.core.warnOfSwappedIDs(links)
	return a, nil
}

// ready returns why call must not be sent: a bad option, or a caller that has given up and is not to be
// charged.
func (r *resource) ready(ctx context.Context, call *request, o *callOptions) error {
	if o.bad != "" {
		return &InvalidError{
			Resource: r.spec.Resource, Field: "option", Value: o.bad, Reason: "is out of range: " + o.want,
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

// admit is core.admit under o.
func (r *resource) admit(
	ctx context.Context, call *request, step func(context.Context, *request) error, o *callOptions,
) (settler, error) {
	by, err := r.core.admit(ctx, call, step, o.budget, o.policy)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil, r.abandoned(ctx, call)
	}
	return by, err
}

// lease reports to the observer how a, an acquire or a wait, has ended, and returns its lease or its error.
func (r *Resource[E, C]) lease(
	ctx context.Context, operation string, a *acquisition[C], o *callOptions, end ending,
) (*Lease[C], error) {
	ended := r.core.env.Clock.Now()
	r.report(ctx, operation, &a.call, ended, end)
	if end.err != nil {
		return nil, end.err
	}
	l, part := &a.lease, &a.part[0]
	l.resource, l.by, l.part, l.options = r, end.by, part, o
	l.buckets, l.at = part.Buckets, ended.UnixMilli()
	if l.shadowed = end.shadowed; l.shadowed != nil {
		l.buckets = seen(part.Buckets)
	}
	return l, nil
}

// report calls the observer with how call, an acquire or a wait, has ended.
func (r *resource) report(ctx context.Context, operation string, call *request, ended time.Time, end ending) {
	obs := r.core.env.Observer
	f, err := obs.Acquired, end.err
	switch {
	case end.shadowed != nil:
		f, err = obs.Shadowed, end.shadowed
	case err != nil:
		f = obs.Failed
		if _, denied := errors.AsType[*DeniedError](err); denied {
			f = obs.Denied
		}
	case call.outage != nil:
		f = obs.Degraded
	}
	if f == nil {
		return
	}
	event := r.event(operation, &call.Call, ended, err)
	event.Local = call.outage != nil
	event.Limit, event.LimitKind = refusing(r.spec, &call.Parts[0], err)
	event.Shadow = end.shadowed != nil
	if err == nil {
		event.Err = call.outage
	}
	f(ctx, event)
}

// refusing returns the limit of part that err refuses for longest, and the kind of its bucket. Both are empty
// if err refuses none of it: of several claims, another may be refused.
func refusing(spec *store.Spec, part *store.Part, err error) (limit, kind string) {
	kindOf := func(resource, entity string) (kind string, ok bool) {
		i := slices.IndexFunc(part.Buckets, func(b store.Bucket) bool { return b.Entity == entity })
		if resource != spec.Resource || i < 0 {
			return "", false
		}
		return spec.Kinds[part.Buckets[i].Kind].Name, true
	}
	if exceeds, ok := errors.AsType[*CostTooLargeError](err); ok {
		if kind, ok := kindOf(exceeds.Resource, exceeds.Entity); ok {
			return exceeds.Limit, kind
		}
	}
	if denied, ok := errors.AsType[*DeniedError](err); ok {
		var longest time.Duration
		for _, refusal := range denied.Refusals {
			at, ok := kindOf(refusal.Resource, refusal.Entity)
			if ok && (limit == "" || refusal.RetryAfter > longest) {
				limit, kind, longest = refusal.Limit, at, refusal.RetryAfter
			}
		}
	}
	return limit, kind
}

// event describes how call, an operation, has ended.
func (r *resource) event(operation string, call *store.Call, ended time.Time, err error) Event {
	e := Event{Operation: operation, Resource: r.spec.Resource, Took: ended.Sub(call.Called), Err: err}
	if buckets := call.Parts[0].Buckets; len(buckets) > 0 {
		e.Entity, e.Kind = buckets[0].Entity, r.spec.Kinds[buckets[0].Kind].Name
	}
	return e
}

func (r *resource) now() int64 { return r.core.env.Clock.Now().UnixMilli() }
