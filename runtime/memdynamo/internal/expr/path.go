package expr

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// path leads from an item to an attribute, or into one. Its first step is a name.
type path []step

// step is a name, or an index if the name is empty: no attribute's name is.
type step struct {
	name  string
	index int
	ref   bool // name is a key of ExpressionAttributeNames, not resolved yet
}

// outOfRange marks a step whose name is the text of an index that no list can have.
const outOfRange = -1

// in returns what is at the end of the path, or nil.
func (p path) in(item value.Map) value.Value {
	v := item[p[0].name]
	for _, s := range p[1:] {
		v = s.in(v)
	}
	return v
}

// in returns the element of v, or nil if v has none: also if it is of another type.
func (s step) in(v value.Value) value.Value {
	switch v := v.(type) {
	case value.Map:
		if s.name != "" {
			return v[s.name]
		}
	case value.List:
		if s.name == "" && s.index < len(v) {
			return v[s.index]
		}
	}
	return nil
}

// compare orders steps: names as texts, indexes as numbers, indexes first.
func (s step) compare(t step) int {
	if c := strings.Compare(s.name, t.name); c != 0 {
		return c
	}
	return s.index - t.index
}

// String returns the path as messages have it: [a, [0], b].
func (p path) String() string {
	b := []byte{'['}
	for i, s := range p {
		if i > 0 {
			b = append(b, ", "...)
		}
		if s.name != "" {
			b = append(b, s.name...)
			continue
		}
		b = append(b, '[')
		b = strconv.AppendInt(b, int64(s.index), 10)
		b = append(b, ']')
	}
	return string(append(b, ']'))
}

// roots returns the top-level attributes that paths start from, sorted; with nested, only of those that have
// a further step.
func roots(paths []path, nested bool) []string {
	var names []string
	for _, p := range paths {
		if !nested || len(p) > 1 {
			names = append(names, p[0].name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
