package expr

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
	"pgregory.net/rapid"
)

// An independent executor of updates. It works on one deep copy, path by path: what is there is replaced,
// then lists are appended to, then elements are removed from the last to the first. The tree of the package
// does all of it in one walk.

// doc is a document of Go's own types: int, string, members, []any and map[string]any.
type doc = map[string]any

type members []string

// change is an action as the oracle has it; its target's steps are strings and ints.
type change struct {
	clause string
	target []any
	form   string // of a SET: what becomes of source and literal
	source []any
	lit    any
}

func copied(v any) any {
	switch v := v.(type) {
	case doc:
		result := doc{}
		for name, part := range v {
			result[name] = copied(part)
		}
		return result
	case []any:
		result := make([]any, len(v))
		for i, part := range v {
			result[i] = copied(part)
		}
		return result
	}
	return v
}

func lookup(v any, path []any) any {
	for _, s := range path {
		switch s := s.(type) {
		case string:
			m, _ := v.(doc)
			v = m[s]
		case int:
			l, _ := v.([]any)
			if v = nil; s < len(l) {
				v = l[s]
			}
		}
	}
	return v
}

// result returns what the change makes of what is at its target in item, and whether it can.
func (c change) result(item doc) (v any, ok bool) {
	old := lookup(item, c.target)
	source := lookup(item, c.source)
	switch c.clause + c.form {
	case "REMOVE":
		return nil, true
	case "SET":
		return c.lit, true
	case "SETpath":
		return source, source != nil
	case "SETif_not_exists":
		if source == nil {
			source = c.lit
		}
		return source, true
	case "SET+", "SET-":
		n, ok := source.(int)
		m, ok2 := c.lit.(int)
		if c.form == "-" {
			m = -m
		}
		return n + m, ok && ok2
	case "SETlist_append":
		l, ok := source.([]any)
		m, ok2 := c.lit.([]any)
		return slices.Concat(l, m), ok && ok2
	}
	set, isSet := c.lit.(members)
	was, wasSet := old.(members)
	switch {
	case c.clause == "ADD" && old == nil:
		return c.lit, true
	case c.clause == "ADD" && isSet:
		both := slices.Concat(was, set)
		slices.Sort(both)
		return slices.Compact(both), wasSet
	case c.clause == "ADD":
		n, ok := old.(int)
		return n + c.lit.(int), ok
	case old == nil:
		return nil, true
	}
	rest := slices.DeleteFunc(slices.Clone(was), func(m string) bool { return slices.Contains(set, m) })
	if len(rest) == 0 {
		return nil, wasSet
	}
	return rest, wasSet
}

// Mistakes that an executor could make.
const (
	none = iota
	seesNew
	shifts
	appendsInOrderOfText
)

// execute returns what changes make of item, or false if they cannot.
func execute(item doc, changes []change, mistake int) (doc, bool) {
	after := copied(item).(doc)
	type write struct {
		target []any
		v      any
	}
	var appends, removes []write
	for _, c := range changes {
		if !slices.Contains([]string{"map", "list"}, kindAt(item, c.target)) {
			return nil, false
		}
		from := item
		if mistake == seesNew {
			from = after
		}
		v, ok := c.result(from)
		if !ok {
			return nil, false
		}
		w := write{c.target, copied(v)}
		index, isIndex := c.target[len(c.target)-1].(int)
		switch {
		case v == nil && lookup(item, c.target) == nil:
			// was not there: not even if something is appended there now
		case v == nil:
			removes = append(removes, w)
		case isIndex && index >= len(lookup(item, c.target[:len(c.target)-1]).([]any)):
			appends = append(appends, w)
		default:
			assign(after, c.target, w.v)
		}
	}
	if mistake != appendsInOrderOfText {
		slices.SortStableFunc(appends, func(a, b write) int { return compareLast(a.target, b.target) })
	}
	for _, w := range appends {
		parent := w.target[:len(w.target)-1]
		assign(after, parent, append(lookup(after, parent).([]any), w.v))
	}
	slices.SortStableFunc(removes, func(a, b write) int { // the deepest and last first
		return cmp.Or(len(b.target)-len(a.target), -compareLast(a.target, b.target))
	})
	if mistake == shifts {
		slices.Reverse(removes)
	}
	for _, w := range removes {
		take(after, w.target)
	}
	return after, true
}

