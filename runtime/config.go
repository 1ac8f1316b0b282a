package runtime

import (
	"context"
	"iter"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/deadlines"
	"github.com/sluice-go/sluice/runtime/internal/numbers"
	"github.com/sluice-go/sluice/runtime/internal/rates"
	"github.com/sluice-go/sluice/runtime/internal/sources"
	"github.com/sluice-go/sluice/runtime/store"
)

// Config reaches one resource's overrides, and adds to its buckets. It is separate from Resource, since it
// needs other rights and has other users. L is the generated struct of optional limits. For each limit the
// first that names it decides: the entity's override, its plan, its kind's override, the schema. Config is
// safe for concurrent use.
type Config[E Entity, C, L any] struct {
	untyped config
	rates   *converter[L]
	toCost  func(C, []int64) []int64
}

// config is the untyped part. Its spec is the template's for a name, too.
type config struct {
	*resource

	of numbers.Of
}

// Name returns the resource's name in the schema; for one name of a template, such as model/gpt-5.
func (c *Config[E, C, L]) Name() string { return c.untyped.of.Resource() }

// converter converts between structs of optional limits and vectors.
type converter[L any] struct {
	toVector   func(L, []*Rate) []*Rate
	fromVector func([]*Rate) L
}

// Override is what is overridden of one resource, for an entity, a kind or a plan. It is safe for concurrent
// use.
type Override[L any] struct {
	untyped *override
	rates   *converter[L]
}

// override is the untyped part.
type override struct {
	config config
	at     numbers.Place
	err    error  // why there is no such override
	entity Entity // nil for a kind
}

// Explained is one entry of Explain: an override, a plan, the catalog, the schema, or what a region keeps.
type Explained[L any] struct {
	// At is "user-123", "user" or "schema"; "floor" for what a region keeps without a quota. For plan pro there
	// are "pro.user", its override, and "schema.pro.user". For a name there are "all.user-123", the override of
	// all names, and "catalog.user" and "catalog.pro.user".
	At      string
	Limits  L        // those that it names
	Wins    []string // the limits that it decides
	Managed bool     // stored by regional sync: a quota
}

// Overridden is one stored override.
type Overridden[L any] struct {
	At       string // user-123, or a kind: user
	Limits   L
	Revision Revision
	Managed  bool // stored by regional sync: a quota, in force while sync is alive
}

// Entity is the override of one entity. Its parents are not looked at. A bad id is reported by the Override's
// methods.
func (c *Config[E, C, L]) Entity(entity E) *Override[L] {
	return &Override[L]{untyped: c.untyped.ofEntity(entity), rates: c.rates}
}

func (r config) ofEntity(entity Entity) *override {
	link, stored, err := r.core.nearest(r.of.Resource(), entity)
	return &override{config: r, at: numbers.Place{Of: r.of, Kind: link.Kind, At: stored, Entity: true}, err: err,
		entity: entity}
}

// Kind is the override of every entity of entity's kind; entity's id is not looked at.
func (c *Config[E, C, L]) Kind(entity E) *Override[L] {
	return &Override[L]{untyped: c.untyped.ofKind(entity), rates: c.rates}
}

func (r config) ofKind(entity Entity) *override {
	if entity == nil {
		return r.ofEntity(entity)
	}
	kind := entity.Chain(nil)[0].Kind
	return &override{config: r, at: numbers.Place{Of: r.of, Kind: kind, At: r.spec.Kinds[kind].Name}}
}

// Explain returns what there is for entity, in order of precedence, and which limits each decides. First is
// its override, then its plan as changed at run time, its plan in the schema, its kind's override, the
// schema. For a name, its override of the name comes first, and the catalog comes before plans. Explain reads
// what is stored: processes follow within their WithCacheTTL.
//
// If regions divide the limits, the numbers of the kind and the schema are for all regions together. The part
// of them that each region keeps, "floor", then comes after the entity's override. It decides where neither
// an operator nor a quota in force does.
//
// It fails with an *InvalidError for a bad id, or with the store's error.
func (c *Config[E, C, L]) Explain(ctx context.Context, entity E) ([]Explained[L], error) {
	entries, err := c.untyped.explain(ctx, entity)
	if err != nil {
		return nil, err
	}
	explained := make([]Explained[L], len(entries))
	for i, e := range entries {
		limits := c.rates.fromVector(limitsIn(&e.Stored, c.untyped.spec))
		explained[i] = Explained[L]{e.At, limits, e.Wins, e.Epoch > 0}
	}
	return explained, nil
}

func (r config) explain(ctx context.Context, entity Entity) ([]sources.Source, error) {
	link, stored, err := r.core.nearest(r.of.Resource(), entity)
	if err != nil {
		return nil, err
	}
	def, err := r.of.Resolve(ctx, r.core.session)
	if err != nil {
		return nil, err
	}
	return sources.Of(ctx, r.core.session, def, entity, link.Kind, stored, r.now())
}

