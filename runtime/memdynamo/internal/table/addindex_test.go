package table

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// An index that comes late is as one that was there from the start, and one that goes leaves the others as
// they are.
func TestIndexesComeAndGo(t *testing.T) {
	t.Parallel()
	early, late := New(orders), New(orders)
	for i := range orders.Indexes {
		late.DropIndex(orders.Indexes[i].Name)
	}
	random := rand.New(rand.NewPCG(1, 0))
	change := func() {
		for range 500 {
			c := Change{At: start, Item: order(string(rune('a'+random.IntN(3))), random.IntN(100))}
			if c.Key = early.KeyOf(c.Item); random.IntN(3) == 0 {
				c.Item = nil
			}
			early.Set(c)
			late.Set(c)
		}
	}
	change()
	for _, index := range slices.Backward(orders.Indexes) {
		late.AddIndex(index, start)
	}
	compare := func() {
		t.Helper()
		for _, index := range late.Def.Indexes {
			want, got := state(early, index.Name, time.Time{}), state(late, index.Name, time.Time{})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("index %s (-early +late):\n%s", index.Name, diff)
			}
			if want, got := early.View(index.Name, time.Time{}), late.View(index.Name, time.Time{}); want.Bytes() !=
				got.Bytes() {
				t.Errorf("index %s: %d bytes early, %d late", index.Name, want.Bytes(), got.Bytes())
			}
		}
	}
	compare()
	if n := len(late.Def.Indexes); n != len(orders.Indexes) || n == 0 {
		t.Fatalf("%d indexes", n)
	}
	late.DropIndex(late.Def.Indexes[0].Name)
	change()
	compare()
	if late.View(orders.Indexes[len(orders.Indexes)-1].Name, time.Time{}) != nil {
		t.Error("the index that went is there")
	}
}

// A version of the past has the trees of the indexes that it knew, in their places, whatever comes and goes
// after it.
func TestIndexesInThePast(t *testing.T) {
	t.Parallel()
	index := func(attribute string) IndexDef {
		key := KeySchema{Hash: Attribute{attribute, value.KindS}}
		return IndexDef{Name: attribute, Key: key, Projection: Projection{Type: "ALL"}}
	}
	table := New(Def{Key: KeySchema{Hash: Attribute{"pk", value.KindS}}, Indexes: []IndexDef{index("a"),
		index("b")}})
	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	table.KeepPast(time.Hour, at(0))
	put := func(second int, pk string) {
		item := value.Map{"pk": value.String(pk)}
		for _, name := range []string{"a", "b", "c"} {
			item[name] = value.String(pk)
		}
		table.Set(Change{At: at(second), Key: table.KeyOf(item), Item: item})
	}
	put(1, "x")
	table.AddIndex(index("c"), at(2))
	put(3, "y")
	table.DropIndex("a")
	put(4, "z")
	for second, want := range []map[string]int{{"": 0, "b": 0, "c": 0}, {"": 1, "b": 1, "c": 0},
		{"": 1, "b": 1, "c": 1},
		{"": 2, "b": 2, "c": 2}, {"": 3, "b": 3, "c": 3}} {
		for name, n := range want {
			if got := table.View(name, at(second)).Len(); got != n {
				t.Errorf("after %d s, index %q has %d items, want %d", second, name, got, n)
			}
		}
	}
	if table.View("a", at(1)) != nil {
		t.Error("an index that went has a past")
	}
}

// An item is in an index if its attributes are fit for its key.
func TestUnfitForAnIndex(t *testing.T) {
	t.Parallel()
	index := IndexDef{Name: "i", Key: KeySchema{Attribute{"h", value.KindS}, Attribute{"r", value.KindS}},
		Projection: Projection{Type: "ALL"}}
	table := New(Def{Key: KeySchema{Hash: Attribute{"pk", value.KindS}}, Indexes: []IndexDef{index}})
	long := func(n int) value.Value { return value.String(strings.Repeat("x", n)) }
	for _, c := range []struct {
		h, r value.Value
		in   bool
	}{
		{long(1), long(1), true}, {long(MaxHashSize), long(MaxSortSize), true},
		{long(0), long(1), false}, {long(1), long(0), false},
		{long(MaxHashSize + 1), long(1), false}, {long(1), long(MaxSortSize + 1), false},
		{value.Binary("x"), long(1), false},
	} {
		if _, in := table.Project(&index, value.Map{"pk": long(1), "h": c.h, "r": c.r}); in != c.in {
			t.Errorf("h of %d bytes and r of %d: in the index %v, want %v", value.Size(c.h), value.Size(c.r), in, c.in)
		}
	}
}
