package differential_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The attributes of an item beside its key, and those in its map m.
var (
	attributes = []attribute{
		{"c", "N"}, {"v", ""}, {"m", "M"}, {"li", "L"}, {"ss", "SS"}, {"ns", "NS"}, {"str", "S"}, {"status", "S"},
		{"bs", "BS"},
		{"flag", "BOOL"}, {"a.b", "N"}, {"g", "S"}, {"n", "N"}, {"l", "N"}, {"b", "B"}, {"s", "S"},
	}
	mapAttributes = []attribute{{"x", "N"}, {"y", "S"}, {"li", "L"}, {"m", "M"}, {"size", "N"}}
)

// reserved are names of ours that expressions may not use as they are; "a.b" would be two names.
var reserved = []string{"status", "size", "a.b"}

// author writes the expressions of one request, and gathers the names and values that they use.
type author struct {
	dice
	table   schema
	names   map[string]string
	values  item
	touched map[string]bool // attributes that an update has changed: to change one twice is a fault
}

func newAuthor(d dice, table schema) *author {
	return &author{dice: d, table: table, names: map[string]string{}, values: item{}, touched: map[string]bool{}}
}

// placeholders returns the names and values of the request, nil for none, with a fault now and then.
func (a *author) placeholders() (map[string]string, item) {
	if a.fault(60) {
		a.names[pick(a.dice, "#unused", "bad", "#", "#b-d")] = pick(a.dice, "c", "nowhere", "")
	}
	if a.fault(60) {
		a.values[pick(a.dice, ":unused", "bad", ":", ":b-d")] = a.value("N", 1)
	}
	if a.fault(60) && len(a.names) > 0 {
		delete(a.names, pick(a.dice, slices.Sorted(maps.Keys(a.names))...))
	}
	if a.fault(60) && len(a.values) > 0 {
		delete(a.values, pick(a.dice, slices.Sorted(maps.Keys(a.values))...))
	}
	names, values := a.names, a.values
	if len(names) == 0 && !a.fault(200) {
		names = nil
	}
	if len(values) == 0 && !a.fault(200) {
		values = nil
	}
	return names, values
}

// name returns how the attribute stands in an expression: as it is, or as a placeholder.
func (a *author) name(attribute string) string {
	plain := !slices.Contains(reserved, attribute) || a.fault(60)
	if plain && !a.oneIn(4) {
		return attribute
	}
	placeholder := "#" + strings.ReplaceAll(attribute, ".", "_")
	a.names[placeholder] = attribute
	return placeholder
}

// hold returns the placeholder of a value.
func (a *author) hold(v types.AttributeValue) string {
	placeholder := fmt.Sprintf(":v%d", len(a.values))
	a.values[placeholder] = v
	return placeholder
}

// constant is a value of that kind; the same one may stand in several places.
func (a *author) constant(kind string) string {
	if len(a.values) > 0 && a.oneIn(8) {
		return pick(a.dice, slices.Sorted(maps.Keys(a.values))...)
	}
	return a.hold(a.value(kind, 2))
}

// path is a document path, and the kind of what should be there. kind, if not empty, is what to look for.
func (a *author) path(kind string) (text, found string) {
	from := attributes
	if a.oneIn(20) {
		from = append(slices.Clip(from), a.table.key().hash)
	}
	top := a.among(from, kind, 3)
	return a.below(a.name(top.name), top.kind, kind, 3)
}

// fresh is a path to change, in an attribute that the update has not changed yet.
func (a *author) fresh(kind string) (text, found string) {
	from := slices.DeleteFunc(slices.Clone(attributes), func(x attribute) bool { return a.touched[x.name] })
	if len(from) == 0 || a.fault(12) {
		from = attributes
	}
	depth := pick(a.dice, 0, 0, 1, 2)
	top := a.among(from, kind, depth)
	a.touched[top.name] = true
	return a.below(a.name(top.name), top.kind, kind, depth)
}

// among picks one where something of that kind should be, mostly, or that deep in it.
func (a *author) among(from []attribute, kind string, depth int) attribute {
	fit := slices.DeleteFunc(slices.Clone(from), func(x attribute) bool {
		return x.kind != kind && (x.kind != "M" || depth == 0 || kind == "BS")
	})
	if kind == "" || len(fit) == 0 || a.oneIn(8) {
		return pick(a.dice, from...)
	}
	return pick(a.dice, fit...)
}

// below goes on from a path, that much deeper into the document at most.
func (a *author) below(text, found, kind string, depth int) (string, string) {
	if depth == 0 || found == kind && a.oneIn(2) {
		return text, found
	}
	switch {
	case found == "M" && (kind != "M" || a.oneIn(2)):
		next := pick(a.dice, mapAttributes...)
		return a.below(text+"."+a.name(next.name), next.kind, kind, depth-1)
	case found == "L" && !a.oneIn(3):
		return a.below(text+pick(a.dice, "[0]", "[1]", "[2]", "[9]"), pick(a.dice, "N", "S", "M"), kind, depth-1)
	case a.fault(60):
		return text + pick(a.dice, "[0]", ".x", "[1].y", "[01]", "[99999999999]", "."), ""
	}
	return text, found
}

// word is a keyword in upper case, or not.
func (a *author) word(upper string) string {
	switch {
	case a.oneIn(8):
		return strings.ToLower(upper)
	case a.oneIn(16):
		return upper[:1] + strings.ToLower(upper[1:])
	}
	return upper
}

// garble damages an expression, now and then.
func (a *author) garble(text string) string {
	if !a.fault(25) {
		return text
	}
	tokens := strings.Fields(text)
	i := a.upTo(len(tokens))
	switch a.upTo(6) {
	case 0:
		tokens = slices.Delete(tokens, i, i+1)
	case 1:
		tokens = slices.Insert(tokens, i, pick(a.dice, "AND", "OR", "NOT", "(", ")", ",", "=", "<", "<>", "+", ".",
			"[0]", "[-1]", "BETWEEN",
			"IN", "#none", ":none", "name", "size", "c", "foo(c)", "SET", "REMOVE", "1", "!", "é", "#", ":", "_x"))
	case 2:
		tokens = slices.Insert(tokens, i, tokens[i])
	case 3:
		tokens[i] = tokens[i][:a.upTo(len(tokens[i]))]
	case 4:
		return pick(a.dice, "", " ", "(", "()", strings.Repeat("(", 30)+text+strings.Repeat(")", 30),
			text+strings.Repeat(" ", 5000))
	default:
		tokens = slices.Delete(tokens, i, len(tokens))
	}
	return strings.Join(tokens, " ")
}
