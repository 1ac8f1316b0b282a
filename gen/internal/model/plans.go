package model

import (
	"slices"

	"github.com/sluice-go/sluice/gen/internal/schema"
)

// Plans are the sets of numbers that entities of a kind are put on. Those of the kinds below follow.
type Plans struct {
	Kind  *Kind
	Below []*Kind // in schema order
	All   []Plan  // in schema order
}

// Plan is one of Plans.
type Plan struct{ Name, Const string } // pro, PlanPro

// plansOf returns the model of the schema's plans, whose kinds are kinds; nil if it has none.
func plansOf(s *schema.Schema, kinds []*Kind) *Plans {
	if s.Plans == nil {
		return nil
	}
	p := &Plans{Kind: kinds[s.Plans.Kind]}
	for i, k := range kinds {
		if s.OnPlans(i) && k != p.Kind {
			p.Below = append(p.Below, k)
		}
	}
	for _, plan := range s.Plans.Names {
		p.All = append(p.All, Plan{Name: plan.Name, Const: schema.PlanPrefix + plan.GoName})
	}
	return p
}

// Names returns the names of all plans.
func (p *Plans) Names() []string {
	names := make([]string, len(p.All))
	for i, plan := range p.All {
		names[i] = plan.Name
	}
	return names
}

// need sets PlanBy of the kinds between those that m charges and the plans' own: calls on m need the
// ancestors up to there.
func (p *Plans) need(m *Resource) {
	for _, c := range m.Charged {
		if !slices.Contains(p.Below, c.Kind) {
			continue
		}
		for k := c.Kind; k != p.Kind; k = k.Parent {
			if !slices.Contains(k.PlanBy, m.Name) {
				k.PlanBy = append(k.PlanBy, m.Name)
			}
		}
	}
}

// from returns the number of parents from k to the plans' kind, -1 if k is on no plan.
func (p *Plans) from(k *Kind) int {
	n := 0
	for ; k != nil; k = k.Parent {
		if k == p.Kind {
			return n
		}
		n++
	}
	return -1
}

// OnPlans reports whether plans change the numbers of buckets of c.
func (c *Charged) OnPlans() bool { return c.ToPlan >= 0 }

// All returns the numbers of the i-th limit of r: without a plan, then those that plans restate.
func (c *Charged) All(i int) []schema.Numbers {
	all := []schema.Numbers{c.Numbers[i]}
	for _, restated := range c.Plans {
		if restated != nil && !restated[i].Absent() {
			all = append(all, restated[i])
		}
	}
	return all
}
