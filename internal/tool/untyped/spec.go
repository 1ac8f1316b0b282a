package untyped

import (
	"slices"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Specs returns the kinds of a schema, without their limits, and the Spec of each of its resources, as
// generated code has them.
func Specs(from *gen.Schema) (kinds []store.Kind, specs []*store.Spec) {
	for _, k := range from.Kinds {
		kinds = append(kinds, store.Kind{Name: k.Name, Prefix: k.Name + "-", Parent: k.Parent})
	}
	for _, r := range from.Resources {
		specs = append(specs, specOf(r, from, kinds))
	}
	return kinds, specs
}

// specOf returns what generated code has for r, which is from's.
func specOf(r gen.Resource, from *gen.Schema, kinds []store.Kind) *store.Spec {
	spec := &store.Spec{
		Resource: r.Name, Owner: from.Owner, Revision: from.Revision, Limits: r.Limits, Removed: r.Removed,
		Held: r.Held, Units: r.Units, Kinds: slices.Clone(kinds), LazySettle: r.LazySettle, Shadow: r.Shadow,
		Prefetch: r.Prefetch,
	}
	if g := r.Regions; g != nil {
		spec.Regions = &store.Regions{Names: g.Names, Floor: g.Floor, Window: g.Window, Drift: g.Drift,
			Horizon: g.Horizon}
	}
	switch r.Cascade {
	case "compensated":
		spec.Cascade = store.CascadeCompensated
	case "none":
		spec.Cascade = store.CascadeNone
	}
	switch r.OnUnavailable {
	case "deny":
		spec.OnUnavailable = store.Deny
	case "local":
		spec.OnUnavailable = store.Local
	default:
		spec.OnUnavailable = store.Allow
	}
	windows := calendars(r.Windows)
	for _, c := range r.Charged {
		kind := &spec.Kinds[c.Kind]
		kind.PerCall, kind.Windows = c.PerCall, windows
		for _, n := range c.Limits {
			kind.Limits = append(kind.Limits, limitOf(n))
		}
	}
	if r.OnPlans {
		spec.Plans = plansOf(r, from)
	}
	return spec
}

// plansOf returns what plans restate of r, which is from's.
func plansOf(r gen.Resource, from *gen.Schema) *store.Plans {
	p := &store.Plans{Kind: from.Plans.Kind, Names: from.Plans.Names}
	for i := range p.Names {
		kinds := make([][]bucket.Limit, len(from.Kinds))
		for _, c := range r.Charged {
			for _, n := range c.Plans[i] {
				kinds[c.Kind] = append(kinds[c.Kind], limitOf(n))
			}
		}
		p.Limits = append(p.Limits, kinds)
	}
	return p
}

// limitOf returns n in the units of buckets.
func limitOf(n gen.Numbers) bucket.Limit {
	return bucket.Limit{
		Capacity: n.Stored(n.Capacity),
		Burst:    n.Stored(n.Burst),
		Refill:   n.Stored(n.Refill),
		Period:   n.Period.Milliseconds(),
	}
}
