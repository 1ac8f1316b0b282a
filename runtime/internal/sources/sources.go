// Package sources lists what there is for an entity's limits, and says which of it decides each limit:
// overrides, the catalog, plans, the schema (docs/design.md, "Overrides and cv").
package sources

import (
	"context"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/chains"
	"github.com/sluice-go/sluice/runtime/store"
)

// Source is what decides some of the limits of an entity's bucket.
type Source struct {
	store.Stored

	Wins []string // the limits that it decides
}

// Of returns the sources of the limits of an entity of a kind, in order of precedence: its overrides first,
// the schema last. stored is the entity's id as stored. Of reads consistently; now is in ms. It fails with a
// *store.InvalidError if the entity whose plan it is cannot be found, or with the store's error.
func Of(
	ctx context.Context, session store.Session, def store.Definition, entity store.Entity, kind int,
	stored string, now int64,
) ([]Source, error) {
	spec, overrides := def.Spec(), session.Overrides()
	at := []string{stored, spec.Kinds[kind].Name}
	on, err := planOf(ctx, session, def, entity, kind)
	if err != nil {
		return nil, err
	}
	if on.Name != "" {
		at = slices.Insert(at, 1, store.PlanAt(on.Name, at[1]))
	}
	of := spec // whose overrides those of kinds and plans are
	if named, ok := def.(*store.Named); ok {
		of = named.Of.Spec()
	}
	said, err := overrides.Get(ctx, of, at...)
	if err != nil {
		return nil, err
	}
	if on.Name != "" {
		said = slices.Insert(said, 2, planned(spec, on.Name, kind))
	}
	if spec.Template != "" {
		own, err := overrides.Get(ctx, spec, stored)
		if err != nil {
			return nil, err
		}
		said[0].At = store.AtAllNames + stored
		said = slices.Concat(own, said[:1], spec.Entry.Sources(spec, on.Name, kind), said[1:])
	}
	stores := said
	said = append(slices.Clone(said), store.FullOverride("schema", schema(spec, kind)))
	deciding := said
	if spec.Regions != nil {
		beat, err := overrides.Heartbeat(ctx)
		if err != nil {
			return nil, err
		}
		deciding = append(store.InRegion(spec, kind, stores, beat, now), said[1:]...)
		said = slices.Insert(said, 1, deciding[1])
	}
	return won(spec, kind, said, deciding), nil
}

// won returns said as sources, with the limits that each decides. deciding has the same order, and nothing
// where a source is not in force.
func won(spec *store.Spec, kind int, said, deciding []store.Stored) []Source {
	all := make([]Source, len(said))
	for i := range said {
		all[i].Stored = said[i]
	}
	for i, name := range spec.Limits {
		if has(spec, kind, i) {
			winner := &all[store.Decides(deciding, i)]
			winner.Wins = append(winner.Wins, name)
		}
	}
	return all
}

// kinds returns the kinds of the buckets that entities of a kind have. For a template itself, the buckets of
// all names are among them.
func kinds(spec *store.Spec, kind int) (all []int) {
	for k := range spec.Kinds {
		if k == kind || spec.Names && spec.Template == "" && spec.EntityKind(k) == kind {
			all = append(all, k)
		}
	}
	return all
}

// has reports whether buckets of entities of a kind, as in kinds, have the i-th limit.
func has(spec *store.Spec, kind, i int) bool {
	return slices.ContainsFunc(kinds(spec, kind), func(k int) bool { return spec.Kinds[k].Has(i) })
}

// schema returns the limits of limits.yaml for buckets of entities of a kind.
func schema(spec *store.Spec, kind int) []bucket.Limit {
	limits := make([]bucket.Limit, len(spec.Limits))
	for _, k := range kinds(spec, kind) {
		for i := range limits {
			if spec.Kinds[k].Has(i) {
				limits[i] = spec.Kinds[k].Limits[i]
			}
		}
	}
	return limits
}

// planned returns what limits.yaml has for buckets of entities of a kind that are on a plan.
func planned(spec *store.Spec, plan string, kind int) (numbers store.Stored) {
	for _, k := range kinds(spec, kind) {
		own, _ := spec.Plans.NumbersOf(spec, plan, k)
		if numbers.At == "" {
			numbers = own
			continue
		}
		for i, limit := range own.Limits {
			if limit != nil {
				numbers.Limits[i] = limit
			}
		}
	}
	return numbers
}

// consistent looks members up without a cache.
type consistent struct{ store.MemberStore }

// Member implements chains.Members.
func (c consistent) Member(ctx context.Context, entity string) (store.Member, bool, error) {
	return c.Get(ctx, entity)
}

// planOf returns the plan by which the bucket of entity, of a kind, gets its numbers.
func planOf(
	ctx context.Context, session store.Session, def store.Definition, entity store.Entity, kind int,
) (store.OnPlan, error) {
	spec := def.Spec()
	if !spec.OnPlans(kind) {
		return store.OnPlan{}, nil
	}
	part, chain := store.Part{Def: def}, chains.Chain{Spec: spec}
	if _, err := chain.Follow(&part, entity, nil); err != nil {
		return store.OnPlan{}, err
	}
	part.Buckets = part.Buckets[:1]
	if err := chain.Resolve(ctx, &part, consistent{session.Members()}); err != nil {
		return store.OnPlan{}, err
	}
	return part.Buckets[0].Plan, nil
}

// PlanAt returns where the numbers of a plan and a kind are stored. It fails with a *store.InvalidError if
// spec has no such plan, or if plans do not concern the kind.
func PlanAt(spec *store.Spec, plan string, kind int) (at string, err error) {
	name := spec.Kinds[kind].Name
	switch p := spec.Plans; {
	case p == nil || !slices.Contains(p.Names, plan):
		return "", &store.InvalidError{Resource: spec.Resource, Field: "plan", Value: plan,
			Reason: "is none of the resource's in limits.yaml: use the generated constants"}
	case !spec.OnPlans(kind):
		return "", &store.InvalidError{Resource: spec.Resource, Field: "entity", Value: name,
			Reason: "is a kind that plans do not concern: they are for kind " + spec.Kinds[p.Kind].Name +
				" and those below it"}
	}
	return store.PlanAt(plan, name), nil
}
