package breaking

import (
	"slices"

	"github.com/sluice-go/sluice/gen/internal/schema"
)

// goneResources calls found with each resource that new has not, and with what it was renamed to: the first that new alone
// has with the same limits, nil if there is none.
func (c *comparison) goneResources(found func(r, renamed *schema.Resource)) {
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

// sameLimits says that two resources have limits of the same names and numbers.
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
	c.goneResources(func(r, renamed *schema.Resource) {
		if renamed == nil {
			c.report(c.new.ResourcesPos, r.Name, "resource %s is gone: nothing limits its calls any more, its buckets stay until they expire, and its "+
				"overrides (#CONFIG#%s) stay for good, to apply again should the name come back; delete them with sluice override while a "+
				"schema knows it, or put it back", r.Name, r.Name)
		}
	})
}

func resourceRenamed(c *comparison) {
	c.goneResources(func(r, renamed *schema.Resource) {
		if renamed != nil {
			c.report(renamed.Pos, r.Name, "resource %s is gone, and %s is new with the same limits: if that is its new name, every bucket starts full "+
				"there, and overrides of %s no longer apply; keep the name and set go_name", r.Name, renamed.Name, r.Name)
		}
	})
}
