package expr

import (
	"strings"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// Condition is a condition or a filter.
type Condition struct {
	root  *node
	paths []path // those in it
}

// Condition reads a condition or filter; parameter is the one it came in.
func (s *Scope) Condition(parameter, text string) (*Condition, error) {
	root, err := parseCondition(parameter, text)
	if err != nil {
		return nil, err
	}
	c := checker{scope: s, parameter: parameter}
	if err := c.words(root, false); err != nil {
		return nil, err
	}
	if err := c.operands(root); err != nil {
		return nil, err
	}
	return &Condition{root, c.paths}, nil
}

// Attributes returns the top-level attributes it refers to, sorted: a filter may not refer to the key.
func (c *Condition) Attributes() []string { return roots(c.paths, false) }

// Nested returns those of its top-level attributes that it goes into, sorted: none may be of a key.
func (c *Condition) Nested() []string { return roots(c.paths, true) }

// Holds reports whether the condition is true of item, which is nil if there is none. A comparison is false
// if an operand is missing or of another type than the operator compares, so no parsed condition errs.
func (c *Condition) Holds(item value.Map) bool { return c.root.holds(item) }

func (n *node) holds(item value.Map) bool {
	switch n.op {
	case opAnd:
		return n.args[0].holds(item) && n.args[1].holds(item)
	case opOr:
		return n.args[0].holds(item) || n.args[1].holds(item)
	case opNot:
		return !n.args[0].holds(item)
	case opFunction:
		return n.predicate(item)
	}
	v := n.args[0].operand(item)
	if n.op == opBetween {
		return ordered(opGE, v, n.args[1].operand(item)) && ordered(opLE, v, n.args[2].operand(item))
	}
	if n.op == opIn {
		for _, candidate := range n.args[1:] {
			if equal(v, candidate.operand(item)) {
				return true
			}
		}
		return false
	}
	w := n.args[1].operand(item)
	switch n.op {
	case opEQ:
		return equal(v, w)
	case opNE:
		return !equal(v, w)
	}
	return ordered(n.op, v, w)
}

// operand returns an operand of a condition, or nil if it is missing.
func (n *node) operand(item value.Map) value.Value {
	switch n.op {
	case opPath:
		return n.path.in(item)
	case opValue:
		return n.value
	}
	if size, ok := sizeOf(n.args[0].operand(item)); ok { // no other function may be an operand
		return value.NumberOf(int64(size))
	}
	return nil
}

func (n *node) predicate(item value.Map) bool {
	v := n.args[0].operand(item)
	switch n.fn {
	case fnAttributeExists:
		return v != nil
	case fnAttributeNotExists:
		return v == nil
	case fnAttributeType:
		name, _ := n.args[1].value.(value.String)
		return v != nil && v.Kind().String() == string(name)
	case fnBeginsWith:
		return beginsWith(v, n.args[1].operand(item))
	}
	return contains(v, n.args[1].operand(item))
}

func equal(v, w value.Value) bool { return v != nil && w != nil && value.Equal(v, w) }

// ordered reports whether v and w compare as o says; what does not compare is never ordered.
func ordered(o op, v, w value.Value) bool {
	if v == nil || w == nil {
		return false
	}
	order, ok := value.Compare(v, w)
	if !ok {
		return false
	}
	switch o {
	case opLT:
		return order < 0
	case opLE:
		return order <= 0
	case opGT:
		return order > 0
	}
	return order >= 0
}

func beginsWith(v, prefix value.Value) bool {
	switch v := v.(type) {
	case value.String:
		prefix, ok := prefix.(value.String)
		return ok && strings.HasPrefix(string(v), string(prefix))
	case value.Binary:
		prefix, ok := prefix.(value.Binary)
		return ok && strings.HasPrefix(string(v), string(prefix))
	}
	return false
}

// contains looks for a part of a string or binary, a member of a set, or an element of a list.
func contains(v, part value.Value) bool {
	switch v := v.(type) {
	case value.String:
		part, ok := part.(value.String)
		return ok && strings.Contains(string(v), string(part))
	case value.Binary:
		part, ok := part.(value.Binary)
		return ok && strings.Contains(string(v), string(part))
	case value.Strings:
		part, ok := part.(value.String)
		return ok && has(v, string(part), strings.Compare)
	case value.Binaries:
		part, ok := part.(value.Binary)
		return ok && has(v, string(part), strings.Compare)
	case value.Numbers:
		part, ok := part.(value.Number)
		return ok && has(v, part, value.Number.Cmp)
	case value.List:
		for _, element := range v {
			if equal(element, part) {
				return true
			}
		}
	}
	return false
}

// sizeOf returns what size returns of v; ok is false if v has no size. A string's is in UTF-16 code units.
func sizeOf(v value.Value) (size int, ok bool) {
	switch v := v.(type) {
	case value.String:
		for _, r := range string(v) {
			size++
			if r > 0xffff {
				size++
			}
		}
		return size, true
	case value.Binary:
		return len(v), true
	case value.Strings:
		return len(v), true
	case value.Numbers:
		return len(v), true
	case value.Binaries:
		return len(v), true
	case value.List:
		return len(v), true
	case value.Map:
		return len(v), true
	}
	return 0, false
}
