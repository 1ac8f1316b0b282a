package table

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

var orders = Def{
	Name: "orders",
	Key:  KeySchema{Attribute{"user", value.KindS}, Attribute{"at", value.KindN}},
	Indexes: []IndexDef{
		{
			Name: "state", Key: KeySchema{Attribute{"state", value.KindS}, Attribute{"at", value.KindN}},
			Projection: Projection{Type: "KEYS_ONLY"},
		},
		{
			Name: "price", Key: KeySchema{Hash: Attribute{"price", value.KindN}},
			Projection: Projection{Type: "INCLUDE", NonKey: []string{"note", "none"}},
		},
		{
			Name: "weight", Key: KeySchema{Attribute{"user", value.KindS}, Attribute{"weight", value.KindN}},
			Local:      true,
			Projection: Projection{Type: "ALL"},
		},
	},
}

func order(user string, at int) value.Map {
	return value.Map{
		"user": value.String(user), "at": value.NumberOf(int64(at)), "state": value.String("new"),
		"price": value.NumberOf(int64(at % 10)), "note": value.String("please"), "more": value.Bool(true),
	}
}

func put(t *Table, item value.Map) { t.Set(Change{At: start, Key: t.KeyOf(item), Item: item}) }

func TestProject(t *testing.T) {
	table, item := New(orders), order("ann", 17)
	for i, want := range []string{
		`{"at":{"N":"17"},"state":{"S":"new"},"user":{"S":"ann"}}`,
		`{"at":{"N":"17"},"note":{"S":"please"},"price":{"N":"7"},"user":{"S":"ann"}}`,
		``, // no weight
	} {
		got, ok := table.Project(&orders.Indexes[i], item)
		if text(got) != want || ok != (want != "") {
			t.Errorf("%s: %s %v, want %s", orders.Indexes[i].Name, text(got), ok, want)
		}
	}
	item["weight"] = value.NumberOf(3)
	if got, ok := table.Project(&orders.Indexes[2], item); !ok || text(got) != text(item) {
		t.Errorf("ALL: %s %v", text(got), ok)
	}
	item["weight"] = value.String("3")
	if got, ok := table.Project(&orders.Indexes[2], item); ok {
		t.Errorf("an index key of another type: %s", text(got))
	}
	if got, ok := table.Project(&orders.Indexes[0], nil); ok {
		t.Errorf("no item: %s", text(got))
	}
}

func TestViewOfItems(t *testing.T) {
	table, item := New(orders), order("ann", 17)
	put(table, item)
	view := table.View("", time.Time{})
	if got := view.Get(table.KeyOf(item)); text(got) != text(item) {
		t.Errorf("Get: %s", text(got))
	}
	if got := view.Get(table.KeyOf(order("ann", 18))); got != nil {
		t.Errorf("Get of what is not there: %s", text(got))
	}
	if table.Len() != 1 || table.Bytes() != value.ItemSize(item) {
		t.Errorf("%d items of %d bytes", table.Len(), table.Bytes())
	}
	if table.View("nix", time.Time{}) != nil {
		t.Error("an index that is not defined has a view")
	}
	table.Set(Change{At: start, Key: table.KeyOf(item)})
	if table.Len() != 0 || table.Bytes() != 0 {
		t.Errorf("when empty, %d items of %d bytes", table.Len(), table.Bytes())
	}
}

// TestSegments says that any number of segments is the whole scan, in order, and that each has its share.
func TestSegments(t *testing.T) {
	table := New(orders)
	for i := range 2000 {
		put(table, order(fmt.Sprint("user", i), i))
	}
	for _, index := range []string{"", "state"} {
		view := table.View(index, time.Time{})
		whole := texts(slices.Collect(view.Items(Range{})))
		for _, n := range []int{1, 2, 3, 7, 1000, 1_000_000} {
			var parts []string
			for segment := range min(n, 1000) { // the rest of a million: one in two thousand has an item
				part := texts(slices.Collect(view.Items(Range{Segment: segment, Segments: n})))
				if index == "" && n < 10 && len(part) < 2000/n*3/4 {
					t.Errorf("segment %d of %d has %d items", segment, n, len(part))
				}
				parts = append(parts, part...)
			}
			if n <= 1000 && !slices.Equal(parts, whole) || n > 1000 && !slices.Equal(parts, whole[:len(parts)]) {
				t.Errorf("%q: %d segments differ from the scan", index, n)
			}
		}
	}
}

func TestPrefix(t *testing.T) {
	for _, test := range []struct {
		prefix value.Value
		to     *Bound
	}{
		{value.String("ab"), &Bound{value.String("ac"), true}},
		{value.String("a\x7f"), &Bound{value.String("a\x80"), true}}, // no text, but an end
		{value.String(""), nil},
		{value.Binary("a\xff\xff"), &Bound{value.Binary("b"), true}},
		{value.Binary("\xff"), nil},
	} {
		from, to := Prefix(test.prefix)
		if diff := cmp.Diff(&Bound{Value: test.prefix}, from) + cmp.Diff(test.to, to); diff != "" {
			t.Errorf("%q: %s", test.prefix, diff)
		}
	}
}

// TestPrefixIsHasPrefix has a negative control: a successor that forgets to carry from 0xff.
func TestPrefixIsHasPrefix(t *testing.T) {
	wrong := func(bounds func(value.Value) (from, to *Bound), prefix, text string) bool {
		from, to := bounds(value.Binary(prefix))
		in := !outside(value.Binary(text), from, -1) && !outside(value.Binary(text), to, 1)
		return in != strings.HasPrefix(text, prefix)
	}
	texts := rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0xfe, 0xff}), 0, 4).Draw(t, "bytes"))
	})
	rapid.Check(t, func(t *rapid.T) {
		if prefix, text := texts.Draw(t, "prefix"), texts.Draw(t, "text"); wrong(Prefix, prefix, text) {
			t.Fatalf("%q %q", prefix, text)
		}
	})
	careless := func(prefix value.Value) (from, to *Bound) {
		b := []byte(ordered(prefix))
		b[len(b)-1]++
		return &Bound{Value: prefix}, &Bound{value.Binary(b), true}
	}
	if wrong(careless, "\xfe", "\xfe\x00") || !wrong(careless, "\xff", "\xff\x00") {
		t.Error("the check does not see a missing carry")
	}
}
