package runtime

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/sluice-go/sluice/runtime/internal/background"
	"github.com/sluice-go/sluice/runtime/internal/breaker"
	"github.com/sluice-go/sluice/runtime/internal/chains"
	"github.com/sluice-go/sluice/runtime/internal/deadlines"
	"github.com/sluice-go/sluice/runtime/internal/keeper"
	"github.com/sluice-go/sluice/runtime/internal/outage"
	"github.com/sluice-go/sluice/runtime/internal/prefetch"
	"github.com/sluice-go/sluice/runtime/internal/waitlist"
	"github.com/sluice-go/sluice/runtime/store"
)

// Limiter is the untyped part of a generated Limiter, which embeds it. It is safe for concurrent use.
type Limiter struct{ core *core }

// Check asks the store whether it can serve: the table exists, its keys, indexes and layout are right, and
// its clock and this host's agree. Call it before serving. It fails with a *SetupError that says what to do,
// or with an *UnavailableError if the store does not answer, within 10 s for each thing that it asks.
func (l *Limiter) Check(ctx context.Context) error { return l.core.session.Check(ctx) }

// Close ends leases that hold something: first their contexts, then each as Keep does. It waits until
// background work has ended: these, lazy settles, and what calls left to be given back. It fails with ctx's
// error if that ends first. Calls made afterwards are undefined.
func (l *Limiter) Close(ctx context.Context) error {
	leases := l.core.keeper.Close(ctx)
	if err := l.core.session.Close(ctx); err != nil {
		return err
	}
	return cmp.Or(l.core.tasks.Wait(ctx), leases)
}

// Specs returns the descriptions of l's resources, in the order of limits.yaml. Regional sync takes them. The
// Specs are shared: do not change them.
func (l *Limiter) Specs() []*store.Spec { return slices.Clone(l.core.specs) }

// core is what the resources of one Limiter have in common.
type core struct {
	env      store.Env
	session  store.Session
	kinds    []store.Kind  // of the schema; their limits, which differ between resources, are not used
	specs    []*store.Spec // of the resources
	waiters  *waitlist.List
	fallback *outage.Fallback
	swaps    chains.Swaps
	keeper   *keeper.Keeper
	tasks    background.Tasks // that read catalogs

	catalogs map[string]func(name string) // invalidate a name of a template's, by the template

	maxWaiters int // in a queue of waiters

	vectorPool sync.Pool // of *vectors
}

// Builder collects a generated Limiter's resources and the first error. It is used by one goroutine.
type Builder struct {
	store    Store
	core     *core
	defaults callOptions
	defs     []store.Definition
	err      error
}

// NewBuilder starts a Limiter on s. Generated constructors call it. Errors are reported by Limiter.
func NewBuilder(s Store, opts ...Option) *Builder {
	o := options{maxWaiters: defaultMaxWaiters, env: store.Env{
		Clock:         store.SystemClock(),
		Observer:      &Observer{},
		Logger:        slog.Default(),
		SettleTimeout: store.DefaultSettleTimeout,
		CacheTTL:      store.DefaultCacheTTL,
	}}
	if s == nil {
		o.err = &SetupError{What: "New: the store is nil", Do: "pass one: dynamo.New(client, table)"}
	}
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	defaults := *(&callOptions{budget: store.DefaultBudget}).with(o.calls)
	if defaults.bad != "" {
		o.fail("WithCallDefaults: " + defaults.bad + ": " + defaults.want)
	}
	c := &core{
		catalogs: map[string]func(string){},
		env:      o.env, waiters: waitlist.New(o.maxWaiters), maxWaiters: o.maxWaiters,
		vectorPool: sync.Pool{New: func() any { return new(vectors) }},
	}
	c.fallback = outage.New(&c.env, breaker.New(deadlines.Stopwatch()), ErrBreakerOpen)
	c.env.Answered = c.fallback.Breaker.Answered
	return &Builder{store: s, core: c, defaults: defaults, err: o.err}
}

// Limiter opens the store with all that was bound. It does no I/O.
func (b *Builder) Limiter() (*Limiter, error) {
	if b.err != nil {
		return nil, b.err
	}
	session, err := b.store.Open(&b.core.env, slices.Clip(b.defs)...)
	if err != nil {
		return nil, err
	}
	session = prefetch.Wrap(&b.core.env, session, b.defs)
	b.core.session, b.core.keeper = session, keeper.New(&b.core.env, session)
	for _, def := range b.defs {
		b.core.specs = append(b.core.specs, def.Spec())
	}
	if len(b.defs) > 0 {
		all := b.defs[0].Spec().Kinds
		b.core.kinds = slices.DeleteFunc(slices.Clone(all), func(k store.Kind) bool { return k.AllNames })
	}
	return &Limiter{core: b.core}, nil
}

// Bind adds a resource. Generated constructors call it: toVector appends a cost in schema order, fromVector
// undoes that.
func Bind[E Entity, C any](
	b *Builder, def store.Definition, toVector func(C, []int64) []int64, fromVector func([]int64) C,
) *Resource[E, C] {
	costs := &costs[C]{toVector: toVector, fromVector: fromVector}
	return &Resource[E, C]{untyped: b.bind(def, costs), costs: costs}
}

func (b *Builder) bind(def store.Definition, costs any) *resource {
	b.defs = append(b.defs, def)
	return &resource{core: b.core, def: def, spec: def.Spec(), defaults: b.defaults, costs: costs}
}
