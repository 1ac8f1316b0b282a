package expr

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
	"pgregory.net/rapid"
)

// An independent evaluator of conditions: a tree of its own, values of Go's own types, and no knowledge of
// how texts are read. It prints conditions with no more parentheses than precedence needs, in any case and
// spacing.

// formula is a condition as the oracle has it.
type formula struct {
	op   string // AND, OR, NOT, a comparator, BETWEEN, IN, or a function
	subs []formula
	args []term
}

// term is an operand: a literal, or an attribute (a, b or a.x), or its size.
type term struct {
	literal any
	path    string
	size    bool
}

// thing is an item as the oracle has it: of any type of string, int, bool, or a thing.
type thing map[string]any

func (t term) of(item thing) any {
	if t.path == "" {
		return t.literal
	}
	var v any = item
	for name := range strings.SplitSeq(t.path, ".") {
		m, _ := v.(thing)
		v = m[name]
	}
	if !t.size {
		return v
	}
	switch v := v.(type) {
	case string:
		return len(v)
	case thing:
		return len(v)
	}
	return nil
}

// holds is the oracle.
func (f formula) holds(item thing) bool {
	arg := func(i int) any { return f.args[i].of(item) }
	switch f.op {
	case "AND":
		return f.subs[0].holds(item) && f.subs[1].holds(item)
	case "OR":
		return f.subs[0].holds(item) || f.subs[1].holds(item)
	case "NOT":
		return !f.subs[0].holds(item)
	case "=":
		return alike(arg(0), arg(1))
	case "<>":
		return !alike(arg(0), arg(1))
	case "BETWEEN":
		return less(arg(1), arg(0), true) && less(arg(0), arg(2), true)
	case "IN":
		for i := range f.args[1:] {
			if alike(arg(0), arg(i+1)) {
				return true
			}
		}
		return false
	case "<", "<=":
		return less(arg(0), arg(1), f.op == "<=")
	case ">", ">=":
		return less(arg(1), arg(0), f.op == ">=")
	case "attribute_exists":
		return arg(0) != nil
	case "attribute_not_exists":
		return arg(0) == nil
	}
	s, ok := arg(0).(string)
	part, ok2 := arg(1).(string)
	if f.op == "contains" {
		return ok && ok2 && strings.Contains(s, part)
	}
	return ok && ok2 && strings.HasPrefix(s, part)
}

// alike compares any two things: their printed forms tell all of them apart, and have a map's keys in order.
func alike(a, b any) bool {
	return a != nil && b != nil && fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b)
}

// less reports a < b, or a <= b, of two ints or two strings.
func less(a, b any, orEqual bool) bool {
	if i, ok := a.(int); ok {
		j, ok := b.(int)
		return ok && (i < j || orEqual && i == j)
	}
	s, ok := a.(string)
	t, ok2 := b.(string)
	return ok && ok2 && (s < t || orEqual && s == t)
}

// writer writes formulas, with placeholders for literals.
type writer struct {
	text   strings.Builder
	values value.Map
	draw   func(choices ...string) string
}

func (w *writer) put(parts ...string) {
	for _, p := range parts {
		w.text.WriteString(p)
	}
}

func (w *writer) term(t term) {
	switch {
	case t.path == "":
		name := fmt.Sprintf(":v%d", len(w.values))
		w.values[name] = toValue(t.literal)
		w.put(name)
	case t.size:
		w.put("size", w.draw("(", " ( "), t.path, w.draw(")", " )"))
	default:
		w.put(t.path)
	}
}

func (w *writer) keyword(k string) {
	w.put(w.draw(" ", "\n\t"), w.draw(k, strings.ToLower(k)), w.draw(" ", "  "))
}

var strengths = map[string]int{"OR": 1, "AND": 2, "NOT": 3}

// formula writes f where a formula that binds at least as strongly as outer may stand without parentheses.
func (w *writer) formula(f formula, outer int) {
	strength, logical := strengths[f.op]
	if logical && strength < outer {
		w.put("(")
		defer w.put(")")
	}
	switch {
	case f.op == "NOT":
		w.keyword("NOT")
		w.formula(f.subs[0], strength)
	case logical: // both associate: either side may be a chain of the same
		w.formula(f.subs[0], strength)
		w.keyword(f.op)
		w.formula(f.subs[1], strength)
	case f.op == "BETWEEN":
		w.term(f.args[0])
		w.keyword("BETWEEN")
		w.term(f.args[1])
		w.keyword("AND")
		w.term(f.args[2])
	case f.op == "IN":
		w.term(f.args[0])
		w.keyword("IN")
		w.list(f.args[1:])
	case strings.ContainsAny(f.op, "<=>"):
		w.term(f.args[0])
		w.put(w.draw(f.op, " "+f.op+" "))
		w.term(f.args[1])
	default:
		w.put(f.op)
		w.list(f.args)
	}
}

func (w *writer) list(terms []term) {
	w.put("(")
	for i, t := range terms {
		if i > 0 {
			w.put(w.draw(",", " , "))
		}
		w.term(t)
	}
	w.put(")")
}

func toValue(v any) value.Value {
	switch v := v.(type) {
	case string:
		return value.String(v)
	case int:
		return number(int64(v))
	case bool:
		return value.Bool(v)
	case thing:
		return toItem(v)
	}
	return value.Null{}
}

func toItem(t thing) value.Map {
	m := value.Map{}
	for name, v := range t {
		m[name] = toValue(v)
	}
	return m
}

