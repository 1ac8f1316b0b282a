package breaking

import (
	"fmt"
	"path"
	"slices"

	"github.com/sluice-go/sluice/gen/internal/schema"
)

func packageChanged(c *comparison) {
	was, is := c.old, c.new
	if was.Package != is.Package || path.Clean(was.Out) != path.Clean(is.Out) {
		c.report(is.GoPos, "", "the Go package was %s in %s and is now %s in %s: callers' imports do not compile; write package: %s and out: %s to keep it",
			was.Package, was.Out, is.Package, is.Out, was.Package, was.Out)
	}
}

// goNameChanged compares by Go names: what has another name in limits.yaml, and the old one in Go, compiles.
func goNameChanged(c *comparison) {
	for _, o := range c.old.Kinds {
		n := kind(c.new, o.Name)
		switch {
		case n != nil && n.GoName != o.GoName:
			c.goName(n.Pos, o.Name, fmt.Sprintf("type %s of kind %s", o.GoName, o.Name), n.GoName, o.GoName)
		case n == nil && !slices.ContainsFunc(c.new.Kinds, func(k *schema.Kind) bool { return k.GoName == o.GoName }):
			c.goName(c.new.KindsPos, o.Name, fmt.Sprintf("type %s of kind %s", o.GoName, o.Name), "", o.GoName)
		}
	}
	for _, o := range c.old.Resources {
		what := fmt.Sprintf("%s of resource %s, with %sCost and all that is named after it,", o.GoName, o.Name, o.GoName)
		i := slices.IndexFunc(c.new.Resources, func(r *schema.Resource) bool { return r.GoName == o.GoName })
		n := resource(c.new, o.Name)
		switch {
		case n != nil && n.GoName != o.GoName:
			c.goName(n.Pos, o.Name, what, n.GoName, o.GoName)
		case n == nil && i < 0:
			c.goName(c.new.ResourcesPos, o.Name, what, "", o.GoName)
		default:
			c.goLimits(o, c.new.Resources[i])
		}
	}
}

// goLimits compares what the limits of a resource are in Go.
func (c *comparison) goLimits(o, n *schema.Resource) {
	for _, l := range o.Limits {
		what := fmt.Sprintf("%s of limit %s, a field of %sCost and constant %s%s,", l.GoName, l.Name, o.GoName, o.GoName, l.GoName)
		place := schema.Place(o.Name, l.Name)
		switch j := limit(n, l.Name); {
		case j >= 0 && n.Limits[j].GoName != l.GoName:
			c.goName(n.Limits[j].Pos, place, what, n.Limits[j].GoName, l.GoName)
		case !slices.ContainsFunc(n.Limits, func(m *schema.Limit) bool { return m.GoName == l.GoName }):
			c.goName(n.Pos, place, what, "", l.GoName)
		}
	}
}

// goName reports a name that callers cannot use any more; now is what there is instead, "" if nothing.
func (c *comparison) goName(pos schema.Pos, place, what, now, was string) {
	if now == "" {
		c.report(pos, place, "%s is gone: callers that use it do not compile; change them first", what)
		return
	}
	c.report(pos, place, "%s is %s now: callers that use it do not compile; set go_name: %s to keep it", what, now, was)
}
