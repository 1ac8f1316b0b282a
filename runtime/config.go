package runtime

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Config reaches one resource's overrides. It is separate from Resource, since it needs other rights and has
// other users. L is the generated struct of optional limits. For each limit the first that names it decides:
// the entity's override, its kind's, the schema. Config is safe for concurrent use.
type Config[E Entity, L any] struct {
	*resource
	toLimits   func(L, []*Rate) []*Rate
	fromLimits func([]*Rate) L
}

// Override is what is overridden of one resource, for an entity or a kind. It is safe for concurrent use.
type Override[L any] struct {
	core       *core
	spec       *store.Spec
	toLimits   func(L, []*Rate) []*Rate
	fromLimits func([]*Rate) L
	kind       int
	at         string
	err        error                       // why there is no such override
	reset      func(context.Context) error // fills the entity's bucket; nil for a kind
}

// Explained is one entry of Explain: an override, the schema, or what a region keeps.
type Explained[L any] struct {
	At      string   // "user-123", "user" or "schema"; "floor" for what a region keeps without a quota
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
func (c *Config[E, L]) Entity(entity E) *Override[L] {
	link, stored, err := c.core.nearest(c.spec.Resource, entity)
	o := c.override(link.Kind, stored, err)
	o.reset = func(ctx context.Context) error { return c.Reset(ctx, entity) }
	return o
}

// Kind is the override of every entity of entity's kind; entity's id is not looked at.
func (c *Config[E, L]) Kind(entity E) *Override[L] {
	if any(entity) == nil {
		return c.Entity(entity)
	}
	kind := entity.Chain(nil)[0].Kind
	return c.override(kind, c.spec.Kinds[kind].Name, nil)
}

func (c *Config[E, L]) override(kind int, at string, err error) *Override[L] {
	return &Override[L]{
		core: c.core, spec: c.spec, toLimits: c.toLimits, fromLimits: c.fromLimits, kind: kind, at: at, err: err,
	}
}

// Explain returns what overrides and schema have for entity, and which limits each decides: the entity's
// override first, then its kind's, then the schema. It reads what is stored. Processes that remember
// something else follow within their WithCacheTTL.
//
// If regions divide the limits, the numbers of the kind and the schema are for all regions together. The part
// of them that each region keeps, "floor", then comes after the entity's override. It decides where neither
// an operator nor a quota in force does.
//
// It fails with an *InvalidError for a bad id, or with the store's error.
func (c *Config[E, L]) Explain(ctx context.Context, entity E) ([]Explained[L], error) {
	link, stored, err := c.core.nearest(c.spec.Resource, entity)
	if err != nil {
		return nil, err
	}
	kind := &c.spec.Kinds[link.Kind]
	overrides := c.core.session.Overrides()
	both, err := overrides.Get(ctx, c.spec, stored, kind.Name)
	if err != nil {
		return nil, err
	}
	said := append(slices.Clone(both), store.FullOverride("schema", kind.Limits))
	deciding := said
	if c.spec.Regions != nil {
		beat, err := overrides.Heartbeat(ctx)
		if err != nil {
			return nil, err
		}
		deciding = append(store.InRegion(c.spec, link.Kind, both, beat, c.now()), said[1:]...)
		said = slices.Insert(said, 1, deciding[1])
	}
	explained := make([]Explained[L], len(said))
	for i, o := range said {
		explained[i] = Explained[L]{At: o.At, Limits: c.fromLimits(limitsIn(&o, c.spec)), Managed: o.Epoch > 0}
	}
	for i, name := range c.spec.Limits {
		if !kind.Has(i) {
			continue
		}
		winner := &explained[store.Decides(deciding, i)]
		winner.Wins = append(winner.Wins, name)
	}
	return explained, nil
}

// All yields every override of the resource, including those of kinds that the schema no longer has. It ends
// with the store's first error.
func (c *Config[E, L]) All(ctx context.Context) iter.Seq2[Overridden[L], error] {
	return func(yield func(Overridden[L], error) bool) {
		for stored, err := range c.core.session.Overrides().List(ctx, c.spec) {
			if err != nil {
				yield(Overridden[L]{}, err)
				return
			}
			limits := c.fromLimits(limitsIn(&stored, c.spec))
			if !yield(Overridden[L]{stored.At, limits, stored.Revision, stored.Epoch > 0}, nil) {
				return
			}
		}
	}
}

// Get returns what is stored here, without resolving: limits that are not overridden here are nil. It fails
// with an *InvalidError for a bad id, or with the store's error.
func (o *Override[L]) Get(ctx context.Context) (limits L, rev Revision, err error) {
	if o.err != nil {
		return limits, "", o.err
	}
	stored, err := o.core.session.Overrides().Get(ctx, o.spec, o.at)
	if err != nil {
		return limits, "", err
	}
	return o.fromLimits(limitsIn(&stored[0], o.spec)), stored[0].Revision, nil
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
	if o.err != nil {
		return "", o.err
	}
	var how setOptions
	for _, opt := range opts {
		if opt != nil {
			opt(&how)
		}
	}
	if how.refill && o.reset == nil {
		return "", &InvalidError{
			Resource: o.spec.Resource, Field: "option", Value: "Refill",
			Reason: "is for the override of one entity: call Config.Reset for each that is to be filled",
		}
	}
	changed, kind := make([]*bucket.Limit, len(o.spec.Limits)), &o.spec.Kinds[o.kind]
	for i, rate := range o.toLimits(limits, nil) {
		if rate == nil {
			continue
		}
		wrong := fmt.Sprintf("kind %s does not have it (kinds in limits.yaml): leave it out", kind.Name)
		if kind.Has(i) {
			changed[i], wrong = rate.limit(kind.Limits[i], kind.PerCall[i])
		}
		if wrong != "" {
			return "", &InvalidError{
				Resource: o.spec.Resource, Field: "limit " + o.spec.Limits[i] + " of " + o.at,
				Reason: "is not possible: " + wrong,
			}
		}
	}
	rev, err := o.core.session.Overrides().Set(ctx, o.spec,
		store.Stored{At: o.at, Limits: changed, Revision: prev})
	if err == nil && how.refill {
		err = o.reset(ctx)
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
// after a Reset calls may take the burst, the refill, and that.
//
// It fails like Resource.Peek, and with a *ContendedError if the bucket gets other limits at each attempt.
// Then, and after an *UnavailableError, it may be called again.
func (c *Config[E, L]) Reset(ctx context.Context, entity E) error {
	link, stored, err := c.core.nearest(c.spec.Resource, entity)
	if err != nil {
		return err
	}
	call := request{Call: store.Call{Parts: []store.Part{{Def: c.def}}}, chains: []chain{{spec: c.spec}}}
	if err := follow(&call.chains[0], &call.Parts[0], entity.Chain(nil)); err != nil {
		return err
	}
	call.Deadline = deadline(c.core.env.Clock, c.core.env.Clock.Now(), c.core.env.SettleTimeout)
	if err := c.core.resolve(ctx, &call); err != nil {
		return err
	}
	chain := call.Parts[0].Buckets
	err = c.core.session.Overrides().Fill(ctx, c.spec, link.Kind, stored, chain[len(chain)-1].Entity)
	// After a failure too: the bucket may be full. The store tells the waiter that this wakes.
	c.core.waiters.GaveBack(c.spec.Resource, []store.Bucket{{Entity: stored}}, c.now())
	return err
}

// Delete ends the override, if prev is still its revision: what is less specific is in force again. It fails
// like Set.
func (o *Override[L]) Delete(ctx context.Context, prev Revision) error {
	var none L
	_, err := o.Set(ctx, none, prev)
	return err
}

// BindConfig adds a resource's overrides. Generated constructors call it: toLimits appends the limits in
// schema order, fromLimits undoes that.
func BindConfig[E Entity, L any](
	b *Builder, def store.Definition,
	toLimits func(L, []*Rate) []*Rate, fromLimits func([]*Rate) L,
) *Config[E, L] {
	return &Config[E, L]{
		resource: &resource{core: b.core, def: def, spec: def.Spec()},
		toLimits: toLimits, fromLimits: fromLimits,
	}
}

// limitsIn returns s's limits, nil for each of spec's that it does not have.
func limitsIn(s *store.Stored, spec *store.Spec) []*Rate {
	limits := make([]*bucket.Limit, len(spec.Limits))
	copy(limits, s.Limits)
	return ratesOf(limits)
}
