package table

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// model is a table as simple as it can be: items in a slice, sorted and filtered whenever one looks. Of the
// code under test it takes only the partitions' order.
type model struct {
	def     Def
	items   []value.Map
	now     time.Time
	history []moment
	keepFor time.Duration
	horizon time.Time // the past is known from here on
	expire  string
	records []record
	enabled bool
	view    string
}

type moment struct {
	at    time.Time
	items []value.Map
}

// record is what the stream should tell of a change.
type record struct {
	at                         time.Time
	event, keys, before, after string
	service                    bool
}

func text(m value.Map) string {
	if m == nil {
		return ""
	}
	return string(value.AppendMap(nil, m))
}

func texts(items []value.Map) []string {
	out := []string{}
	for _, item := range items {
		out = append(out, text(item))
	}
	return out
}

func keysOnly(s KeySchema, item value.Map) value.Map {
	keys := value.Map{}
	for _, a := range []Attribute{s.Hash, s.Sort} {
		if v, ok := item[a.Name]; ok && a.Name != "" {
			keys[a.Name] = v
		}
	}
	return keys
}

func (m *model) find(keys value.Map) int {
	return slices.IndexFunc(m.items, func(item value.Map) bool {
		return value.Equal(keysOnly(m.def.Key, item), keysOnly(m.def.Key, keys))
	})
}

// set is Table's Set.
func (m *model) set(keys, item value.Map, service bool) {
	var old value.Map
	i := m.find(keys)
	if i >= 0 {
		old = m.items[i]
	}
	if text(old) == text(item) {
		return
	}
	m.items = slices.Clone(m.items)
	r := record{at: m.now, event: "MODIFY", keys: text(keysOnly(m.def.Key, keys)), service: service}
	switch {
	case i < 0:
		m.items = append(m.items, item)
		r.event = "INSERT"
	case item == nil:
		m.items = slices.Delete(m.items, i, i+1)
		r.event = "REMOVE"
	default:
		m.items[i] = item
	}
	m.history = append(m.history, moment{m.now, m.items})
	if strings.Contains(m.view, "OLD") {
		r.before = text(old)
	}
	if strings.Contains(m.view, "NEW") {
		r.after = text(item)
	}
	if m.enabled {
		m.records = append(m.records, r)
	}
}

func (m *model) keepPast(d time.Duration) {
	if m.keepFor == 0 {
		m.horizon = m.now
	}
	m.keepFor = d
	m.seen()
}

// seen moves the horizon to where now puts it.
func (m *model) seen() {
	if h := m.now.Add(-m.keepFor); h.After(m.horizon) {
		m.horizon = h
	}
}

func (m *model) at(asOf time.Time) []value.Map {
	var items []value.Map
	for _, h := range m.history {
		if !h.at.After(asOf) {
			items = h.items
		}
	}
	return items
}

// schema returns the key of a table's or index's view.
func (m *model) schema(index string) KeySchema {
	for _, d := range m.def.Indexes {
		if d.Name == index {
			return d.Key
		}
	}
	return m.def.Key
}

// all returns a view's items, unprojected, in order.
func (m *model) all(index string, items []value.Map) []value.Map {
	var in []value.Map
	s := m.schema(index)
	for _, item := range items {
		keys := keysOnly(s, item)
		if v, ok := keys[s.Hash.Name]; !ok || v.Kind() != s.Hash.Kind {
			continue
		}
		if v, ok := keys[s.Sort.Name]; s.Sort.Name != "" && (!ok || v.Kind() != s.Sort.Kind) {
			continue
		}
		in = append(in, item)
	}
	slices.SortFunc(in, m.order(index))
	return in
}

// order returns how a view's items are ordered.
func (m *model) order(index string) func(a, b value.Map) int {
	compare := func(s KeySchema, a, b value.Map) int {
		order := cmp.Compare(spread(ordered(a[s.Hash.Name])), spread(ordered(b[s.Hash.Name])))
		if order == 0 && s.Sort.Name != "" {
			order, _ = value.Compare(a[s.Sort.Name], b[s.Sort.Name])
		}
		return order
	}
	return func(a, b value.Map) int {
		return cmp.Or(compare(m.schema(index), a, b), compare(m.def.Key, a, b))
	}
}

// project returns what a view holds of an item that is in it.
func (m *model) project(index string, item value.Map) value.Map {
	for _, d := range m.def.Indexes {
		if d.Name != index || d.Projection.Type == "ALL" {
			continue
		}
		out := value.Map{}
		for name, v := range item {
			of := func(s KeySchema) bool { return name == s.Hash.Name || name == s.Sort.Name }
			if of(m.def.Key) || of(d.Key) || slices.Contains(d.Projection.NonKey, name) {
				out[name] = v
			}
		}
		return out
	}
	return item
}

// read returns what a range of a view holds.
func (m *model) read(index string, r Range, items []value.Map) []value.Map {
	s := m.schema(index)
	var out []value.Map
	for _, item := range m.all(index, items) {
		hash, sort := item[s.Hash.Name], item[s.Sort.Name]
		if r.Hash != nil && !value.Equal(hash, r.Hash) {
			continue
		}
		if r.Hash == nil && r.Segments > 0 {
			if segment, _ := bits.Mul64(spread(ordered(hash)), uint64(r.Segments)); segment != uint64(r.Segment) {
				continue
			}
		}
		if r.Hash != nil && (outside(sort, r.From, -1) || outside(sort, r.To, 1)) {
			continue
		}
		if r.After != nil {
			order := m.order(index)(item, r.After)
			if order == 0 || (order < 0) != r.Reverse {
				continue
			}
		}
		out = append(out, m.project(index, item))
	}
	if r.Reverse {
		slices.Reverse(out)
	}
	return out
}

// outside reports whether v is on that side of the bound.
func outside(v value.Value, b *Bound, side int) bool {
	if b == nil {
		return false
	}
	order, _ := value.Compare(v, b.Value)
	return order == side || order == 0 && b.Exclusive
}

// expired returns the keys of the items that expired.
func (m *model) expired(before time.Time) []string {
	at := func(item value.Map) (value.Number, bool) {
		n, ok := item[m.expire].(value.Number)
		return n, ok
	}
	type due struct {
		at   value.Number
		item value.Map
	}
	var found []due
	for _, item := range m.items {
		n, ok := at(item)
		if s, err := strconv.ParseInt(n.String(), 10, 64); !ok || err != nil || !time.Unix(s, 0).Before(before) ||
			time.Unix(s, 0).Before(before.AddDate(-5, 0, 0)) {
			continue
		}
		found = append(found, due{n, item})
	}
	slices.SortFunc(found, func(a, b due) int { return cmp.Or(a.at.Cmp(b.at), m.order("")(a.item, b.item)) })
	keys := []string{}
	for _, f := range found {
		keys = append(keys, text(keysOnly(m.def.Key, f.item)))
	}
	return keys
}
