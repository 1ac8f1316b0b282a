package breaking

import (
	"slices"

	"github.com/sluice-go/sluice/gen/internal/schema"
	"github.com/sluice-go/sluice/gen/internal/words"
)

func globalChanged(c *comparison) {
	for o, n := range c.resources() {
		switch {
		case n.Global && !o.Global:
			c.report(n.GlobalPos, n.Name, "limits of %s were each table's own and are what %s have together: each "+
				"keeps its floor until sluice region sync gives it more, and calls that ask for more are denied "+
				"meanwhile; run sync in every region, or remove global to keep it",
				n.Name, words.List(c.new.Regions.Names, "and"))
		case o.Global && !n.Global:
			c.report(n.GlobalPos, n.Name, "limits of %s were what %s have together and are each table's own: all "+
				"regions together admit up to %d times as much; lower the numbers, or write global: true to keep it",
				n.Name, words.List(c.old.Regions.Names,
					"and"), len(c.old.Regions.Names))
		}
	}
}

// regions calls changed with the regions of both schemas, if both have some. Otherwise no resource stays
// global.
func (c *comparison) regions(changed func(o, n *schema.Regions)) {
	if c.old.Regions != nil && c.new.Regions != nil {
		changed(c.old.Regions, c.new.Regions)
	}
}

func regionAdded(c *comparison) {
	c.regions(func(o, n *schema.Regions) {
		if more := without(n.Names, o.Names); len(more) > 0 {
			c.report(n.NamesPos, "", "regions now include %s: a new one keeps its floor at once, and until the "+
				"others have less, all together admit more than the limit; deploy to the others first, and there once "+
				"their sync has run", words.List(more, "and"))
		}
	})
}

func regionRemoved(c *comparison) {
	c.regions(func(o, n *schema.Regions) {
		if removed := without(o.Names, n.Names); len(removed) > 0 {
			c.report(n.NamesPos, "", "regions no longer include %s: what they held is given to the others, and "+
				"calls that still run there admit on top of that; stop callers and sync there first, or put it back "+
				"into names", words.List(removed, "and"))
		}
	})
}

func regionFloorChanged(c *comparison) {
	c.regions(func(o, n *schema.Regions) {
		if o.Floor != n.Floor {
			c.report(n.FloorPos, "", "floor was %d percent and is %d: that is what a region has whose sync has "+
				"stopped or has not given it more, and as long as regions differ, all together may admit more than the "+
				"limit; deploy to all of them in one go, or write floor: %d to keep it", o.Floor, n.Floor, o.Floor)
		}
	})
}

func regionWindowChanged(c *comparison) {
	c.regions(func(o, n *schema.Regions) {
		if o.Window != n.Window {
			// processes may use a quota for the window that they know; sync waits for its end
			first, second := "regional sync and its schedule", "the services"
			if n.Window < o.Window {
				first, second = second, first
			}
			c.report(n.WindowPos, "", "window was %s and is %s: each region's sync begins again from what every "+
				"region keeps, and gives more once all have the new window; roll it out to %s in all regions first, "+
				"and to %s once that is done, or write window: %s to keep it",
				schema.Period(o.Window), schema.Period(n.Window), first, second, schema.Period(o.Window))
		}
	})
}

// without returns the names that are not among others.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.Contains(others,
			name)
	})
}
