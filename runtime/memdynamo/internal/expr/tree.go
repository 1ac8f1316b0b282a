package expr

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// tree is a set of paths, by their steps, none of which is a part of another: the shape of a projection or an
// update.
type tree struct {
	step     step
	leaf     int // 1 + the index of the path that ends here, or 0
	branches []tree
}

// grow resolves n paths and adds them, from the last to the first. That is DynamoDB's order, and it shows in
// the message about two paths that overlap or conflict.
func (t *tree) grow(c *checker, n int, at func(i int) path) error {
	t.branches = make([]tree, 0, n)
	for i := n - 1; i >= 0; i-- {
		p := at(i)
		if err := c.path(p); err != nil {
			return err
		}
		if clash, other := t.insert(p, i+1); clash != "" {
			return c.invalid("Two document paths %s with each other; must remove or rewrite one of these paths; "+
				"path one: %s, path two: %s", clash, p, at(other-1))
		}
	}
	return nil
}

// insert adds p. If it clashes with a path that is there, it returns how, and that path's leaf.
func (t *tree) insert(p path, leaf int) (clash string, other int) {
	for _, s := range p {
		if t.leaf != 0 {
			return "overlap", t.leaf
		}
		if len(t.branches) > 0 && (t.branches[0].step.name == "") != (s.name == "") {
			return "conflict", t.first()
		}
		i, found := slices.BinarySearchFunc(t.branches, s, func(b tree, s step) int { return b.step.compare(s) })
		if !found {
			t.branches = slices.Insert(t.branches, i, tree{step: s})
		}
		t = &t.branches[i]
	}
	if t.leaf != 0 || len(t.branches) > 0 {
		return "overlap", t.first()
	}
	t.leaf = leaf
	return "", 0
}

// first returns the first leaf.
func (t *tree) first() int {
	for t.leaf == 0 {
		t = &t.branches[0]
	}
	return t.leaf
}

// of returns the parts of v that the paths lead to, or nil if there are none. Elements of lists close ranks.
func (t *tree) of(v value.Value) value.Value {
	if t.leaf != 0 {
		return v
	}
	switch v.(type) {
	case value.Map:
		result := value.Map{}
		for i := range t.branches {
			b := &t.branches[i]
			if part := b.of(b.step.in(v)); part != nil {
				result[b.step.name] = part
			}
		}
		if len(result) > 0 {
			return result
		}
	case value.List:
		var result value.List
		for i := range t.branches {
			b := &t.branches[i]
			if part := b.of(b.step.in(v)); part != nil {
				result = append(result, part)
			}
		}
		if len(result) > 0 {
			return result
		}
	}
	return nil
}

// ofItem returns the parts of item that the paths lead to.
func (t *tree) ofItem(item value.Map) value.Map {
	parts, _ := t.of(item).(value.Map)
	if parts == nil {
		parts = value.Map{}
	}
	return parts
}
