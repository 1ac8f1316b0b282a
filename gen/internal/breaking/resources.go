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
			if renamed == nil && resource(c.old, n.Name) == nil && !slices.Contains(taken, n) && c.sameLimits(r, n) {
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
