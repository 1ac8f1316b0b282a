package table

import (
	"iter"
	"math/bits"
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// View is a table or an index at one time. One of the present is valid until the next change.
type View struct {
	tree  tree
	table *KeySchema
	index *KeySchema // nil: the view is of the table
}

// View returns the table's items, or an index's if index is not empty; nil if there is no such index. The
// items of an index are what it projects. asOf is when: the zero time is now, an earlier one needs KeepPast.
func (t *Table) View(index string, asOf time.Time) *View {
	trees := t.trees
	if !asOf.IsZero() {
		trees = t.past.at(asOf, trees)
	}
	if index == "" {
		return &View{tree: trees[0], table: &t.Def.Key}
	}
	i := slices.IndexFunc(t.Def.Indexes, func(d IndexDef) bool { return d.Name == index })
	if i < 0 {
		return nil
	}
	v := &View{tree: newTree(), table: &t.Def.Key, index: &t.Def.Indexes[i].Key}
	if 1+i < len(trees) { // the index was there then
		v.tree = trees[1+i]
	}
	return v
}

// Len returns how many items the view has.
func (v *View) Len() int { return v.tree.Len() }

// Bytes returns their size.
func (v *View) Bytes() int { return v.tree.bytes }

// Get returns an item of a table's view, or nil.
func (v *View) Get(key Key) value.Map { return v.tree.get(key) }

// Range is the part of a View to read, in which direction, and from where.
type Range struct {
	Hash              value.Value // nil: the whole view, a scan
	From, To          *Bound      // of the sort key, if there is a Hash; nil: unbounded
	After             value.Map   // ExclusiveStartKey, which need not exist; nil: the start
	Reverse           bool
	Segment, Segments int // of a parallel scan; 0 segments: not parallel
}

// Bound is an end of a range of sort keys.
type Bound struct {
	Value     value.Value
	Exclusive bool
}

// Prefix returns the bounds of the strings or binaries that begin with prefix.
func Prefix(prefix value.Value) (from, to *Bound) {
	// The range ends before the prefix with its last byte raised by one. A byte of 0xff cannot be raised, so the
	// byte before it is; if all are 0xff, the range has no end. UTF-8 has no 0xff.
	bound := func(text string) *Bound { return &Bound{Value: value.String(text)} }
	if prefix.Kind() == value.KindB {
		bound = func(text string) *Bound { return &Bound{Value: value.Binary(text)} }
	}
	text := []byte(ordered(prefix))
	from = bound(string(text))
	for len(text) > 0 && text[len(text)-1] == 0xff {
		text = text[:len(text)-1]
	}
	if len(text) == 0 {
		return from, nil
	}
	text[len(text)-1]++
	to = bound(string(text))
	to.Exclusive = true
	return from, to
}

// Items yields the range's items in key order. Of a view of the present, the table must not change meanwhile.
func (v *View) Items(r Range) iter.Seq[value.Map] {
	from, to := r.ends()
	if r.After != nil {
		after := v.position(r.After)
		if r.Reverse {
			if to == nil || after.compare(to) < 0 {
				to = &after
			}
		} else if after = after.next(); after.compare(&from) > 0 {
			from = after
		}
	}
	if r.Reverse {
		return v.descend(from, to)
	}
	return v.ascend(from, to)
}

// Holds reports whether an item with these key attributes, which need not exist, would be in the range,
// whatever its After.
func (v *View) Holds(r Range, keys value.Map) bool {
	from, to := r.ends()
	at := v.position(keys)
	return at.compare(&from) >= 0 && (to == nil || at.compare(to) < 0)
}

// ends returns the range's first position, and the first one after it; nil: there is none.
func (r *Range) ends() (from position, to *position) {
	if r.Hash == nil {
		if r.Segments == 0 {
			return from, nil
		}
		from.place.spread = segment(r.Segment, r.Segments)
		if r.Segment+1 < r.Segments {
			to = &position{place: Key{spread: segment(r.Segment+1, r.Segments)}}
		}
		return from, to
	}
	from.place = partition(ordered(r.Hash))
	to = &position{place: from.place}
	if r.From != nil {
		from.place.sort = ordered(r.From.Value)
		if r.From.Exclusive {
			from.place.sort += "\x00"
		}
	}
	switch {
	case r.To == nil:
		to.place.hash += "\x00"
	case r.To.Exclusive:
		to.place.sort = ordered(r.To.Value)
	default:
		to.place.sort = ordered(r.To.Value) + "\x00"
	}
	return from, to
}

// segment returns where the i-th of n equal parts of all partitions begins; i is less than n.
func segment(i, n int) uint64 {
	start, _ := bits.Div64(uint64(i), 0, uint64(n))
	return start
}

// position returns where an item with these key attributes stands or would stand.
func (v *View) position(keys value.Map) position {
	key, _ := v.table.keyOf(keys)
	if v.index == nil {
		return position{place: key}
	}
	place, _ := v.index.keyOf(keys)
	return position{place: place, of: key}
}

func (v *View) ascend(from position, to *position) iter.Seq[value.Map] {
	return func(yield func(value.Map) bool) {
		v.tree.Ascend(&entry{position: from}, func(e *entry) bool {
			return (to == nil || e.compare(to) < 0) && yield(e.item)
		})
	}
}

func (v *View) descend(from position, to *position) iter.Seq[value.Map] {
	return func(yield func(value.Map) bool) {
		visit := func(e *entry) bool { return e.compare(&from) >= 0 && yield(e.item) }
		if to == nil {
			v.tree.Reverse(visit)
			return
		}
		v.tree.Descend(&entry{position: *to}, func(e *entry) bool { // from *to on, which is not in the range
			return e.position == *to || visit(e)
		})
	}
}