// kindAt returns "map" or "list" if the parent of path is one and path's last step fits it.
func kindAt(item doc, path []any) string {
	parent := lookup(item, path[:len(path)-1])
	switch path[len(path)-1].(type) {
	case string:
		if _, ok := parent.(doc); ok {
			return "map"
		}
	case int:
		if _, ok := parent.([]any); ok {
			return "list"
		}
	}
	return ""
}

func compareLast(a, b []any) int {
	i, _ := a[len(a)-1].(int)
	j, _ := b[len(b)-1].(int)
	return cmp.Compare(i, j)
}

func assign(item doc, path []any, v any) {
	switch last := path[len(path)-1].(type) {
	case string:
		lookup(item, path[:len(path)-1]).(doc)[last] = v
	case int:
		lookup(item, path[:len(path)-1]).([]any)[last] = v
	}
}

func take(item doc, path []any) {
	parent := path[:len(path)-1]
	switch last := path[len(path)-1].(type) {
	case string:
		delete(lookup(item, parent).(doc), last)
	case int:
		if l := lookup(item, parent).([]any); last < len(l) {
			assign(item, parent, slices.Delete(l, last, last+1))
		}
	}
}

// clashing reports whether one of two targets is a part of the other, or they take the same thing for a map
// and a list.
func clashing(changes []change) bool {
	for i, c := range changes {
		for _, d := range changes[:i] {
			n := 0
			for n < min(len(c.target), len(d.target)) && c.target[n] == d.target[n] {
				n++
			}
			if n == len(c.target) || n == len(d.target) || fmt.Sprintf("%T", c.target[n]) != fmt.Sprintf("%T",
				d.target[n]) {
				return true
			}
		}
	}
	return false
}

// write returns the update expression of changes, and its values.
func write(changes []change) (string, value.Map) {
	values := value.Map{}
	clauses := map[string][]string{}
	var order []string
	for i, c := range changes {
		lit := fmt.Sprintf(":v%d", i)
		operand := map[string]string{
			"": lit, "path": text(c.source), "+": text(c.source) + " + " + lit, "-": text(c.source) + "-" + lit,
			"if_not_exists": "if_not_exists(" + text(c.source) + ", " + lit + ")",
			"list_append":   "list_append(" + text(c.source) + ", " + lit + ")",
		}[c.form]
		written := text(c.target)
		switch c.clause {
		case "SET":
			written += " = " + operand
		case "ADD", "DELETE":
			written += " " + lit
		}
		if strings.Contains(written, lit) {
			values[lit] = docValue(c.lit)
		}
		if clauses[c.clause] == nil {
			order = append(order, c.clause)
		}
		clauses[c.clause] = append(clauses[c.clause], written)
	}
	var b strings.Builder
	for _, clause := range order {
		fmt.Fprintf(&b, "%s %s ", clause, strings.Join(clauses[clause], ", "))
	}
	if len(values) == 0 {
		values = nil
	}
	return b.String(), values
}

func text(path []any) string {
	var b strings.Builder
	for i, s := range path {
		switch s := s.(type) {
		case string:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s)
		case int:
			fmt.Fprintf(&b, "[%d]", s)
		}
	}
	return b.String()
}

func docValue(v any) value.Value {
	switch v := v.(type) {
	case int:
		return number(int64(v))
	case members:
		return value.Strings(v)
	case []any:
		l := value.List{}
		for _, part := range v {
			l = append(l, docValue(part))
		}
		return l
	case doc:
		m := value.Map{}
		for name, part := range v {
			m[name] = docValue(part)
		}
		return m
	}
	return value.String(v.(string))
}

