// Package onplan puts entities on the plans of a schema, which it counts from 1. 0 is no plan.
package onplan

import (
	"context"
	"slices"

	"github.com/sluice-go/sluice/runtime/store"
)

// Set puts an entity, as stored, on one of names, the plans of a schema in order.
func Set(ctx context.Context, members store.MemberStore, entity string, names []string, plan int) error {
	name := ""
	switch {
	case plan > len(names):
		return &store.InvalidError{Field: "plan", Reason: "is none of limits.yaml: use the generated constants"}
	case plan > 0:
		name = names[plan-1]
	}
	return members.SetPlan(ctx, entity, name, nil)
}

// Of returns the plan that an entity, as stored, is on. It fails with a *store.UnknownPlanError if that is
// none of names, or with the store's error.
func Of(ctx context.Context, members store.MemberStore, entity string, names []string) (int, error) {
	m, _, err := members.Get(ctx, entity)
	if err != nil || m.Plan == "" {
		return 0, err
	}
	i := slices.Index(names, m.Plan)
	if i < 0 {
		return 0, &store.UnknownPlanError{Entity: entity, Plan: m.Plan}
	}
	return i + 1, nil
}
