package override

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/runtime/store"
)

// explanation says where an entity's limits come from.
type explanation struct {
	overrides

	plan   bucketstore.Followed // whose plan the entity has; set by sources
	beside int64                // the sum of the versions of the entry and of plans; set by sources
}

// sources returns what decides the entity's limits before the schema does, in order of precedence: its
// overrides, the catalog, its plan, and the override of the kind. It is the order of docs/design.md,
// "Overrides and cv".
func (o *explanation) sources(ctx context.Context, p program.Env) ([]store.Stored, error) {
	template := store.TemplateOf(o.Spec)
	own := o.overrides
	own.Spec = template
	stored, err := own.read(ctx, p)
	o.beat, o.now = own.beat, own.now
	if err != nil || len(stored) < 2 { // a kind alone, or on a plan
		return append(stored, o.ofPlan()...), err
	}
	before, after := stored[:1:1], stored[1:] // of what is inserted: the entity's override, the kind's
	if o.Spec.OnPlans(o.Kind) {
		planned, err := o.planned(ctx, template)
		if err != nil {
			return nil, o.store.Explain(err)
		}
		after = append(planned, after...)
	}
	if o.Spec.ByName(o.Kind) {
		named, err := o.store.Overrides().Get(ctx, o.Spec, o.At)
		if err != nil {
			return nil, o.store.Explain(err)
		}
		before[0].At, o.beside = store.AtAllNames+o.At, o.beside+o.Spec.Entry.Version
		before = append(append(named, before...), o.Spec.Entry.Sources(o.Spec, o.plan.Plan, o.Kind)...)
	}
	return append(before, after...), nil
}

// ofPlan returns the numbers that limits.yaml has for a kind on a plan, if the scope is one.
func (o *explanation) ofPlan() []store.Stored {
	plan, _, ok := store.SplitPlanAt(o.At)
	if !ok {
		return nil
	}
	numbers, _ := o.Spec.Plans.NumbersOf(o.Spec, plan, o.Kind)
	return []store.Stored{numbers}
}

// planned returns the numbers of the entity's plan: as changed at run time, then those of the schema.
func (o *explanation) planned(ctx context.Context, template *store.Spec) ([]store.Stored, error) {
	kinds, of := o.Spec.Kinds, o.Spec.EntityKind(o.Kind)
	on, err := bucketstore.Follow(ctx, o.store.Members(), kinds, o.At, of, o.Spec.Plans.Kind)
	if err != nil {
		return nil, err
	}
	at := store.PlanAt(on.Plan, kinds[o.Kind].Name)
	stored, err := o.store.Overrides().Get(ctx, template, at)
	if err != nil {
		return nil, err
	}
	o.plan, o.beside = on, o.beside+on.PlanVersion
	switch numbers, known := o.Spec.Plans.NumbersOf(o.Spec, on.Plan, o.Kind); {
	case on.Plan == "": // all plans of a resource have one version
		o.beside += bucketstore.Versions(stored)
		return nil, nil
	case !known:
		return append(stored, store.Stored{At: numbers.At, Limits: numbers.Limits}), nil
	default:
		return append(stored, numbers), nil
	}
}

// nameless reports whether the catalog is without the name, so that no acquire makes a bucket.
func (o explanation) nameless() bool {
	e := o.Spec.Entry
	return e != nil && e.Name != "" && e.Revision == ""
}

// follows says whose plan the entity has, and whether the catalog has the name.
func (o explanation) follows() (said string) {
	if o.nameless() {
		said = ": the catalog has no such name, so calls on it are refused"
	}
	switch {
	case !o.Spec.OnPlans(o.Kind):
	case !o.plan.Found:
		said += fmt.Sprintf(": no parent of %s is stored, so calls say whose plan it has", term.Quote(o.plan.Of))
	case o.plan.Plan == "":
		said += fmt.Sprintf(": %s is on no plan", term.Quote(o.plan.Of))
	case !slices.Contains(o.Spec.Plans.Names, o.plan.Plan):
		said += fmt.Sprintf(": %s is on plan %s, which limits.yaml does not have; a bucket keeps its numbers",
			term.Quote(o.plan.Of), term.Quote(o.plan.Plan))
	default:
		said += fmt.Sprintf(": %s is on plan %s", term.Quote(o.plan.Of), o.plan.Plan)
	}
	return said
}
