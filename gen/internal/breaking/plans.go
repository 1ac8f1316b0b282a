package breaking

import (
	"fmt"
	"strings"

	"github.com/sluice-go/sluice/gen/internal/schema"
)

func planRemoved(c *comparison) {
	if c.old.Plans == nil {
		return
	}
	pos := c.new.ResourcesPos
	if c.new.Plans != nil {
		pos = c.new.Plans.NamesPos
	}
	for _, plan := range c.old.Plans.Names {
		if c.new.Plans.Index(plan.Name) < 0 {
			c.report(pos, plan.Name, "plan %s is gone: entities that are on it stay there, their buckets keep the "+
				"numbers that they have, new ones get the most that any plan gives, and %s%s does not compile; put them "+
				"on another plan first (SetPlan), or put it back into names", plan.Name, schema.PlanPrefix, plan.GoName)
		}
	}
}

// samePlans reports whether both schemas have plans, and those are of the same kind.
func samePlans(c *comparison) bool {
	return c.old.Plans != nil && c.new.Plans != nil && plansKind(c.old) == plansKind(c.new)
}

// plansKind returns the name of the kind whose entities are put on plans.
func plansKind(s *schema.Schema) string { return s.Kinds[s.Plans.Kind].Name }

func planKindChanged(c *comparison) {
	if c.old.Plans == nil || c.new.Plans == nil || samePlans(c) {
		return
	}
	was, is := c.old.Kinds[c.old.Plans.Kind], c.new.Kinds[c.new.Plans.Kind]
	c.report(c.new.Plans.KindPos, "", "plans were those of %s and are those of %s: nothing reads which plan "+
		"each %s is on, so its entities have the numbers of no plan, and calls that pass %s to SetPlan and PlanOf "+
		"do not compile; put each %s on its plan as this is deployed, or write kind: %s",
		was.Name, is.Name, was.Name, was.GoName, is.Name, was.Name)
}

func planLowered(c *comparison) {
	if !samePlans(c) {
		return
	}
	for o, n := range c.resources() {
		for i, j := range limits(o, n) {
			if list := loweredOnPlans(c, o, n, i, j); list != nil {
				c.report(n.PlansPos, schema.Place(n.Name, n.Limits[j].Name), "limit %s of %s is %s: entities on the "+
					"plan are denied earlier, and calls that cost more than it can hold fail with a CostTooLargeError; see "+
					"first how much they use (sluice usage), or put the numbers under the name of another plan",
					n.Limits[j].Name, n.Name, strings.Join(list, ", "))
			}
		}
	}
}

// loweredOnPlans returns the changes of limit i of o, which is limit j of n, by which a plan gives less. An
// example is "10 every 1s instead of 20 every 1s for key on plan pro". Other rules report numbers that
// neither plan restates.
func loweredOnPlans(c *comparison, o, n *schema.Resource, i, j int) (list []string) {
	for newPlan, plan := range c.new.Plans.Names {
		oldPlan := c.old.Plans.Index(plan.Name)
		if oldPlan < 0 {
			continue
		}
		for k := range n.Charged {
			name := c.new.Kinds[n.Charged[k].Kind].Name
			before := charged(c.old, o, name)
			if before == nil {
				continue
			}
			was, restated := onPlan(before, oldPlan, i)
			is, restates := onPlan(&n.Charged[k], newPlan, j)
			same := was.Currency == is.Currency && was.Windowed() == is.Windowed() && was.InFlight() == is.InFlight()
			if !restated && !restates || was.Absent() || is.Absent() || !same {
				continue
			}
			if is.Burst < was.Burst || slower(number{Numbers: was}, number{Numbers: is}) {
				list = append(list, fmt.Sprintf("%s instead of %s for %s on plan %s", shown(is), shown(was), name,
					plan.Name))
			}
		}
	}
	return list
}

// onPlan returns the numbers of a limit for a kind on a plan, and whether the plan restates them.
func onPlan(c *schema.Charged, plan, limit int) (n schema.Numbers, restated bool) {
	if c.Plans != nil && c.Plans[plan] != nil && !c.Plans[plan][limit].Absent() {
		return c.Plans[plan][limit], true
	}
	return c.Limits[limit], false
}

// shown returns n as limits.yaml has it, without what its limit has for all kinds if it does not refill.
func shown(n schema.Numbers) string {
	if n.Windowed() || n.InFlight() {
		return n.WrittenCapacity()
	}
	return n.String()
}

func parentNeeded(c *comparison) {
	for o, n := range c.resources() {
		if !n.OnPlans {
			continue
		}
		of := c.new.Kinds[c.new.Plans.Kind]
		for _, is := range n.Charged {
			k := c.new.Kinds[is.Kind]
			if k == of || !c.new.OnPlans(is.Kind) || charged(c.old, o, k.Name) == nil ||
				needed(c.old, o, k.Name, of.Name) {
				continue
			}
			c.report(is.Pos, schema.Place(n.Name, k.Name), "calls on %s for kind %s did not need its %s, and go by "+
				"its plan now: %s{ID: ..} without it compiles as before, but its calls fail with an InvalidError, and "+
				"those of ParseEntity look for parents that may not be stored; pass them, or store them (sluice entity "+
				"put)", n.Name, k.Name, of.Name, k.GoName)
		}
	}
}

// needed reports whether calls on r, of s, for a kind need its ancestor of kind of. They do for the plan of
// that, or if they charge it, or one above it.
func needed(s *schema.Schema, r *schema.Resource, name, of string) bool {
	reached := false
	for k := kind(s, name); k.Parent >= 0; {
		k = s.Kinds[k.Parent]
		reached = reached || k.Name == of
		charges := r.Cascade != schema.CascadeNone && charged(s, r, k.Name) != nil
		if reached && (charges || r.OnPlans && plansKind(s) == k.Name) {
			return true
		}
	}
	return false
}
