package table

import (
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// AddIndex adds an index, and to it the items that have its key. Reads that see the table as it was before
// then find it empty.
func (t *Table) AddIndex(index IndexDef, at time.Time) {
	t.past.keep(t.trees, at)
	t.Def.Indexes = append(slices.Clip(t.Def.Indexes), index)
	filled := newTree()
	t.trees[0].Scan(func(e *entry) bool {
		if in := index.stand(e.place, e.item); in != nil {
			filled.replace(nil, in.holding(t.project(&index, e.item)))
		}
		return true
	})
	t.trees = append(t.trees, filled)
}

// DropIndex removes the index of that name, which the table has, from its past too: no read finds it any
// more.
func (t *Table) DropIndex(name string) {
	i := slices.IndexFunc(t.Def.Indexes, func(d IndexDef) bool { return d.Name == name })
	t.Def.Indexes = slices.Delete(slices.Clone(t.Def.Indexes), i, i+1)
	t.trees = slices.Delete(t.trees, 1+i, 2+i)
	t.past.drop(1 + i)
}

// Sizes of keys, in bytes.
const (
	MaxHashSize = 2048
	MaxSortSize = 1024
)

// keyOf returns the item's key in the index; ok is false if it has none: an attribute is missing, or is none
// that a key may have. Of the last kind are only items that were there before their index.
func (d *IndexDef) keyOf(item value.Map) (key Key, ok bool) {
	key, ok = d.Key.keyOf(item)
	switch {
	case !ok, key.hash == "", len(key.hash) > MaxHashSize:
		return Key{}, false
	case d.Key.Sort.Name == "":
		return key, true
	default:
		return key, key.sort != "" && len(key.sort) <= MaxSortSize
	}
}

// Project returns what the index holds of an item, nil or not; ok is false if the item is not in the index.
func (t *Table) Project(index *IndexDef, item value.Map) (entry value.Map, ok bool) {
	if _, ok := index.keyOf(item); !ok {
		return nil, false
	}
	return t.project(index, item), true
}

// project returns what the index holds of an item that is in it. Values are immutable: with ALL, that is the
// item itself.
func (t *Table) project(index *IndexDef, item value.Map) value.Map {
	if index.Projection.Type == "ALL" {
		return item
	}
	entry := t.Def.Key.attributes(item)
	index.Key.copyTo(entry, item)
	for _, name := range index.Projection.NonKey {
		if v, ok := item[name]; ok {
			entry[name] = v
		}
	}
	return entry
}

// stand returns an empty entry where the item stands in the index, or nil if it is not in it.
func (d *IndexDef) stand(key Key, item value.Map) *entry {
	place, ok := d.keyOf(item)
	if !ok {
		return nil
	}
	return &entry{position: position{place, key}}
}
