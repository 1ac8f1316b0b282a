package model

import (
	"slices"

	"github.com/sluice-go/sluice/gen/internal/declared"
	"github.com/sluice-go/sluice/gen/internal/goname"
	"github.com/sluice-go/sluice/gen/internal/schema"
)

// Template is the Go names that only a template has, a resource with names: catalog.
type Template struct {
	Names  string // ModelNames, the type of the Limiter's field
	Named  string // modelNamed, the function that makes the resource of a name
	Prices string // ModelPrices; "" if it has no limit of money, or no usage
	Config string // ModelNamedConfig, the overrides of one name; "" if it has no plans
}

// templateOf returns the names of a template, nil if from is none.
func templateOf(from *schema.Resource) *Template {
	if !from.Template {
		return nil
	}
	t := &Template{
		Names: from.GoName + declared.NamesSuffix, Named: goname.Unexported(from.GoName) + declared.NamedSuffix,
	}
	if from.Priced() {
		t.Prices = from.GoName + declared.PricesSuffix
	}
	if from.OnPlans {
		t.Config = from.GoName + declared.NamedSuffix + declared.ConfigSuffix
	}
	return t
}

// AllNames returns the buckets of all names together that entities have of r, in the order of p's kinds. In
// Spec.Kinds they follow the kinds.
func (r *Resource) AllNames() (all []*Charged) {
	for _, c := range r.Charged {
		for _, b := range c.Buckets {
			if b.AllNames {
				all = append(all, b)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Charged) int { return a.Index - b.Index })
	return all
}

// addBuckets sets the Buckets of m's kinds, once these are complete. m is of from, which is s's.
func addBuckets(m *Resource, s *schema.Schema, from *schema.Resource, p *Package) {
	parts := make([][]schema.Charged, len(s.Kinds))
	whole := make([]*Charged, len(s.Kinds))
	for i, c := range from.Charged {
		parts[c.Kind], whole[c.Kind] = from.Buckets(c), m.Charged[i]
	}
	index := len(p.Kinds)
	for kind, c := range whole {
		if c != nil {
			c.Index, c.Const = kind, c.Kind.Const
		}
		for _, part := range parts[kind] {
			b := *c
			b.Numbers, b.Plans, b.AllNames = part.Limits, part.Plans, part.AllNames
			if b.AllNames {
				b.Index, b.Const = index, m.Definition+declared.AllNamesInfix+c.Kind.Type
				index++
			}
			c.Buckets = append(c.Buckets, &b)
		}
	}
}
