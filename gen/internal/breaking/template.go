package breaking

import (
	"slices"

	"github.com/sluice-go/sluice/gen/internal/schema"
)

func namesChanged(c *comparison) {
	for o, n := range c.resources() {
		switch {
		case n.Template && !o.Template:
			c.report(n.NamesPos, n.Name, "resource %s has names: catalog now: its calls need a name, so callers of "+
				"its Acquire do not compile, each name has buckets of its own, which start full, and those of %[1]s "+
				"are for limits of all names; keep %[1]s as it is, and add a template: an entry of its catalog with "+
				"buckets: %[1]s goes on with the buckets of %[1]s", n.Name)
		case o.Template && !n.Template:
			c.report(n.NamesPos, n.Name, "resource %s has no names: catalog any more: callers of its Named do not "+
				"compile, its calls charge one bucket for each entity, and nothing reads the buckets and overrides of "+
				"the names, nor its catalog; put names: catalog back, or give the new resource a name of its own",
				n.Name)
		}
	}
}

func allNamesChanged(c *comparison) {
	for o, n := range c.resources() {
		if !o.Template || !n.Template {
			continue
		}
		for i, j := range limits(o, n) {
			was, is := o.Limits[i], n.Limits[j]
			if was.AllNames == is.AllNames {
				continue
			}
			from, to := "each name", "all names together"
			if was.AllNames {
				from, to = to, from
			}
			c.report(is.Pos, schema.Place(n.Name, is.Name), "limit %s of %s was for %s, and is for %s: it starts "+
				"full in other buckets, the buckets that had it drop it, and open leases give back to buckets that they "+
				"did not charge; give the new limit a name of its own, and write %[1]s into removed",
				is.Name, n.Name, from, to)
		}
	}
}

// template returns a template of the new schema whose names can go on with the buckets of r, nil for none. It
// has all of r's limits, for each name, and they count the same.
func (c *comparison) template(r *schema.Resource) *schema.Resource {
	goesOn := func(l *schema.Limit, of *schema.Resource) bool {
		i := limit(of, l.Name)
		if i < 0 {
			return false
		}
		is := of.Limits[i]
		return !is.AllNames && is.Currency == l.Currency && is.Windowed() == l.Windowed() &&
			is.InFlight == l.InFlight
	}
	for _, of := range c.new.Resources {
		all := !slices.ContainsFunc(r.Limits, func(l *schema.Limit) bool { return !goesOn(l, of) })
		if of.Template && all {
			return of
		}
	}
	return nil
}

func pricesNeeded(c *comparison) {
	for o, n := range c.resources() {
		if !o.Template || !n.Template || o.Usage == nil || n.Usage == nil || o.Priced() == n.Priced() {
			continue
		}
		takes, has := "takes the prices of a name now", "has"
		if o.Priced() {
			takes, has = "takes no prices any more", "no longer has"
		}
		c.report(n.Pos, n.Name, "Cost of %sUsage %s, as resource %s %s a limit of money: callers do not compile; "+
			"change them with this", n.GoName, takes, n.Name, has)
	}
}

func usageRenamed(c *comparison) {
	c.usages(func(n *schema.Resource, was, is *schema.Usage) {
		if !n.Template || was.Name == is.Name {
			return
		}
		c.report(is.Pos, n.Name, "usage %s of %s is %s now, with the same field %s: prices that the catalog has "+
			"for %[1]s do not count any more, and those of limits.yaml do; apply the catalog with %[3]s before this "+
			"is deployed, or write %[1]s back", was.Name, n.Name, is.Name, is.GoName)
	})
}
