package breaking

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/gen/internal/digest"
	"github.com/sluice-go/sluice/gen/internal/schema"
)

// removedLimits calls found with each limit of o that n neither has nor lists in removed. renamed is the
// probable new name: the first limit that only n has and that has the same numbers, or nil.
func (c *comparison) removedLimits(o, n *schema.Resource, found func(l, renamed *schema.Limit)) {
	var taken []*schema.Limit
	for i, l := range o.Limits {
		if limit(n, l.Name) >= 0 || slices.Contains(n.Removed, l.Name) {
			continue
		}
		var renamed *schema.Limit
		for j, m := range n.Limits {
			if renamed == nil && limit(o, m.Name) < 0 && !slices.Contains(taken, m) && c.sameNumbers(o, n, i, j) {
				renamed, taken = m, append(taken, m)
			}
		}
		found(l, renamed)
	}
}

// sameNumbers reports whether limit i of o has the numbers, the windows and the on_crash of limit j of n, for
// all kinds that both charge.
func (c *comparison) sameNumbers(o, n *schema.Resource, i, j int) bool {
	for _, was := range o.Charged {
		is := charged(c.new, n, c.old.Kinds[was.Kind].Name)
		if is != nil && was.Limits[i] != is.Limits[j] {
			return false
		}
	}
	was, is := o.Limits[i], n.Limits[j]
	return was.Numbers == is.Numbers && was.Release == is.Release && sameWindows(was.Window, is.Window)
}

func limitRemoved(c *comparison) {
	for o, n := range c.resources() {
		c.removedLimits(o, n, func(l, renamed *schema.Limit) {
			if renamed != nil {
				return
			}
			does := fmt.Sprintf("buckets hold its b_%s_* attributes, which generated expressions do not know, so "+
				"that writes to a bucket build their own until one reshapes it", l.Name)
			if c.onRedisAlone() {
				does = "nothing counts calls by it any more, its hashes expire, and its overrides stay, for a limit " +
					"that gets its name"
			}
			c.report(n.Pos, schema.Place(n.Name, l.Name),
				"limit %s of %s (%s) is gone: %s; write %s into removed of %s",
				l.Name, n.Name, l.Written(l.Numbers), does, l.Name, n.Name)
		})
	}
}

func limitRenamed(c *comparison) {
	for o, n := range c.resources() {
		c.removedLimits(o, n, func(l, renamed *schema.Limit) {
			if renamed != nil {
				c.report(renamed.Pos, schema.Place(n.Name, l.Name),
					"limit %s of %s is gone, and %s is new with the same numbers (%s): if that is its new name, every "+
						"bucket forgets its balance and starts %s full, and overrides of %s no longer apply; keep the name "+
						"and set go_name, or, if they are two limits, write %s into removed of %s",
					l.Name, n.Name, renamed.Name, l.Written(l.Numbers), renamed.Name, l.Name, l.Name, n.Name)
			}
		})
	}
}

func tombstoneDropped(c *comparison) {
	for o, n := range c.resources() {
		for _, name := range o.Removed {
			if !slices.Contains(n.Removed, name) && limit(n, name) < 0 {
				c.report(n.Pos, schema.Place(n.Name, name),
					"removed of %s had %s and no longer has it: a bucket that was not written since may hold b_%s_*, and "+
						"writes to it build their own expressions until one reshapes it; put %s back until all such buckets "+
						"have been written or have expired", n.Name, name, name, name)
			}
		}
	}
}

func removedReused(c *comparison) {
	digest.Reused(c.new, digest.Of(c.old), func(r *schema.Resource, l *schema.Limit, message string) {
		c.report(l.Pos, schema.Place(r.Name, l.Name), "%s", message)
	})
}

func periodUnit(c *comparison) {
	for o, n := range c.resources() {
		for i, j := range limits(o, n) {
			was, is := o.Limits[i], n.Limits[j]
			refills := was.Window == nil && is.Window == nil && !was.InFlight && !is.InFlight
			if refills && was.Period != is.Period {
				c.report(is.Pos, schema.Place(n.Name, is.Name),
					"limit %s of %s was %s and is now %s%s: balances that were counted by every %s are taken over as they "+
						"are, debts too, and overrides keep every %s; give the new period a limit of its own name, and write "+
						"%s into removed", is.Name, n.Name, was.Numbers, is.Numbers, c.restated(o, n, i, j),
					schema.Period(was.Period), schema.Period(was.Period), is.Name)
			}
		}
	}
}

// restated returns the change of limit i of o, which is limit j of n, for each kind that restates it. An
// example is ", for project 10 every 1m instead of 10 every 1s": a kind inherits every.
func (c *comparison) restated(o, n *schema.Resource, i, j int) string {
	var text strings.Builder
	for _, is := range n.Charged {
		name := c.new.Kinds[is.Kind].Name
		was := charged(c.old, o, name)
		if was != nil && !was.Limits[i].Absent() && !is.Limits[j].Absent() &&
			(was.Limits[i] != o.Limits[i].Numbers || is.Limits[j] != n.Limits[j].Numbers) {
			fmt.Fprintf(&text, ", for %s %s instead of %s", name, is.Limits[j], was.Limits[i])
		}
	}
	return text.String()
}
