// Package table is the storage: items in the order of their keys, indexes that follow them, what the stream
// tells of them, and the past that stale reads see. Nothing here locks: the engine's lock does.
package table

import (
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// Attribute is a key attribute and its type: KindS, KindN or KindB.
type Attribute struct {
	Name string
	Kind value.Kind
}

// KeySchema is the key of a table or an index. Sort's name is empty if there is none.
type KeySchema struct{ Hash, Sort Attribute }

// Projection is what an index holds of an item, beside the keys.
type Projection struct {
	Type   string // KEYS_ONLY, INCLUDE or ALL
	NonKey []string
}

// IndexDef defines a secondary index.
type IndexDef struct {
	Name       string
	Key        KeySchema
	Projection Projection
	Local      bool
}

// Def defines a table, as far as storage is concerned.
type Def struct {
	Name    string
	Key     KeySchema
	Indexes []IndexDef
}

// Table is a table's items, indexes, stream and recent past.
type Table struct {
	Def Def

	trees  []tree // the items, then each of Def.Indexes
	expiry expiry
	past   past
	stream *Stream
}

// New returns an empty table.
func New(def Def) *Table {
	t := &Table{Def: def, trees: make([]tree, 1+len(def.Indexes))}
	for i := range t.trees {
		t.trees[i] = newTree()
	}
	return t
}

// KeyOf returns the key of an item, or of a Key parameter, whose key attributes have been validated.
func (t *Table) KeyOf(item value.Map) Key {
	key, _ := t.Def.Key.keyOf(item)
	return key
}

// Get returns the item, or nil.
func (t *Table) Get(key Key) value.Map { return t.trees[0].get(key) }

// Change is one write.
type Change struct {
	At      time.Time
	Key     Key
	Item    value.Map // nil: delete
	Service bool      // by TTL, not by a user: the stream says so
}

// Set makes a change, in the table, its indexes and its stream. A change to what is there already is none.
func (t *Table) Set(c Change) {
	old := t.Get(c.Key)
	if (old == nil) == (c.Item == nil) && (old == nil || value.Equal(old, c.Item)) {
		return
	}
	t.past.keep(t.trees, c.At)
	t.order(c.Key, old, c.Item)
	if t.stream != nil && t.stream.Enabled {
		t.stream.add(c, &t.Def.Key, old)
	}
}

// order puts item in old's place, in the table and whatever follows it; nil is none.
func (t *Table) order(key Key, old, item value.Map) {
	at := &entry{position: position{place: key}}
	if item == nil {
		t.trees[0].replace(at, nil)
	} else {
		t.trees[0].replace(nil, at.holding(item))
	}
	for i := range t.Def.Indexes {
		index := &t.Def.Indexes[i]
		out, in := index.stand(key, old), index.stand(key, item)
		if in != nil {
			in.holding(t.project(index, item))
		}
		t.trees[1+i].replace(out, in)
	}
	t.expiry.replace(key, old, item)
}

// Len returns how many items there are.
func (t *Table) Len() int { return t.trees[0].Len() }

// Bytes returns their size.
func (t *Table) Bytes() int { return t.trees[0].bytes }
