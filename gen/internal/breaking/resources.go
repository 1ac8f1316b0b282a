package breaking

import (
	"slices"

	"github.com/sluice-go/sluice/gen/internal/schema"
)

// removedResources calls found with each resource that the new schema does not have. renamed is the probable
// new name: the first resource that only the new schema has and that has the same limits, or nil.
func (c *comparison) removedResources(found func(r, renamed *schema.Resource)) {
	var taken []*schema.Resource
	for _, r := range c.old.Resources {
		if resource(c.new, r.Name) != nil {
			continue
		}
		var renamed *schema.Resource
		for _, n := range c.new.Resources {
			like := n.Template == r.Template && c.sameLimits(r, n)
			if renamed == nil && resource(c.old, n.Name) == nil && !slices.Contains(taken, n) && like {
				renamed, taken = n, append(taken, n)
			}
		}
		found(r, renamed)
	}
}

// sameLimits reports whether two resources have limits of the same names and numbers.
func (c *comparison) sameLimits(o, n *schema.Resource) bool {
	if len(o.Limits) != len(n.Limits) {
		return false
	}
	for i, l := range o.Limits {
		if j := limit(n, l.Name); j < 0 || !c.sameNumbers(o, n, i, j) {
			return false
		}
	}
	return true
}

func resourceRemoved(c *comparison) {
	c.removedResources(func(r, renamed *schema.Resource) {
		if of := c.template(r); renamed == nil && of != nil && !r.Template {
			c.report(of.Pos, r.Name, "resource %s is gone, and names of %s have its limits: a name goes on with its "+
				"buckets if its entry in the catalog has buckets: %[1]s, else it starts full; overrides of "+
				"%[1]s for a kind no longer apply; apply that catalog before this is deployed, and say so under "+
				"breaking: ignore_only: [{rule: %[3]s, at: %[1]s, reason: ...}]", r.Name, of.Name, c.rule.ID)
			return
		}
		if renamed == nil {
			c.report(c.new.ResourcesPos, r.Name, "resource %s is gone: nothing limits its calls any more, its "+
				"buckets stay until they expire, and its overrides (#CONFIG#%s) stay for good, and apply again if the "+
				"name comes back; delete them with sluice override while a schema knows it, or put it back",
				r.Name, r.Name)
		}
	})
}

func resourceRenamed(c *comparison) {
	c.removedResources(func(r, renamed *schema.Resource) {
		if renamed != nil {
			c.report(renamed.Pos, r.Name, "resource %s is gone, and %s is new with the same limits: if that is its "+
				"new name, every bucket starts full there, and overrides of %s no longer apply; keep the name and set "+
				"go_name", r.Name, renamed.Name, r.Name)
		}
	})
}
