package model

import (
	"slices"

	"github.com/sluice-go/sluice/gen/internal/declared"
	"github.com/sluice-go/sluice/gen/internal/schema"
)

// Variant is a resource with those of its limits that some buckets have: code for DynamoDB is written for
// each. It removes the other limits, which a bucket may hold from before.
//
//	gpt-4, rpm for users:  Variant{Definition: "gpt4OfUser", Buckets: [user's], Limits: [rpm], Removed: [tpm]}
type Variant struct {
	Resource

	Buckets []*Charged // that have these limits

	buckets []int // as in the list of all
}

// variants returns the variants of r, whose buckets charged has: nil if each has every limit.
func variants(r *Resource, charged []schema.Charged) []*Variant {
	var all []*Variant
	partial := false
	for i, c := range charged {
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
		all[at].buckets = append(all[at].buckets, i)
	}
	if !partial {
		return nil
	}
	return all
}

// name names v after the first of its buckets, which are some of all.
func (v *Variant) name(all []*Charged) {
	for _, i := range v.buckets {
		v.Buckets = append(v.Buckets, all[i])
	}
	first := v.Buckets[0]
	if first.AllNames {
		v.Definition += declared.AllNamesInfix
	}
	v.Definition += declared.VariantInfix + first.Kind.Type
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

// longest returns the most buckets that a call on m charges.
func longest(m *Resource) (most int) {
	for _, c := range m.Charged {
		chain := len(c.Buckets)
		for _, above := range m.Charged {
			if slices.Contains(c.Along, above.Kind) {
				chain += len(above.Buckets)
			}
		}
		most = max(most, chain)
	}
	return most
}

// buckets returns the buckets of all kinds.
func (r *Resource) buckets() (all []*Charged) {
	for _, c := range r.Charged {
		all = append(all, c.Buckets...)
	}
	return all
}
