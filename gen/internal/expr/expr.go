// Package expr writes the update and condition expressions of a resource's write paths (docs/design.md,
// "Write paths").
//
// One pass writes a Path's text and its list of operands: a placeholder is in the text only if it is on the
// list. Placeholders of a limit are :<limit>_<suffix>. Those of the bucket have no '_', so that they clash
// with no limit's.
package expr

import (
	"fmt"
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
	PlanOf                    // po to store

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

	Cell0     // added to the cell of even epochs
	Cell1     // added to the cell of odd epochs
	Cell0Lo   // lower bound of the cell of even epochs
	Cell0Hi   // upper bound of it
	Cell1Lo   // lower bound of the cell of odd epochs
	Cell1Hi   // upper bound of it
	Epoch     // lowest epoch that is counted, to store
	EpochSeen // that of the image
	EpochLo   // lower bound of the lowest epoch
	EpochHi   // upper bound of it
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
	return v.holdSuffix()
}

// holdSuffix is suffix for the values of a limit that counts holds. EpochSeen and EpochLo are in different
// paths.
func (v Value) holdSuffix() string {
	switch v {
	case Cell0:
		return "d0"
	case Cell1:
		return "d1"
	case Cell0Lo:
		return "h0lo"
	case Cell0Hi:
		return "h0hi"
	case Cell1Lo:
		return "h1lo"
	case Cell1Hi:
		return "h1hi"
	case Epoch:
		return "e"
	case EpochSeen, EpochLo:
		return "e0"
	case EpochHi:
		return "e1"
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
// tk since. It sweeps: it stores the lowest epoch that is counted from then on, and the cells that it empties
// are as seen.
func normal(r *model.Resource) *Path {
	w := newWriter(r)
	w.set(append([]string{"rf = " + w.shared(":rf", Refilled), w.stamp()}, w.stored()...)...)
	w.add(Net)
	update := w.text()
	w.line("rf = %s AND %s", w.shared(":rf0", RefilledSeen), w.guard())
	w.between(w.swept)
	return w.path(r.Normal, update)
}

// retry takes stored tokens and leaves rf alone.
func retry(r *model.Resource) *Path {
	w := newWriter(r)
	w.set(w.stamp())
	w.add(Given)
	update := w.text()
	w.line("%s", w.guard())
	w.between(w.counted)
	return w.path(r.Retry, update)
}

// adjust gives back, whatever the balance. Each limit must exist, or ADD would make half an item. A window
// that is named exists, and so does an epoch that has bounds.
func adjust(r *model.Resource) *Path {
	w := newWriter(r)
	w.set(w.stamp())
	w.add(Given)
	update := w.text()
	w.line("op <> %s", w.shared(":op", Op))
	for i, l := range r.Limits {
		var clauses []string
		if l.Window != nil {
			clauses = append(clauses, w.sameWindow(i))
		}
		if l.Holds() {
			clauses = append(clauses, w.counted(i))
		}
		if clauses == nil {
			clauses = []string{"attribute_exists(" + l.Attrs.Tokens + ")"}
		}
		w.line("AND %s", strings.Join(clauses, " AND "))
	}
	return w.path(r.Adjust, update)
}

// reshape stores parameters, and starts limits that are new to the item at their burst. It ends no holds. ADD
// creates a missing tc, and missing cells, in a third of the text of if_not_exists. That matters as this path
// is the longest, and so decides how many limits fit.
func reshape(r *model.Resource) *Path {
	w := newWriter(r)
	assignments := []string{"rf = " + w.shared(":rf", Refilled), "cv = " + w.shared(":cv1", Version), w.stamp()}
	if r.OnPlans {
		assignments = append(assignments, "po = "+w.shared(":po", PlanOf))
	}
	w.set(assignments...)
	for i, l := range r.Limits {
		a := l.Attrs
		w.more("%s = if_not_exists(%s, %s) + %s", a.Tokens, a.Tokens, w.of(i, Burst), w.of(i, Net))
		w.more("%s = %s, %s = %s, %s = %s, %s = %s",
			a.Capacity, w.of(i, Capacity), a.Burst, w.of(i, Burst), a.Refill, w.of(i, Refill), a.Period, w.of(i,
				Period))
		if l.Window != nil {
			w.more("%s = %s", a.Ends, w.of(i, Ends))
		}
		if l.Holds() {
			w.more("%s = %s", a.Epoch, w.of(i, Epoch))
		}
	}
	for i, l := range r.Limits {
		added := fmt.Sprintf("%s %s%s", l.Attrs.Consumed, w.of(i, Used), w.cells(i))
		if i == 0 {
			w.line("ADD %s", added)
		} else {
			w.more("%s", added)
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
		if l.Holds() {
			w.line("AND (attribute_not_exists(%s) OR %s)", l.Attrs.Epoch, w.sameEpoch(i))
		}
	}
	return w.path(r.Reshape, update)
}
