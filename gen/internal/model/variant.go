package model

import (
	"slices"

	"github.com/sluice-go/sluice/gen/internal/declared"
	"github.com/sluice-go/sluice/gen/internal/schema"
)

// Variant is a resource with those of its limits that some kinds have: code for DynamoDB is written for each.
// It removes the other limits, which a bucket may hold from before.
//
//	gpt-4, rpm for users:  Variant{Definition: "gpt4OfUser", Kinds: [user], Limits: [rpm], Removed: [tpm]}
type Variant struct {
	Resource

	Kinds []*Kind // that have these limits

	kinds []int // in the schema
}

// variants returns the variants of r, whose kinds charged has: nil if each has every limit.
func variants(r *Resource, charged []schema.Charged) []*Variant {
	var all []*Variant
	partial := false
	for _, c := range charged {
		has := func(l *Limit) bool { return !c.Limits[l.Index].Absent() }
		partial = partial || slices.ContainsFunc(r.Limits, func(l *Limit) bool { return !has(l) })
		v := &Variant{Resource: *r}
		v.Limits, v.Removed = nil, nil
		for _, l := range r.Limits {
			if has(l) {
				v.Limits = append(v.Limits, l)
			} else {
				v.Removed = append(v.Removed, l.Attrs)
			}
		}
		v.Removed = append(v.Removed, r.Removed...)
		same := func(other *Variant) bool { return slices.Equal(other.Limits, v.Limits) }
		at := slices.IndexFunc(all, same)
		if at < 0 {
			at, all = len(all), append(all, v)
		}
		all[at].kinds = append(all[at].kinds, c.Kind)
	}
	if !partial {
		return nil
	}
	return all
}

// name names v after the first of its kinds.
func (v *Variant) name(p *Package) {
	for _, kind := range v.kinds {
		v.Kinds = append(v.Kinds, p.Kinds[kind])
	}
	v.Definition += declared.VariantInfix + v.Kinds[0].Type
	v.namePaths(v.Definition)
}

// Texts returns the resources that have expressions of their own: r, or its variants.
func (r *Resource) Texts() []*Resource {
	if r.Variants == nil {
		return []*Resource{r}
	}
	all := make([]*Resource, len(r.Variants))
	for i, v := range r.Variants {
		all[i] = &v.Resource
	}
	return all
}

// Charges reports whether a call for a kind that has a bucket of r is charged for l, in some bucket.
func (r *Resource) Charges(c *Charged, l *Limit) bool {
	return c.Has(l) || slices.ContainsFunc(r.Charged, func(above *Charged) bool {
		return slices.Contains(c.Along, above.Kind) && above.Has(l)
	})
}

// Has reports whether the buckets of c have l.
func (c *Charged) Has(l *Limit) bool { return !c.Numbers[l.Index].Absent() }
