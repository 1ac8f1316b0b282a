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
		Prefetch: r.Prefetch, Names: r.Names,
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
	if r.Names && r.Priced {
		for _, u := range r.Usage {
			spec.Usages = append(spec.Usages, u.Name)
		}
	}
	windows := calendars(r.Windows)
	for _, c := range r.Charged {
		kind := &spec.Kinds[c.Kind]
		kind.PerCall = c.PerCall
		if kind.Limits = limitsOf(r, c.Limits, false); kind.Limits != nil {
			kind.Windows = windows
		}
	}
	for kind := range kinds {
		if c := chargedOf(r, kind); c != nil {
			if limits := limitsOf(r, c.Limits, true); limits != nil {
				all := kinds[kind]
				all.AllNames, all.PerCall, all.Windows, all.Limits = true, c.PerCall, windows, limits
				spec.Kinds = append(spec.Kinds, all)
			}
		}
	}
	if r.OnPlans {
		spec.Plans = plansOf(r, from, spec)
	}
	return spec
}

// chargedOf returns the entry of a kind in r, nil if there is none.
func chargedOf(r gen.Resource, kind int) *gen.Charged {
	i := slices.IndexFunc(r.Charged, func(c gen.Charged) bool { return c.Kind == kind })
	if i < 0 {
		return nil
	}
	return &r.Charged[i]
}

// limitsOf returns those of numbers that buckets by name have, or those of all names together; nil for none.
// A resource that is no template has all of its limits by name.
func limitsOf(r gen.Resource, numbers []gen.Numbers, allNames bool) (limits []bucket.Limit) {
	limits = make([]bucket.Limit, len(numbers))
	has := false
	for i, n := range numbers {
		if (r.AllNames != nil && r.AllNames[i]) == allNames && !n.Absent() {
			limits[i], has = limitOf(n), true
		}
	}
	if !has {
		return nil
	}
	return limits
}

// plansOf returns what plans restate of r, which is from's, by the kinds of spec.
func plansOf(r gen.Resource, from *gen.Schema, spec *store.Spec) *store.Plans {
	p := &store.Plans{Kind: from.Plans.Kind, Names: from.Plans.Names}
	for i := range p.Names {
		kinds := make([][]bucket.Limit, len(spec.Kinds))
		for kind := range kinds {
			if c := chargedOf(r, spec.EntityKind(kind)); c != nil {
				kinds[kind] = limitsOf(r, c.Plans[i], spec.Kinds[kind].AllNames)
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
