package table

import (
	"maps"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// Project returns what the index holds of an item, nil or not; ok is false if the item is not in the index.
func (t *Table) Project(index *IndexDef, item value.Map) (entry value.Map, ok bool) {
	if _, ok := index.Key.keyOf(item); !ok {
		return nil, false
	}
	return t.project(index, item), true
}

// project returns what the index holds of an item that is in it. Values are immutable: with ALL, that is the item itself.
func (t *Table) project(index *IndexDef, item value.Map) value.Map {
	if index.Projection.Type == "ALL" {
		return item
	}
	entry := t.Def.Key.attributes(item)
	maps.Copy(entry, index.Key.attributes(item))
	for _, name := range index.Projection.NonKey {
		if v, ok := item[name]; ok {
			entry[name] = v
		}
	}
	return entry
}

// stand returns an empty entry where the item stands in the index, or nil if it is not in it.
func (d *IndexDef) stand(key Key, item value.Map) *entry {
	place, ok := d.Key.keyOf(item)
	if !ok {
		return nil
	}
	return &entry{position: position{place, key}}
}