// All yields every override of the resource, including those of kinds that the schema no longer has. It ends
// with the store's first error.
func (c *Config[E, C, L]) All(ctx context.Context) iter.Seq2[Overridden[L], error] {
	return func(yield func(Overridden[L], error) bool) {
		c.untyped.each(ctx, func(o *store.Stored, limits []*Rate, err error) bool {
			if err != nil {
				return yield(Overridden[L]{}, err)
			}
			return yield(Overridden[L]{o.At, c.rates.fromVector(limits), o.Revision, o.Epoch > 0}, nil)
		})
	}
}

// each calls visit with every override and its limits, then with the store's first error, until that returns
// false.
func (r config) each(ctx context.Context, visit func(*store.Stored, []*Rate, error) bool) {
	def, err := r.of.Resolve(ctx, r.core.session)
	if err != nil {
		visit(&store.Stored{}, nil, err)
		return
	}
	for stored, err := range r.core.session.Overrides().List(ctx, def.Spec()) {
		if !visit(&stored, limitsIn(&stored, r.spec), err) || err != nil {
			return
		}
	}
}

// Get returns what is stored here, without resolving: limits that are not overridden here are nil. It fails
// with an *InvalidError for a bad id, or with the store's error.
func (o *Override[L]) Get(ctx context.Context) (limits L, rev Revision, err error) {
	stored, rev, err := o.untyped.get(ctx)
	if err != nil {
		return limits, "", err
	}
	return o.rates.fromVector(stored), rev, nil
}

func (o *override) get(ctx context.Context) ([]*Rate, Revision, error) {
	if o.err != nil {
		return nil, "", o.err
	}
	limits, rev, err := o.at.Get(ctx, o.config.core.session)
	if err != nil {
		return nil, "", err
	}
	return limitsIn(&store.Stored{Limits: limits}, o.config.spec), rev, nil
}

// Set replaces what is stored here, if prev is still its revision, and returns the new revision. prev is what
// Get returned: "" if nothing was stored. Without any limit Set is Delete. This Limiter goes by it at once,
// others within their WithCacheTTL. It fails with:
//   - an *InvalidError for a bad id, a limit that cannot be or that the kind does not have, or Refill for a
//     kind;
//   - a *ConflictError if the override was changed since prev was read;
//   - the store's error. After an *UnavailableError the override may be stored: Get tells.
//
// With Refill it then fills the entity's bucket as Config.Reset does. If only that fails, Set returns the new
// revision and Reset's error.
func (o *Override[L]) Set(ctx context.Context, limits L, prev Revision, opts ...SetOption) (Revision, error) {
	return o.untyped.set(ctx, o.rates.toVector(limits, nil), prev, opts)
}

func (o *override) set(
	ctx context.Context, limits []*Rate, prev Revision, opts []SetOption,
) (Revision, error) {
	if o.err != nil {
		return "", o.err
	}
	var how setOptions
	for _, opt := range opts {
		if opt != nil {
			opt(&how)
		}
	}
	r := o.config
	if how.refill && o.entity == nil {
		return "", &InvalidError{
			Resource: r.of.Resource(), Field: "option", Value: "Refill",
			Reason: "is for the override of one entity: call Config.Reset for each that is to be filled",
		}
	}
	whole := make([]*rates.Rate, len(limits))
	for i, rate := range limits {
		whole[i] = (*rates.Rate)(rate)
	}
	rev, err := o.at.Set(ctx, r.core.session, whole, prev)
	if err == nil && how.refill {
		err = r.reset(ctx, o.entity)
	}
	return rev, err
}

// SetOption changes what Override.Set does.
type SetOption func(*setOptions)

type setOptions struct{ refill bool }

// Refill fills the entity's bucket after the override is set, so that a raised limit admits at once. Without
// it a bucket has the tokens that it had, and refills faster. A kind's override cannot have it: Set fails
// with an *InvalidError.
func Refill() SetOption { return func(o *setOptions) { o.refill = true } }

// Reset fills the entity's own bucket, with the limits in force for it: debt is forgiven. Buckets of its
// parents, and what usage counts, stay as they are. A missing bucket is full already. This Limiter goes by it
// at once, others within a second. On Redis these take from it by the limits that they have cached, but with
// the burst of the Reset.
//
// Leases from before still give back what they did not use, which the bucket then holds up to its burst. So
// after a Reset calls may take the burst, the refill, and that. A limit with windows takes nothing back.
//
// It fails like Resource.Peek, and with a *ContendedError if the bucket gets other limits at each attempt.
// Then, and after an *UnavailableError, it may be called again.
func (c *Config[E, C, L]) Reset(ctx context.Context, entity E) error {
	return c.untyped.reset(ctx, entity)
}

func (r config) reset(ctx context.Context, entity Entity) error {
	spec, own, root, err := r.bucketOf(ctx, entity, nil)
	if err == nil {
		err = r.core.session.Overrides().Fill(ctx, spec, own.Kind, own.Entity, root)
		r.filled(spec, own)
	}
	return err
}