var (
	genMembers = rapid.Map(rapid.SampledFrom([]string{"p", "q", "pq", "pqr"}), func(s string) any {
		return members(strings.Split(s, ""))
	})
	genFlat = rapid.OneOf(rapid.Map(rapid.IntRange(0, 9), func(i int) any { return i }), genMembers,
		rapid.SampledFrom([]any{"s", "t"}))
	genDoc = rapid.Custom(func(t *rapid.T) doc {
		item := doc{}
		for _, name := range []string{"a", "b"} {
			switch rapid.SampledFrom([]string{"flat", "map", "list", "list", "none"}).Draw(t, name) {
			case "flat":
				item[name] = genFlat.Draw(t, "flat")
			case "map":
				item[name] = rapid.MapOfN(rapid.SampledFrom([]string{"x", "y"}), genFlat, 0, 2).Draw(t, "map")
			case "list":
				item[name] = rapid.SliceOfN(rapid.OneOf(genFlat, rapid.Map(genFlat, func(v any) any {
					return doc{
						"x": v,
					}
				})), 0, 4).Draw(t, "list")
			}
		}
		return item
	})
	genSteps = rapid.SampledFrom([][]any{{"a"}, {"b"}, {"c"}, {"a", "x"}, {"a", "y"}, {"a", 0}, {"a", 1},
		{"a", 2}, {"a", 5}, {"a", 6},
		{"a", 9}, {"b", 0}, {"b", 1}, {"b", 3}, {"b", 7}, {"a", 1, "x"}, {"a", 0, "x"}, {"b", 2, "x"}, {"c", "x"},
		{"b", "y"}})
	genChange = rapid.Custom(func(t *rapid.T) change {
		c := change{clause: rapid.SampledFrom([]string{"SET", "SET", "SET", "REMOVE", "REMOVE", "ADD", "DELETE"}).
			Draw(t, "clause")}
		c.target = genSteps.Draw(t, "target")
		switch c.clause {
		case "SET":
			c.form = rapid.SampledFrom([]string{"", "", "path", "+", "-", "if_not_exists", "list_append"}).Draw(t,
				"form")
			c.source = genSteps.Draw(t, "source")
			switch c.form {
			case "+", "-":
				c.lit = rapid.IntRange(0, 9).Draw(t, "n")
			case "list_append":
				c.lit = rapid.SliceOfN(genFlat, 0, 2).Draw(t, "l")
			default:
				c.lit = genFlat.Draw(t, "v")
			}
		case "ADD":
			c.lit = rapid.OneOf(genMembers, rapid.Map(rapid.IntRange(0, 9), func(i int) any { return i })).Draw(t, "v")
		case "DELETE":
			c.lit = genMembers.Draw(t, "v")
		}
		return c
	})
	genChanges = rapid.SliceOfN(genChange, 1, 4)
)

// update reads and applies changes; ok is false if DynamoDB's rules are against it.
func update(t rapid.TB, item doc, changes []change) (after string, ok bool) {
	t.Helper()
	expression, values := write(changes)
	s, err := NewScope(nil, values)
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.Update(expression)
	if clashing(changes) != (err != nil) {
		t.Fatalf("%s: %v", expression, err)
	}
	if err != nil {
		return "", false
	}
	if err := s.Unused(); err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	old := docValue(item).(value.Map)
	before := string(value.AppendMap(nil, old))
	result, err := u.Apply(old)
	if now := string(value.AppendMap(nil, old)); now != before {
		t.Fatalf("%s: the item changed from %s to %s", expression, before, now)
	}
	return string(value.AppendMap(nil, result)), err == nil
}

func TestUpdatesAgreeWithOracle(t *testing.T) {
	drawn, applied := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for range 20 { // several a run: many are refused
			drawn++
			item, changes := genDoc.Draw(t, "item"), genChanges.Draw(t, "changes")
			got, ok := update(t, item, changes)
			if clashing(changes) {
				continue
			}
			want, wantOK := execute(item, changes, none)
			if ok != wantOK {
				t.Fatalf("applied: %v, want %v", ok, wantOK)
			}
			if !ok {
				continue
			}
			applied++
			if want := string(value.AppendMap(nil, docValue(want).(value.Map))); got != want {
				t.Fatalf(" got %s\nwant %s", got, want)
			}
		}
	})
	if applied*20 < drawn {
		t.Errorf("only %d of %d updates were applied", applied, drawn)
	}
}

func TestUpdateOracleSeesMistakes(t *testing.T) {
	for _, mistake := range []int{seesNew, shifts, appendsInOrderOfText} {
		seen := false
		for seed := 0; seed < 20000 && !seen; seed++ {
			item, changes := genDoc.Example(seed), genChanges.Example(seed+1)
			got, ok := update(t, item, changes)
			if !ok {
				continue
			}
			wrong, wrongOK := execute(item, changes, mistake)
			seen = !wrongOK || got != string(value.AppendMap(nil, docValue(wrong).(value.Map)))
		}
		if !seen {
			t.Errorf("mistake %d: not seen", mistake)
		}
	}
}
