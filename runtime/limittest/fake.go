package limittest

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// Fake is an Acquirer that admits everything by default, and records calls. It is safe for concurrent use.
// Deny, DenyUntil, Fail, Shadow and Admit take effect for later calls.
//
// It knows no schema:
//
//   - It fills in no per_call. Of a cost it refuses only numbers that are negative or beyond any limit.
//   - Its errors name entities by their IDs alone, kinds by their Go types and its resource as "fake".
//   - Its leases and snapshots show no balances.
//   - Its leases hold nothing, whatever the limits: the Context of one is its argument.
//
// All else is as with a *runtime.Resource.
type Fake[E runtime.Entity, C any] struct {
	mu      sync.Mutex
	denial  *denial // nil: none
	failure error   // nil: none
	shadow  bool
	calls   []*Call[E, C]
}

// denial is the arguments of Deny or of DenyUntil.
type denial struct {
	limit      store.LimitName
	retryAfter time.Duration // of Deny
	resets     time.Time     // of DenyUntil, else zero
}

// after returns RetryAfter at now.
func (d *denial) after(now time.Time) time.Duration {
	if d.resets.IsZero() {
		return d.retryAfter
	}
	return max(0, d.resets.Sub(now))
}

// Call is one recorded Acquire, Wait, Do or More.
type Call[E runtime.Entity, C any] struct {
	Method         string // Acquire, Wait, Do, or More of a lease that is neither Shadowed nor Degraded
	Entity         E
	Cost, Settled  C     // Settled is what Settle stated, if it was called
	Err            error // why it was not admitted; nil if it was, or still waits
	Shadowed       error // why it would not have been, in shadow
	Done, Released bool  // Done: settled or released, not kept; Released: the latter
}

// NewFake returns a Fake. Its argument only has the types, and is not used:
//
//	fake := limittest.NewFake((*limits.GPT4Resource)(nil))
func NewFake[E runtime.Entity, C any](*runtime.Resource[E, C]) *Fake[E, C] { return &Fake[E, C]{} }

// Admit ends what Deny, DenyUntil or Fail began.
func (f *Fake[E, C]) Admit() { f.set(nil, nil) }

// Deny makes acquires fail with a *runtime.DeniedError for that limit, such as limits.GPT4TPM. A retryAfter
// below 0 counts as 0. A Wait is admitted once it has passed, or fails at once, as it does with a Resource,
// if it has no time to wait that long. Deny panics if limit is nil.
func (f *Fake[E, C]) Deny(limit runtime.LimitOf[C], retryAfter time.Duration) {
	if limit == nil {
		panic("limittest: Deny(nil): pass a limit of the resource, such as limits.GPT4TPM")
	}
	f.set(&denial{limit: limit, retryAfter: max(0, retryAfter)}, nil)
}

// DenyUntil is Deny for a limit with a window, which ends at resets: the *runtime.DeniedError has it as
// Resets, and its RetryAfter is the time until then. It panics if limit is nil, or resets is zero.
func (f *Fake[E, C]) DenyUntil(limit runtime.LimitOf[C], resets time.Time) {
	if limit == nil || resets.IsZero() {
		panic("limittest: DenyUntil needs a limit of the resource, such as limits.GPT4TPM, and a time")
	}
	f.set(&denial{limit: limit, resets: resets}, nil)
}

// Fail makes acquires, peeks and settles fail with err, which should be one of package runtime's. Nil admits.
// A *runtime.DeniedError denies as Deny does. The Fake ignores on_unavailable in limits.yaml, but not a
// call's own runtime.OnUnavailable: a *runtime.UnavailableError then admits it with a lease that is Degraded.
func (f *Fake[E, C]) Fail(err error) { f.set(nil, err) }

// Shadow switches shadow mode on or off, as shadow in limits.yaml does, which the Fake does not know. In
// shadow mode, leases are Shadowed by what Deny, DenyUntil or Fail set. A call's own runtime.Shadow decides
// before it.
func (f *Fake[E, C]) Shadow(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shadow = on
}

func (f *Fake[E, C]) set(d *denial, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.denial, f.failure = d, err
}

// Calls returns what was recorded so far, in the order in which the calls came in, refused ones too.
func (f *Fake[E, C]) Calls() []Call[E, C] {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := make([]Call[E, C], len(f.calls))
	for i, c := range f.calls {
		calls[i] = *c
	}
	return calls
}

// Acquire implements runtime.Acquirer.
func (f *Fake[E, C]) Acquire(ctx context.Context, entity E, cost C,
	opts ...runtime.CallOption) (*runtime.Lease[C], error) {
	return f.record("Acquire", entity, cost).Acquire(ctx, entity, cost, opts...)
}

// Wait implements runtime.Acquirer.
func (f *Fake[E, C]) Wait(ctx context.Context, entity E, cost C,
	opts ...runtime.CallOption) (*runtime.Lease[C], error) {
	return f.record("Wait", entity, cost).Wait(ctx, entity, cost, opts...)
}

// Do implements runtime.Acquirer.
func (f *Fake[E, C]) Do(
	ctx context.Context, entity E, cost C, fn func(context.Context, *runtime.Lease[C]) error,
	opts ...runtime.CallOption,
) error {
	return f.record("Do", entity, cost).Do(ctx, entity, cost, fn, opts...)
}

// Peek implements runtime.Acquirer. It is not recorded.
func (f *Fake[E, C]) Peek(ctx context.Context, entity E) (*runtime.Snapshot[C], error) {
	return f.resource(entity, &Call[E, C]{}).Peek(ctx, entity)
}

// record adds a call, and returns the Resource that serves it.
func (f *Fake[E, C]) record(method string, entity E, cost C) *runtime.Resource[E, C] {
	c := &Call[E, C]{Method: method, Entity: entity, Cost: cost}
	f.mu.Lock()
	f.calls = append(f.calls, c)
	f.mu.Unlock()
	return f.resource(entity, c)
}

// resource returns a real Resource for one call alone, on a session that knows which: waiting, contexts,
// options and leases are thereby those of production.
func (f *Fake[E, C]) resource(entity E, c *Call[E, C]) *runtime.Resource[E, C] {
	s := &session[E, C]{fake: f, call: c}
	f.mu.Lock()
	shadow := f.shadow
	f.mu.Unlock()
	b := runtime.NewBuilder(s, runtime.WithObserver(s.observer()),
		runtime.WithLogger(slog.New(slog.DiscardHandler)))
	r := runtime.Bind[E](b, definitionFor(entity, unitsOf[C](), shadow), s.vector, costOf[C])
	_, _ = b.Limiter() // it opens s, which does not fail, and no option is wrong
	return r
}