// filled wakes those who wait for a bucket. After a failure too: the bucket may be full. The store tells the
// waiter that this wakes.
func (r config) filled(spec *store.Spec, own *store.Bucket) {
	r.core.waiters.GaveBack(spec, []store.Bucket{{Entity: own.Entity, Kind: own.Kind}}, r.now())
}

// bucketOf returns the own bucket of entity, its Spec, and the root of its chain, once check has passed its
// kind.
func (r config) bucketOf(ctx context.Context, entity Entity, check func(spec *store.Spec, kind int) error) (
	spec *store.Spec, own *store.Bucket, root string, err error,
) {
	link, _, err := r.core.nearest(r.of.Resource(), entity)
	if err != nil {
		return nil, nil, "", err
	}
	def, kind, err := r.of.Bucket(ctx, r.core.session, link.Kind)
	if err == nil && check != nil {
		err = check(def.Spec(), kind)
	}
	if err != nil {
		return nil, nil, "", err
	}
	spec = def.Spec()
	call := requestOf(spec, r.core.env.Clock.Now(), store.Part{Def: def})
	if _, err := call.chains[0].Follow(&call.Parts[0], entity, nil); err != nil {
		return nil, nil, "", err
	}
	call.Deadline = deadlines.Of(r.core.env.Clock, call.Called, r.core.env.SettleTimeout)
	if err := r.core.resolve(ctx, call); err != nil {
		return nil, nil, "", err
	}
	chain := call.Parts[0].Buckets
	i := slices.IndexFunc(chain, func(b store.Bucket) bool { return b.Kind == kind })
	return spec, &chain[i], chain[len(chain)-1].Entity, nil
}

// Grant adds credits or refunds to the balance of limits with windows, in the entity's own bucket: those of
// more that are not 0. They last for the open window, and for good with window: never. A Grant counts once
// for each id of an entity and resource, such as the number of an invoice, for 400 days: it may be repeated
// until it returns nil. This Limiter goes by it at once, others within a second.
//
// It fails like Resource.Peek, and with a *ContendedError if the bucket changes at each attempt. It fails
// with an *InvalidError for a limit without windows, for a bad id, and for one that was of other amounts.
func (c *Config[E, C, L]) Grant(ctx context.Context, entity E, more C, id string) error {
	return c.untyped.grant(ctx, entity, c.toCost(more, nil), id)
}

func (r config) grant(ctx context.Context, entity Entity, amounts []int64, id string) error {
	g := &store.Grant{ID: id, Amounts: amounts}
	for i, n := range amounts {
		g.Amounts[i] = bucket.Mul(n, r.spec.Scale(i))
	}
	spec, own, root, err := r.bucketOf(ctx, entity, func(spec *store.Spec, kind int) error {
		g.Kind = kind
		return g.Check(spec)
	})
	if err == nil {
		g.Entity, g.Root, g.Windows = own.Entity, root, own.Calendars(spec)
		err = r.core.session.Overrides().Grant(ctx, spec, g)
		r.filled(spec, own)
	}
	return err
}

// Delete ends the override, if prev is still its revision: what is less specific is in force again. It fails
// like Set.
func (o *Override[L]) Delete(ctx context.Context, prev Revision) error {
	_, err := o.untyped.set(ctx, nil, prev, nil)
	return err
}

// BindConfig adds a resource's overrides. Generated constructors call it: toCost appends a cost in schema
// order, toLimits the limits, and fromLimits undoes that.
func BindConfig[E Entity, C, L any](
	b *Builder, def store.Definition, toCost func(C, []int64) []int64,
	toLimits func(L, []*Rate) []*Rate, fromLimits func([]*Rate) L,
) *Config[E, C, L] {
	return &Config[E, C, L]{
		untyped: config{&resource{core: b.core, def: def, spec: def.Spec()}, numbers.Of{
			Def: def, Changed: func(name string) { b.core.catalogs[def.Spec().Resource](name) },
		}},
		rates: &converter[L]{toLimits, fromLimits}, toCost: toCost,
	}
}

// NamedConfig returns the overrides of one name of a template, whose overrides c has. Entity is for the name
// alone. Kind and PlanOverride are what the catalog has for the name: an entry has one Revision, which
// changes with each of them. Reset and Grant are for the name's bucket, those of c for that of all names.
// Generated Configs of templates call it.
func NamedConfig[E Entity, C, L any](c *Config[E, C, L], name string) *Config[E, C, L] {
	named := *c
	named.untyped.of.ByName, named.untyped.of.Name = true, name
	return &named
}

// limitsIn returns s's limits, nil for each of spec's that it does not have.
func limitsIn(s *store.Stored, spec *store.Spec) []*Rate {
	return ratesOf(spec, slices.Concat(s.Limits, make([]*bucket.Limit, len(spec.Limits)))[:len(spec.Limits)])
}
