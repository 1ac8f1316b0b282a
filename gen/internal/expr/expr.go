// Package expr writes the update and condition expressions of a resource's write paths (docs/design.md,
// "Write paths").
//
// One pass writes a Path's text and its list of operands: a placeholder is in the text only if it is on the
// list. Placeholders of a limit are :<limit>_<suffix>. Those of the bucket have no '_', so that they clash
// with no limit's.
package expr

import (
	"strings"

	"github.com/sluice-go/sluice/gen/internal/model"
)

// Path is one write path of a resource.
type Path struct {
	model.Path

	Update    string // "" where the path puts an item
	Condition string
	Operands  []Operand // in the order in which the text first names them
}

// Operand is a placeholder and its value.
type Operand struct {
	Placeholder string
	Value       Value
	Limit       int // index of the limit in vectors, for values that are a limit's
}

// Value is an input of a builder.
type Value int

// The values of a write as such, then those of one of its limits.
const (
	Refilled     Value = iota // rf to store
	RefilledSeen              // rf of the image
	Version                   // cv to store
	VersionSeen               // cv of the image
	Op                        // id of the write
	TTL                       // ttl to store

	Net      // refill less cost
	Given    // cost, negated
	Used     // cost
	Lo       // lower bound
	Hi       // upper bound
	Capacity // parameters to store
	Burst
	Refill
	Period
	Ends     // end of the window to store
	EndsSeen // end of the window in the image
)

// OfLimit reports whether v is a value of one limit, not of the write as such.
func (v Value) OfLimit() bool { return v >= Net }

// suffix returns what follows a limit's name in the placeholder of v.
func (v Value) suffix() string {
	switch v {
	case Net, Given:
		return "net"
	case Used:
		return "use"
	case Lo:
		return "lo"
	case Hi:
		return "hi"
	case Capacity:
		return "cp"
	case Burst:
		return "bx"
	case Refill:
		return "ra"
	case Period:
		return "rp"
	case Ends:
		return "we"
	case EndsSeen:
		return "we0"
	}
	return ""
}

// Paths returns the write paths of r, in the order in which code shows them.
func Paths(r *model.Resource) []*Path {
	return []*Path{create(r), normal(r), retry(r), adjust(r), reshape(r)}
}

// create puts a whole item.
func create(r *model.Resource) *Path {
	return &Path{Path: r.Create, Condition: "attribute_not_exists(PK)"}
}

// normal claims the refill. The guard of rf excludes another claim, and the bounds exclude too large moves of
// tk since.
func normal(r *model.Resource) *Path {
	w := newWriter(r)
	w.set(append([]string{"rf = " + w.shared(":rf", Refilled), w.stamp()}, w.windows()...)...)
	w.add(Net)
	update := w.text()
	w.line("rf = %s AND %s", w.shared(":rf0", RefilledSeen), w.guard())
	w.between()
	return w.path(r.Normal, update)
}

// retry takes stored tokens and leaves rf alone.
func retry(r *model.Resource) *Path {
	w := newWriter(r)
	w.set(w.stamp())
	w.add(Given)
	update := w.text()
	w.line("%s", w.guard())
	w.between()
	return w.path(r.Retry, update)
}

// adjust gives back, whatever the balance. Each limit must exist, or ADD would make half an item. A window
// that is named exists.
func adjust(r *model.Resource) *Path {
	w := newWriter(r)
	w.set(w.stamp())
	w.add(Given)
	update := w.text()
	w.line("op <> %s", w.shared(":op", Op))
	for i, l := range r.Limits {
		if l.Window != nil {
			w.line("AND %s", w.sameWindow(i))
			continue
		}
		w.line("AND attribute_exists(%s)", l.Attrs.Tokens)
	}
	return w.path(r.Adjust, update)
}

// reshape stores parameters, and starts limits that are new to the item at their burst. ADD creates a missing
// tc, in a third of the text of if_not_exists. That matters as this path is the longest, and so decides how
// many limits fit.
func reshape(r *model.Resource) *Path {
	w := newWriter(r)
	w.set("rf = "+w.shared(":rf", Refilled), "cv = "+w.shared(":cv1", Version), w.stamp())
	for i, l := range r.Limits {
		a := l.Attrs
		w.more("%s = if_not_exists(%s, %s) + %s", a.Tokens, a.Tokens, w.of(i, Burst), w.of(i, Net))
		w.more("%s = %s, %s = %s, %s = %s, %s = %s",
			a.Capacity, w.of(i, Capacity), a.Burst, w.of(i, Burst), a.Refill, w.of(i, Refill), a.Period, w.of(i,
				Period))
		if l.Window != nil {
			w.more("%s = %s", a.Ends, w.of(i, Ends))
		}
	}
	for i, l := range r.Limits {
		if i == 0 {
			w.line("ADD %s %s", l.Attrs.Consumed, w.of(i, Used))
		} else {
			w.more("%s %s", l.Attrs.Consumed, w.of(i, Used))
		}
	}
	for i, a := range r.Removed {
		if removed := strings.Join(a.All(), ", "); i == 0 {
			w.line("REMOVE %s", removed)
		} else {
			w.more("%s", removed)
		}
	}
	update := w.text()
	w.line("rf = %s AND %s", w.shared(":rf0", RefilledSeen), w.guard())
	for i, l := range r.Limits {
		w.line("AND (attribute_not_exists(%s) OR %s BETWEEN %s AND %s)", l.Attrs.Tokens, l.Attrs.Tokens,
			w.of(i, Lo), w.of(i, Hi))
		if l.Window != nil {
			w.line("AND (attribute_not_exists(%s) OR %s)", l.Attrs.Ends, w.sameWindow(i))
		}
	}
	return w.path(r.Reshape, update)
}
