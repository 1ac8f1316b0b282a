package engine

import (
	"maps"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/table"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// cost returns what the action consumes of the table, by the larger of the item before and after, and of its
// indexes. A refused write costs the table the same: AWS documents that it is billed for the item it would
// have written. It costs the indexes nothing.
func (x *target) cost(r result) usage {
	t := x.id.table
	u := usage{table: t, write: true, base: writeUnits(max(value.ItemSize(r.old), value.ItemSize(r.new)))}
	if r.err != nil || x.verb == check {
		return u
	}
	for i := range t.Def.Indexes {
		index := &t.Def.Indexes[i]
		if units := t.indexCost(index, r.old, r.new); units > 0 {
			u.addIndex(index.Name, units)
		}
	}
	return u
}

// localOverhead is how many bytes an entry of a local index has beside its attributes.
const localOverhead = 100

// indexCost returns the units that a change of an item costs in an index. It is nothing if the index's entry
// stays the same and one write if it changes. If the entry's key changes it is two writes, a deletion and a
// put.
func (t *tableState) indexCost(index *table.IndexDef, before, after value.Map) float64 {
	size := func(entry value.Map) int {
		if index.Local {
			return value.ItemSize(entry) + localOverhead
		}
		return value.ItemSize(entry)
	}
	was, wasIn := t.Project(index, before)
	is, isIn := t.Project(index, after)
	switch {
	case !wasIn && !isIn:
		return 0
	case !wasIn:
		return writeUnits(size(is))
	case !isIn:
		return writeUnits(size(was))
	case !sameKey(index.Key, was, is):
		return writeUnits(size(was)) + writeUnits(size(is))
	case maps.EqualFunc(was, is, value.Equal):
		return 0
	default:
		return writeUnits(max(size(was), size(is)))
	}
}

// sameKey reports whether two entries of an index have the same key there.
func sameKey(key table.KeySchema, a, b value.Map) bool {
	for _, attribute := range keyAttributes(key) {
		if !value.Equal(a[attribute.Name], b[attribute.Name]) {
			return false
		}
	}
	return true
}
