package table

import (
	"github.com/tidwall/btree"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// position is where an entry stands: by the key of its table or index and then, as an index's keys are not
// unique, by the primary key. In a table there is only the former.
type position struct{ place, of Key }

func (p *position) compare(other *position) int {
	if order := p.place.compare(&other.place); order != 0 {
		return order
	}
	return p.of.compare(&other.of)
}

// next returns the first position after p.
func (p position) next() position {
	if p.of == (Key{}) {
		p.place.sort += "\x00"
	} else {
		p.of.sort += "\x00"
	}
	return p
}

// entry is an item in a table, or what an index holds of it.
type entry struct {
	position
	item value.Map
	size int
}

// holding sets what e holds, and returns e.
func (e *entry) holding(item value.Map) *entry {
	e.item, e.size = item, value.ItemSize(item)
	return e
}

// tree is entries in order. No path hints: the keys are hashed, so neighbours in time are none in the tree.
type tree struct {
	*btree.BTreeG[*entry]
	bytes int
}

func newTree() tree {
	less := func(a, b *entry) bool { return a.compare(&b.position) < 0 }
	return tree{BTreeG: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})}
}

// get returns the item that stands at key, in a table's tree.
func (t *tree) get(key Key) value.Map {
	if found, ok := t.Get(&entry{position: position{place: key}}); ok {
		return found.item
	}
	return nil
}

// replace takes an entry out, of which only the position counts, and puts another in; nil is none.
func (t *tree) replace(out, in *entry) {
	if out != nil && (in == nil || out.position != in.position) {
		if replaced, ok := t.Delete(out); ok {
			t.bytes -= replaced.size
		}
	}
	if in != nil {
		if replaced, ok := t.Set(in); ok {
			t.bytes -= replaced.size
		}
		t.bytes += in.size
	}
}

// copy returns the tree as it is now, whatever is done to t later. It shares all nodes, and t copies a node
// before it first changes it. BTreeG's Copy gives both trees new identities, and a tree writes only to nodes
// of its own identity. Entries are never changed but replaced.
func (t *tree) copy() tree { return tree{t.Copy(), t.bytes} }
