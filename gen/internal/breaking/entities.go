package breaking

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/gen/internal/schema"
)

func kindRemoved(c *comparison) {
	for _, k := range c.old.Kinds {
		if kind(c.new, k.Name) == nil {
			c.report(c.new.KindsPos, k.Name, "kind %s is gone: buckets, overrides and parents of %s-<id> stay in "+
				"the table, where nothing reads them; put it back, or, if it has another name now, keep the old one "+
				"and set go_name", k.Name, k.Name)
		}
	}
}

func kindUncharged(c *comparison) {
	for o, n := range c.resources() {
		for _, was := range o.Charged {
			k := kind(c.new, c.old.Kinds[was.Kind].Name)
			if k == nil || charged(c.new, n, k.Name) != nil {
				continue
			}
			var numbers []string
			for i, l := range o.Limits {
				if !was.Limits[i].Absent() {
					numbers = append(numbers, l.Name+" "+was.Limits[i].String())
				}
			}
			c.report(n.Pos, schema.Place(n.Name, k.Name),
				"%s had a bucket for each %s (%s) and no longer has: these limits end, nothing reads what is stored "+
					"of them, and calls that pass %s do not compile%s; put %s back into entities of %s",
				n.Name, k.Name, strings.Join(numbers, "; "), k.GoName, c.retagged(n.Name), k.Name, n.Name)
		}
	}
}

func parentChanged(c *comparison) {
	for o, n := range c.kinds() {
		was, is := parent(c.old, o), parent(c.new, n)
		if was == "" || was == is {
			continue
		}
		field := c.old.Kinds[o.Parent].GoName
		if is == "" {
			c.report(n.ParentPos, n.Name, "kind %s had parent %s and has none: calls that pass %s no longer charge "+
				"its %s, nothing reads what sluice entity put has stored of them, and %sByID and field %s of %s are "+
				"gone%s; put parent: %s back",
				n.Name, was, n.GoName, was, n.GoName, field, n.GoName, c.retagged(""), was)
			continue
		}
		removed := ""
		if c.new.Kinds[n.Parent].GoName != field {
			removed = fmt.Sprintf(", and field %s of %s is gone", field, n.GoName)
		}
		c.report(n.ParentPos, n.Name, "kind %s had parent %s and has %s: look-ups of stored parents, which are "+
			"of kind %s, fail with a SetupError%s%s; pass parents in calls, or store them again as this is deployed "+
			"(sluice entity put %s-<id> --parent %s-<id>)",
			n.Name, was, is, was, removed, c.retagged(""), n.Name, is)
	}
}

func entityChain(c *comparison) {
	for o, n := range c.kinds() {
		if o.Parent >= 0 || n.Parent < 0 {
			continue
		}
		var by []string
		for _, r := range c.new.Resources {
			if r.Cascade != schema.CascadeNone && len(along(c.new, r, n)) > 0 && c.chargesUpTo(r, n) {
				by = append(by, r.Name)
			}
		}
		if len(by) == 0 {
			continue // a parent that no call charges may stay empty
		}
		is := c.new.Kinds[n.Parent]
		c.report(n.ParentPos, n.Name, "kind %s had no parent and has %s: %s{ID: ..} without %s compiles as "+
			"before, but its calls on %s fail with an InvalidError, and those of ParseEntity look for a parent that "+
			"is not stored%s; pass %s, or store it (sluice entity put %s-<id> --parent %s-<id>) and use %sByID",
			n.Name, is.Name, n.GoName, is.GoName, strings.Join(by,
				", "), c.retagged(""), is.GoName, n.Name, is.Name, n.GoName)
	}
}

// chargesUpTo reports whether r charges kind k, or one below it.
func (c *comparison) chargesUpTo(r *schema.Resource, k *schema.Kind) bool {
	for _, charged := range r.Charged {
		for at := charged.Kind; at >= 0; at = c.new.Kinds[at].Parent {
			if c.new.Kinds[at] == k {
				return true
			}
		}
	}
	return false
}

func ancestorCharged(c *comparison) {
	for o, n := range c.resources() {
		if o.Cascade == schema.CascadeNone || n.Cascade == schema.CascadeNone {
			continue // CASCADE_CHANGED reports that, if anything
		}
		for _, is := range n.Charged {
			above := c.new.Kinds[is.Kind]
			if charged(c.old, o, above.Name) != nil {
				continue
			}
			var below []string
			for _, was := range o.Charged {
				k := kind(c.new, c.old.Kinds[was.Kind].Name)
				if k != nil && charged(c.new, n, k.Name) != nil && slices.Contains(along(c.new, n, k), above.Name) {
					below = append(below, k.GoName)
				}
			}
			if len(below) > 0 {
				c.report(is.Pos, schema.Place(n.Name, above.Name),
					"%s had no bucket for kind %s and has one: calls that pass %s take from it too, at the price of its "+
						"write, are denied when it is empty, and fail with an InvalidError where the %s has no ID%s; see "+
						"that callers pass it, and that the numbers are enough for all below",
					n.Name, above.Name, strings.Join(below,
						" or "), above.GoName, c.retagged(n.Name))
			}
		}
	}
}
