package breaking

import (
	"github.com/sluice-go/sluice/gen/internal/schema"
	"github.com/sluice-go/sluice/gen/internal/words"
)

func limitEnded(c *comparison) {
	c.moved(func(was, is schema.Numbers) bool { return !was.Absent() && is.Absent() },
		func(n *schema.Resource, l *schema.Limit, kinds []string) {
			does := "a reshape drops what their buckets hold of it"
			if c.onRedisAlone() {
				does = "their hashes of it expire"
			}
			c.report(l.Pos, schema.Place(n.Name, l.Name),
				"limit %s of %s is no longer for kind %s: nothing counts their calls by it, %s, and their "+
					"overrides of it stay, for the day on which they get it again; a cost of it that no kind of a "+
					"chain has is an InvalidError; see that callers leave it out, or put the kind back into kinds",
				l.Name, n.Name, words.List(kinds, "and"), does)
		})
}

func limitBegun(c *comparison) {
	c.moved(func(was, is schema.Numbers) bool { return was.Absent() && !is.Absent() },
		func(n *schema.Resource, l *schema.Limit, kinds []string) {
			c.report(l.Pos, schema.Place(n.Name, l.Name),
				"limit %s of %s is for kind %s too: their buckets start full of it, or go on with what a bucket still "+
					"holds of it from before, and calls that were admitted are denied when it is empty; see first how much "+
					"callers use (sluice usage), or take the kind out of kinds", l.Name, n.Name, words.List(kinds, "and"))
		})
}

// moved calls report with each limit that both schemas have, and the kinds that both charge for which has is
// true of its old and its new numbers.
func (c *comparison) moved(has func(was, is schema.Numbers) bool,
	report func(n *schema.Resource, l *schema.Limit, kinds []string),
) {
	for o, n := range c.resources() {
		for i, j := range limits(o, n) {
			var kinds []string
			for _, is := range n.Charged {
				name := c.new.Kinds[is.Kind].Name
				if was := charged(c.old, o, name); was != nil && has(was.Limits[i], is.Limits[j]) {
					kinds = append(kinds, name)
				}
			}
			if kinds != nil {
				report(n, n.Limits[j], kinds)
			}
		}
	}
}
