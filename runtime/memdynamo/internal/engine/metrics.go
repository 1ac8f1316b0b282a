package engine

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/table"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// wantsMetrics reports whether ReturnItemCollectionMetrics asks for anything.
func wantsMetrics(mode *string) bool { return mode != nil && *mode == "SIZE" }

// collects reports whether the action changes an item of a collection: those that share a hash key, in a
// table with a local index.
func (x *target) collects() bool {
	return x.verb != check &&
		slices.ContainsFunc(x.id.table.Def.Indexes, func(d table.IndexDef) bool { return d.Local })
}

// appendCollection appends the object ItemCollectionMetrics of the collection that the action changed. No
// collection here comes to a gigabyte.
func (x *target) appendCollection(b []byte) []byte {
	b = value.AppendMap(append(b, `{"ItemCollectionKey":`...), value.Map{x.id.table.Def.Key.Hash.Name: x.hash()})
	return append(b, `,"SizeEstimateRangeGB":[0,1]}`...)
}

// appendCollections appends the member ItemCollectionMetrics of a request with several actions, those that
// were done: the collections that they changed, each once, by table. It takes done apart.
func appendCollections(b []byte, mode *string, done []*target) []byte {
	if !wantsMetrics(mode) {
		return b
	}
	done = slices.DeleteFunc(done, func(x *target) bool { return !x.collects() })
	if len(done) == 0 {
		return b
	}
	b = append(appendMember(b, "ItemCollectionMetrics"), '{')
	for len(done) > 0 {
		of := done[0].id.table
		b = append(appendMember(b, of.Def.Name), '[')
		seen := map[string]bool{}
		for _, x := range done {
			if key := string(value.Append(nil, x.hash())); x.id.table == of && !seen[key] {
				b = x.appendCollection(appendElement(b))
				seen[key] = true
			}
		}
		b = append(b, ']')
		done = slices.DeleteFunc(done, func(x *target) bool { return x.id.table == of })
	}
	return append(b, '}')
}
