package table

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// fault breaks a table after each change, or the ranges that are asked of it.
type fault struct {
	change func(t *Table, c Change, old value.Map)
	read   func(r *Range)
}

// run lives the scenario on a table and on a model. It returns how they differ, or "".
func (s scenario) run(broken fault) string {
	table, m := New(s.Def), &model{def: s.Def, now: start}
	for i, p := range s.Steps {
		if diff := s.step(table, m, p, broken); diff != "" {
			return fmt.Sprintf("step %d, %s: %s", i, p.Do, diff)
		}
		if diff := differ(table, m); diff != "" {
			return fmt.Sprintf("after step %d, %s: %s", i, p.Do, diff)
		}
	}
	return ""
}

func (s scenario) step(table *Table, m *model, p step, broken fault) string {
	switch p.Do {
	case "put", "delete", "again":
		if p.Do == "again" && len(m.items) > 0 {
			p.Item = m.items[p.Limit%len(m.items)] // as it is
		}
		c := Change{At: m.now, Key: table.KeyOf(p.Item), Item: p.Item, Service: p.Service}
		if p.Do == "delete" {
			c.Item = nil
		}
		old := table.Get(c.Key)
		table.Set(c)
		m.set(p.Item, c.Item, p.Service)
		if broken.change != nil {
			broken.change(table, c, old)
		}
	case "sleep":
		m.now = m.now.Add(p.For)
		m.seen()
	case "past":
		table.KeepPast(p.For, m.now)
		m.keepPast(p.For)
	case "expire":
		table.ExpireBy(p.Text)
		m.expire = p.Text
	case "stream":
		table.EnableStream(p.Text, s.Shards, m.now)
		m.view, m.enabled, m.records = p.Text, true, nil
	case "disable", "split", "trim":
		stepStream(table, m, p)
	case "read":
		return s.read(table, m, p, broken)
	}
	return ""
}

func stepStream(table *Table, m *model, p step) {
	if table.Stream() == nil {
		return
	}
	switch p.Do {
	case "disable":
		table.Stream().Disable(m.now)
		m.enabled = false
	case "split":
		if len(table.Stream().Shards) < 32 {
			table.Stream().Split(m.now)
		}
	case "trim":
		before := m.now.Add(-p.For)
		table.Stream().Trim(before)
		m.records = slices.DeleteFunc(m.records, func(r record) bool { return r.at.Before(before) })
	}
}

// read compares a range of the present, or of the past where that is kept. It stops at the limit.
func (s scenario) read(table *Table, m *model, p step, broken fault) string {
	asOf, items := time.Time{}, m.items
	if m.keepFor > 0 {
		asOf = m.now.Add(-p.For)
		if asOf.Before(m.horizon) {
			asOf = m.horizon
		}
		items = m.at(asOf)
	}
	view := table.View(p.Index, asOf)
	if p.Range.After != nil {
		all := p.Range
		all.After = nil
		if got, want := view.Holds(all, p.Range.After),
			len(m.read(p.Index, all, []value.Map{p.Range.After})) == 1; got != want {
			return fmt.Sprintf("Holds: %v, want %v", got, want)
		}
	}
	want := texts(m.read(p.Index, p.Range, items))
	want = want[:min(p.Limit, len(want))]
	if broken.read != nil {
		broken.read(&p.Range)
	}
	got := []string{}
	for item := range view.Items(p.Range) {
		if len(got) == p.Limit {
			break
		}
		got = append(got, text(item))
	}
	return cmp.Diff(want, got)
}

// differ compares all that shows of the present.
func differ(table *Table, m *model) string {
	for _, index := range viewsOf(m.def) {
		want := m.read(index, Range{}, m.items)
		view := table.View(index, time.Time{})
		if view == nil {
			return "no view " + index
		}
		if diff := cmp.Diff(texts(want), texts(slices.Collect(view.Items(Range{})))); diff != "" {
			return index + diff
		}
		bytes := 0
		for _, item := range want {
			bytes += value.ItemSize(item)
		}
		if view.Len() != len(want) || view.Bytes() != bytes {
			return fmt.Sprintf("%s: %d items of %d bytes, want %d of %d", index, view.Len(), view.Bytes(), len(want),
				bytes)
		}
	}
	for _, item := range m.items {
		if got := text(table.Get(table.KeyOf(item))); got != text(item) {
			return fmt.Sprintf("Get: %s, want %s", got, text(item))
		}
	}
	got := []string{}
	for _, key := range table.Expired(m.now) {
		got = append(got, text(keysOnly(m.def.Key, table.Get(key))))
	}
	return cmp.Diff(m.expired(m.now), got) + differStream(table.Stream(), m)
}