// Few values, so that they meet.
var (
	genScalar = rapid.OneOf(rapid.SampledFrom([]any{"", "a", "ab", "b"}), rapid.Map(rapid.IntRange(0, 3),
		func(i int) any { return i }))
	genAny  = rapid.OneOf(genScalar, rapid.SampledFrom([]any{true, false, thing{"x": 1}}))
	genItem = rapid.Custom(func(t *rapid.T) thing {
		item := thing{}
		for _, name := range []string{"a", "b"} {
			if rapid.Bool().Draw(t, name+" is there") {
				item[name] = genAny.Draw(t, name)
			}
		}
		return item
	})
	genPath = rapid.Map(rapid.SampledFrom([]string{"a", "b", "a.x", "b.x"}),
		func(p string) term { return term{path: p} })
	genSize    = rapid.Map(genPath, func(t term) term { return term{path: t.path, size: true} })
	genLiteral = rapid.Map(genScalar, func(v any) term { return term{literal: v} })
	genTerm    = rapid.OneOf(genPath, genLiteral, genSize)
)

// genFormula draws formulas that DynamoDB takes: operands of one operator differ, those of some are strings.
func genFormula(depth int) *rapid.Generator[formula] {
	return rapid.Custom(func(t *rapid.T) formula {
		ops := []string{"=", "<>", "<", "<=", ">", ">=", "BETWEEN", "IN", "attribute_exists",
			"attribute_not_exists",
			"begins_with", "contains"}
		if depth > 0 {
			ops = append(ops, "AND", "OR", "NOT", "AND", "OR", "NOT", "AND", "OR", "NOT", "AND", "OR", "NOT")
		}
		f := formula{op: rapid.SampledFrom(ops).Draw(t, "op")}
		path := genPath.Draw(t, "path")
		other := rapid.OneOf(genLiteral, genSize)
		switch f.op {
		case "NOT":
			f.subs = []formula{genFormula(depth-1).Draw(t, "sub")}
		case "AND", "OR":
			f.subs = []formula{genFormula(depth-1).Draw(t, "left"), genFormula(depth-1).Draw(t, "right")}
		case "attribute_exists", "attribute_not_exists":
			f.args = []term{path}
		case "begins_with", "contains":
			f.args = []term{path, {literal: rapid.SampledFrom([]string{"", "a", "b", "ab"}).Draw(t, "part")}}
		case "IN":
			f.args = append([]term{path}, rapid.SliceOfN(other, 1, 4).Draw(t, "candidates")...)
		case "BETWEEN": // bounds of one literal cannot be in the wrong order
			f.args = []term{genTerm.Draw(t, "value"), genSize.Draw(t, "lower"), genLiteral.Draw(t, "upper")}
		default:
			f.args = []term{path, other.Draw(t, "operand")}
			if rapid.Bool().Draw(t, "turned") {
				f.args[0], f.args[1] = f.args[1], f.args[0]
			}
		}
		return f
	})
}

// evaluate writes f, reads it and asks whether it holds of item.
func evaluate(t rapid.TB, f formula, item thing, draw func(choices ...string) string) bool {
	t.Helper()
	w := writer{values: value.Map{}, draw: draw}
	w.formula(f, 0)
	values := w.values
	if len(values) == 0 {
		values = nil
	}
	s, err := NewScope(nil, values)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Condition(ConditionExpression, w.text.String())
	if err != nil {
		t.Fatalf("%s: %v", w.text.String(), err)
	}
	if err := s.Unused(); err != nil {
		t.Fatalf("%s: %v", w.text.String(), err)
	}
	return c.Holds(toItem(item))
}

func TestConditionsAgreeWithOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(choices ...string) string { return rapid.SampledFrom(choices).Draw(t, "style") }
		for range 10 { // several a run: they are small
			f, item := genFormula(4).Draw(t, "formula"), genItem.Draw(t, "item")
			if got, want := evaluate(t, f, item, draw), f.holds(item); got != want {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
	})
}

// Evaluators with one mistake each do not pass for right.
func TestOracleSeesMistakes(t *testing.T) {
	plain := func(choices ...string) string { return choices[0] }
	mistakes := map[string]func(formula) formula{
		"OR before AND": func(f formula) formula { // a OR b AND c read as (a OR b) AND c
			if f.op == "OR" && f.subs[1].op == "AND" {
				and := f.subs[1]
				return formula{op: "AND", subs: []formula{{op: "OR", subs: []formula{f.subs[0], and.subs[0]}},
					and.subs[1]}}
			}
			return f
		},
		"NOT of all that follows": func(f formula) formula { // NOT a AND b read as NOT (a AND b)
			if f.op == "AND" && f.subs[0].op == "NOT" {
				and := formula{op: "AND", subs: []formula{f.subs[0].subs[0], f.subs[1]}}
				return formula{op: "NOT", subs: []formula{and}}
			}
			return f
		},
		"<> of what is missing": func(f formula) formula {
			if f.op == "<>" {
				exists := formula{op: "attribute_exists", args: f.args[:1]}
				return formula{op: "AND", subs: []formula{f, exists}}
			}
			return f
		},
		"BETWEEN without its upper bound": func(f formula) formula {
			if f.op == "BETWEEN" {
				return formula{op: "<=", args: []term{f.args[1], f.args[0]}}
			}
			return f
		},
	}
	for name, mistake := range mistakes {
		seen := false
		for seed := 0; seed < 3000 && !seen; seed++ {
			f, item := genFormula(2).Example(seed), genItem.Example(seed)
			if evaluate(t, f, item, plain) != f.holds(item) {
				t.Fatalf("the right evaluator is wrong about %+v of %v", f, item)
			}
			seen = f.holds(item) != mistake(f).holds(item)
		}
		if !seen {
			t.Errorf("%s: not seen", name)
		}
	}
}
