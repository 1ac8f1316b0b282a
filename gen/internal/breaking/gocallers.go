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
		c.report(is.GoPos, "", "the Go package was %s in %s and is now %s in %s: callers' imports do not "+
			"compile; write package: %s and out: %s to keep it",
			was.Package, was.Out, is.Package, is.Out, was.Package, was.Out)
	}
}

func storeRemoved(c *comparison) {
	for _, store := range c.old.Stores {
		if slices.Contains(c.new.Stores, store) {
			continue
		}
		removed := "its scripts are"
		if store == schema.StoreDynamoDB {
			removed = "ExtractDeltas and all buckets' types are"
		}
		c.report(c.new.StoresPos, "", "store %s is gone: New returns an error to callers that pass one, %s no "+
			"longer generated, and nothing reads what is stored there; put %s back into stores, or move callers "+
			"first, whose buckets start full in another store", store, removed, store)
	}
}

// kindGoNameChanged compares Go names of kinds: callers still compile if only the name in limits.yaml
// changes.
func kindGoNameChanged(c *comparison) {
	for _, o := range c.old.Kinds {
		g := goName{place: o.Name, what: fmt.Sprintf("type %s of kind %s", o.GoName, o.Name), was: o.GoName,
			pos: c.new.KindsPos}
		n := kind(c.new, o.Name)
		if n != nil {
			g.pos, g.is = n.Pos, n.GoName
		}
		i := slices.IndexFunc(c.new.Kinds, func(k *schema.Kind) bool { return k.GoName == o.GoName })
		if i >= 0 && c.new.Kinds[i] != n {
			name := c.new.Kinds[i].Name
			g.other, g.renamed = "kind "+name, n == nil && kind(c.old, name) == nil
		}
		g.report(c)
	}
}

// resourceGoNameChanged compares Go names of resources.
func resourceGoNameChanged(c *comparison) {
	for _, o := range c.old.Resources {
		g, _ := c.goResource(o)
		g.report(c)
	}
}

// limitGoNameChanged compares Go names of limits, of resources whose own is the same.
func limitGoNameChanged(c *comparison) {
	for _, o := range c.old.Resources {
		if g, n := c.goResource(o); g.same() {
			c.goLimits(o, n)
		}
	}
}

// goResource returns the Go name of o, and the new resource that has it now, nil if none has.
func (c *comparison) goResource(o *schema.Resource) (g goName, has *schema.Resource) {
	g = goName{
		place: o.Name, what: fmt.Sprintf("%s of resource %s, with %sCost and all that is named after it,",
			o.GoName, o.Name, o.GoName),
		was: o.GoName, pos: c.new.ResourcesPos,
	}
	n := resource(c.new, o.Name)
	if n != nil {
		g.pos, g.is = n.Pos, n.GoName
	}
	i := slices.IndexFunc(c.new.Resources, func(r *schema.Resource) bool { return r.GoName == o.GoName })
	if i < 0 {
		return g, nil
	}
	has = c.new.Resources[i]
	if has != n {
		g.other, g.renamed = "resource "+has.Name, n == nil && resource(c.old, has.Name) == nil
	}
	return g, has
}

// goLimits compares the Go names of a resource's limits.
func (c *comparison) goLimits(o, n *schema.Resource) {
	for _, l := range o.Limits {
		g := goName{
			place: schema.Place(o.Name, l.Name), what: fmt.Sprintf("%s of limit %s, a field of %sCost and constant "+
				"%s%s,", l.GoName, l.Name, o.GoName, o.GoName, l.GoName),
			was: l.GoName, pos: n.Pos,
		}
		j := limit(n, l.Name)
		if j >= 0 {
			g.pos, g.is = n.Limits[j].Pos, n.Limits[j].GoName
		}
		i := slices.IndexFunc(n.Limits, func(m *schema.Limit) bool { return m.GoName == l.GoName })
		if i >= 0 && i != j {
			name := n.Limits[i].Name
			g.other, g.renamed = "limit "+name, j < 0 && limit(o, name) < 0
		}
		g.report(c)
	}
}

// goName is the Go name of a kind, resource or limit, before and after.
type goName struct {
	pos     schema.Pos
	place   string
	what    string // owner of the name, for messages
	was, is string // the name; is is "" if the owner was removed
	other   string // another owner of the old name now, "" for none
	renamed bool   // other may be the removed owner, under another name in limits.yaml
}

// same reports whether the old name still exists and means the same.
func (g goName) same() bool { return g.is == g.was || g.renamed }

// report reports a name that callers can no longer use, or that now means something else.
func (g goName) report(c *comparison) {
	switch {
	case g.same():
	case g.is == "" && g.other == "":
		c.report(g.pos, g.place, "%s is gone: callers that use it do not compile; change them first", g.what)
	case g.is == "":
		c.report(g.pos, g.place, "%s is gone, and %s is %s: callers that use it may compile, and mean that; give "+
			"%s another go_name",
			g.what, g.was, g.other, g.other)
	case g.other == "":
		c.report(g.pos, g.place, "%s is %s now: callers that use it do not compile; set go_name: %s to keep it",
			g.what, g.is, g.was)
	default:
		c.report(g.pos, g.place, "%s is %s now, and %s is %s: callers that use it may compile, and mean that; "+
			"set go_name: %s to keep it",
			g.what, g.is, g.was, g.other, g.was)
	}
}