func differStream(s *Stream, m *model) string {
	if s == nil {
		return ""
	}
	var got []Record
	for _, shard := range s.Shards {
		for from := uint64(0); ; {
			page := shard.Read(from, 2)
			if len(page) == 0 {
				break
			}
			for _, r := range page {
				outside := r.Sequence <= shard.First || shard.Last != 0 && r.Sequence > shard.Last
				if outside || r.Sequence < from || r.Sequence <= shard.Trimmed {
					return fmt.Sprintf("record %d, read from %d, in %+v", r.Sequence, from, shard)
				}
			}
			got = append(got, page...)
			from = page[len(page)-1].Sequence + 1
		}
	}
	slices.SortFunc(got, func(a, b Record) int { return int(a.Sequence) - int(b.Sequence) })
	records := []record{}
	for i, r := range got {
		if i > 0 && r.Sequence == got[i-1].Sequence {
			return fmt.Sprintf("record %d twice", r.Sequence)
		}
		records = append(records, record{r.At, r.Event, text(r.Keys), text(r.Old), text(r.New), r.Service})
	}
	return cmp.Diff(append([]record{}, m.records...), records, cmp.AllowUnexported(record{}))
}

func TestTableIsTheModel(t *testing.T) {
	generator := scenarios()
	rapid.Check(t, func(rt *rapid.T) {
		if diff := generator.Draw(rt, "scenario").run(fault{}); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// TestModelFindsFaults is the machine's negative control.
func TestModelFindsFaults(t *testing.T) {
	for name, broken := range map[string]fault{
		"an index keeps the entry of an item whose index key moved": {
			change: func(t *Table, c Change, old value.Map) {
				if e := t.Def.Indexes[0].stand(c.Key, old); e != nil {
					if _, ok := t.trees[1].Get(e); !ok {
						t.trees[1].replace(nil, e.holding(t.project(&t.Def.Indexes[0], old)))
					}
				}
			},
		},
		"an index misses what its projection holds": {change: func(t *Table, c Change, _ value.Map) {
			if e := t.Def.Indexes[0].stand(c.Key, c.Item); e != nil {
				t.trees[1].replace(nil, e.holding(t.Def.Key.attributes(c.Item)))
			}
		}},
		"bytes are not given back": {change: func(t *Table, c Change, old value.Map) {
			if c.Item == nil {
				t.trees[0].bytes += value.ItemSize(old)
			}
		}},
		"an expiry stays when it moved": {change: func(t *Table, c Change, old value.Map) {
			if c.Item != nil {
				t.expiry.replace(c.Key, nil, old)
			}
		}},
		"the past is the present": {change: func(t *Table, _ Change, _ value.Map) {
			for i := range t.past.versions {
				t.past.versions[i].trees = t.trees
			}
		}},
		"the past misses a version": {change: func(t *Table, _ Change, _ value.Map) {
			if n := len(t.past.versions); n > 1 {
				t.past.versions = t.past.versions[:n-1]
			}
		}},
		"the stream tells of a write that changed nothing": {change: func(t *Table, c Change, old value.Map) {
			if t.stream != nil && t.stream.Enabled && old != nil && text(old) == text(c.Item) {
				t.stream.add(c, &t.Def.Key, old)
			}
		}},
		"the stream takes TTL for a user": {change: func(t *Table, _ Change, _ value.Map) {
			if t.stream != nil {
				for _, shard := range t.stream.Shards {
					for i := range shard.records {
						shard.records[i].Service = false
					}
				}
			}
		}},
		"a bound is taken for inclusive": {read: func(r *Range) {
			if r.From != nil {
				r.From = &Bound{Value: r.From.Value}
			}
		}},
		"reverse starts at the end": {read: func(r *Range) {
			if r.Reverse {
				r.After = nil
			}
		}},
		"segments overlap": {read: func(r *Range) { r.Segment = 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			generator := scenarios()
			for seed := range 2000 {
				if generator.Example(seed).run(broken) != "" {
					return
				}
			}
			t.Error("2,000 scenarios, and none tells")
		})
	}
}
