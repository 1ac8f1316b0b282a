package expr

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// seed gives f the recorded texts of a file of testdata.
func seed(f *testing.F, file string) {
	f.Helper()
	lines, err := os.ReadFile("testdata/" + file)
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(lines)) {
		quoted, _, _ := strings.Cut(line, "\t")
		text, err := strconv.Unquote(quoted)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
}

// unharmed errs if use changed the item, and lets panics through.
func unharmed(t *testing.T, item value.Map, use func()) {
	t.Helper()
	before := string(value.AppendMap(nil, item))
	use()
	if after := string(value.AppendMap(nil, item)); after != before {
		t.Errorf("the item changed:\n got %s\nwant %s", after, before)
	}
}

func FuzzCondition(f *testing.F) {
	seed(f, "condition.txt")
	r := readRequest(f)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := r.scope(t).Condition(ConditionExpression, text)
		if err != nil {
			invalid(t, err)
			return
		}
		unharmed(t, r.item, func() {
			for _, item := range []value.Map{nil, r.item} {
				if holds, again := c.Holds(item), c.Holds(item); holds != again {
					t.Errorf("%v, then %v", holds, again)
				}
			}
		})
	})
}

func FuzzUpdate(f *testing.F) {
	seed(f, "update.txt")
	r := readRequest(f)
	f.Fuzz(func(t *testing.T, text string) {
		u, err := r.scope(t).Update(text)
		if err != nil {
			invalid(t, err)
			return
		}
		changes := u.Attributes()
		unharmed(t, r.item, func() {
			after, err := u.Apply(r.item)
			if err != nil {
				invalid(t, err)
				return
			}
			for name, v := range r.item { // what the update does not name stays
				if w := after[name]; !has(changes, name, strings.Compare) && (w == nil || !value.Equal(v, w)) {
					t.Errorf("%s is %v, was %v", name, w, v)
				}
			}
			u.Updated(after)
		})
	})
}

func FuzzProjection(f *testing.F) {
	seed(f, "projection.txt")
	r := readRequest(f)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := r.scope(t).Projection(text)
		if err != nil {
			invalid(t, err)
			return
		}
		unharmed(t, r.item, func() {
			for name := range p.Of(r.item) {
				if r.item[name] == nil || !has(p.Attributes(), name, strings.Compare) {
					t.Errorf("%s is projected from nothing", name)
				}
			}
		})
	})
}

func FuzzKeyCondition(f *testing.F) {
	seed(f, "condition.txt")
	for _, text := range []string{"h = :s AND r BETWEEN :n AND :m", "begins_with(r, :s) AND :s = h", "h = :s"} {
		f.Add(text)
	}
	r := readRequest(f)
	f.Fuzz(func(t *testing.T, text string) {
		e, err := r.scope(t).KeyCondition(text)
		if err != nil {
			invalid(t, err)
			return
		}
		for _, sort := range []string{"", "r"} {
			k, err := e.For("h", sort)
			if err != nil {
				invalid(t, err)
				continue
			}
			if k.Hash == nil || (k.Op == All) != (k.Sort == nil) || (k.Op == Between) != (k.End != nil) {
				t.Errorf("%+v", k)
			}
		}
	})
}
