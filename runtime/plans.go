package runtime

import (
	"context"

	"github.com/sluice-go/sluice/runtime/internal/onplan"
	"github.com/sluice-go/sluice/runtime/internal/sources"
)

// Plans puts entities of one kind, E, on the plans of a schema. P is the type of plans, which counts them
// from 1; 0 is no plan. A generated Limiter's SetPlan and PlanOf call it. It is safe for concurrent use.
type Plans[E Entity, P ~uint8] struct{ untyped plans }

// plans is the untyped part.
type plans struct {
	core  *core
	names []string // of the schema's plans, from 1
}

// BindPlans adds the plans of a schema, with their names in schema order. Generated constructors call it.
func BindPlans[E Entity, P ~uint8](b *Builder, names ...string) *Plans[E, P] {
	return &Plans[E, P]{plans{b.core, names}}
}

// Set puts entity on plan, or on none if that is 0. This Limiter goes by it at once, for entity and for those
// below it, others within their WithCacheTTL. Usage of an open window stays; the difference of the capacities
// is available at once. If entity is on the plan already, it writes nothing. It fails with:
//   - an *InvalidError for a bad id, or for a plan that is not in limits.yaml;
//   - a *ContendedError if others change the entity's plan at each attempt;
//   - the store's error. Then it may be called again.
func (p *Plans[E, P]) Set(ctx context.Context, entity E, plan P) error {
	return p.untyped.set(ctx, entity, int(plan))
}

func (p *plans) set(ctx context.Context, entity Entity, plan int) error {
	_, stored, err := p.core.nearest("", entity)
	if err != nil {
		return err
	}
	return onplan.Set(ctx, p.core.session.Members(), stored, p.names, plan)
}

// Of returns the plan that entity is on, read consistently: 0 for none. It fails with:
//   - an *InvalidError for a bad id;
//   - an *UnknownPlanError if entity is on a plan that this program's limits.yaml does not have;
//   - the store's error.
func (p *Plans[E, P]) Of(ctx context.Context, entity E) (P, error) {
	plan, err := p.untyped.of(ctx, entity)
	return P(plan), err //nolint:gosec // at most len(names), which are constants of a uint8
}

func (p *plans) of(ctx context.Context, entity Entity) (int, error) {
	_, stored, err := p.core.nearest("", entity)
	if err != nil {
		return 0, err
	}
	return onplan.Of(ctx, p.core.session.Members(), stored, p.names)
}

// PlanOverride is the override of every entity of entity's kind that is on plan, by itself or by an ancestor;
// entity's id is not looked at. All plans of a resource have one Revision, which changes with each of them.
// The generated Configs of resources with plans call it.
func PlanOverride[E Entity, C, L any](c *Config[E, C, L], plan string, entity E) *Override[L] {
	return &Override[L]{untyped: c.untyped.ofPlan(plan, entity), rates: c.rates}
}

func (r config) ofPlan(plan string, entity Entity) *override {
	o := r.ofKind(entity)
	if o.err == nil {
		o.at.At, o.err = sources.PlanAt(r.spec, plan, o.at.Kind)
	}
	return o
}
