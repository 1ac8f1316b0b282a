package expr

import (
	"maps"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// Update is what an update expression does.
type Update struct {
	actions []action
	tree    tree   // of the targets
	paths   []path // the targets, and those in operands
}

// Update reads an update expression.
func (s *Scope) Update(text string) (*Update, error) {
	actions, clauses, err := parseUpdate(text)
	if err != nil {
		return nil, err
	}
	c := checker{scope: s, parameter: UpdateExpression}
	for _, a := range actions {
		if err := c.pathWords(a.target); err != nil {
			return nil, err
		}
		if a.operand != nil {
			if err := c.words(a.operand, false); err != nil {
				return nil, err
			}
		}
	}
	for i, clause := range clauses {
		if slices.Contains(clauses[:i], clause) {
			return nil, c.invalid(`The "%s" section can only be used once in an update expression;`, clause)
		}
	}
	u := &Update{actions: actions}
	if err := u.tree.grow(&c, len(actions), func(i int) path { return actions[i].target }); err != nil {
		return nil, err
	}
	for _, a := range slices.Backward(actions) { // as DynamoDB does: which mistake is told depends on it
		if a.operand == nil {
			continue
		}
		if err := c.operands(a.operand); err != nil {
			return nil, err
		}
		if a.clause != clauseSet {
			if err := c.assignment(a); err != nil {
				return nil, err
			}
		}
	}
	u.paths = c.paths
	return u, nil
}

// Attributes returns the top-level attributes it changes, sorted: none may be of the key.
func (u *Update) Attributes() []string {
	names := make([]string, len(u.tree.branches))
	for i := range names {
		names[i] = u.tree.branches[i].step.name
	}
	return names
}

// Nested returns those of the top-level attributes it changes or reads that it goes into, sorted: none may be
// of a key.
func (u *Update) Nested() []string { return roots(u.paths, true) }

// Updated returns what UPDATED_OLD or UPDATED_NEW return of item, the one before or after: the paths that the
// update names.
func (u *Update) Updated(item value.Map) value.Map { return u.tree.ofItem(item) }

// Apply returns item as the update leaves it. All right-hand sides see the item as it was. It errs, and
// nothing is done, where an operand has the wrong type or a path does not exist.
func (u *Update) Apply(item value.Map) (value.Map, error) {
	return application{u.actions, item}.inMap(&u.tree, item)
}

// application is an update of one item. It makes new maps and lists of those that it changes.
type application struct {
	actions []action
	old     value.Map // the whole item
}

func (a application) inMap(t *tree, old value.Map) (value.Map, error) {
	result := make(value.Map, len(old)+len(t.branches))
	maps.Copy(result, old)
	for i := range t.branches {
		b := &t.branches[i]
		v, err := a.at(b, old[b.step.name])
		switch {
		case err != nil:
			return nil, err
		case v == nil:
			delete(result, b.step.name)
		default:
			result[b.step.name] = v
		}
	}
	return result, nil
}

// inList finds elements by the positions they had: what is set beyond the end is appended, then what is
// removed falls out.
func (a application) inList(t *tree, old value.List) (value.List, error) {
	result := slices.Clone(old)
	for i := range t.branches {
		b := &t.branches[i]
		v, err := a.at(b, b.step.in(old))
		switch {
		case err != nil:
			return nil, err
		case b.step.index < len(old):
			result[b.step.index] = v
		default:
			result = append(result, v)
		}
	}
	return slices.DeleteFunc(result, func(v value.Value) bool { return v == nil }), nil
}

// at returns what v becomes, which is nil if there is none: and so is the result.
func (a application) at(t *tree, v value.Value) (value.Value, error) {
	if t.leaf != 0 {
		return a.act(a.actions[t.leaf-1], v)
	}
	byName := t.branches[0].step.name != ""
	switch v := v.(type) {
	case value.Map:
		if byName {
			return a.inMap(t, v)
		}
	case value.List:
		if !byName {
			return a.inList(t, v)
		}
	}
	return nil, exception.Invalid("The document path provided in the update expression is invalid for update")
}

func (a application) act(act action, v value.Value) (value.Value, error) {
	switch act.clause {
	case clauseSet:
		return present(a.operand(act.operand))
	case clauseAdd:
		return add(v, act.operand.value)
	case clauseDelete:
		return remove(v, act.operand.value)
	}
	return nil, nil // REMOVE leaves nothing
}

// operand returns what a part of a right-hand side is worth, or nil if it is a path that leads nowhere.
func (a application) operand(n *node) (value.Value, error) {
	switch n.op {
	case opValue:
		return n.value, nil
	case opPath:
		return n.path.in(a.old), nil
	case opPlus, opMinus:
		left, right, err := operands[value.Number](a, n)
		switch {
		case err != nil:
			return nil, err
		case n.op == opMinus:
			return left.Sub(right)
		}
		return left.Add(right)
	}
	if n.fn == fnListAppend {
		left, right, err := operands[value.List](a, n)
		return slices.Concat(left, right), err
	}
	otherwise, err := present(a.operand(n.args[1])) // even if it is not needed
	if v := n.args[0].path.in(a.old); v != nil {
		return v, err
	}
	return otherwise, err
}

// operands returns both operands of n, which must be Ts. A fault within an operand is reported before its
// type.
func operands[T value.Value](a application, n *node) (left, right T, err error) {
	v, err := a.operand(n.args[0])
	if err != nil {
		return left, right, err
	}
	w, err := a.operand(n.args[1])
	if err != nil {
		return left, right, err
	}
	if left, err = typed[T](present(v, nil)); err != nil {
		return left, right, err
	}
	right, err = typed[T](present(w, nil))
	return left, right, err
}

// present errs if v is nothing.
func present(v value.Value, err error) (value.Value, error) {
	if v == nil && err == nil {
		err = exception.Invalid("The provided expression refers to an attribute that does not exist in the item")
	}
	return v, err
}

// typed returns v as a T.
func typed[T value.Value](v value.Value, err error) (T, error) {
	t, ok := v.(T)
	if err == nil && !ok {
		err = exception.Invalid("An operand in the update expression has an incorrect data type")
	}
	return t, err
}

// add returns what ADD makes of v, which is nil if there is none.
func add(v, operand value.Value) (value.Value, error) {
	if v == nil {
		return operand, nil
	}
	switch operand := operand.(type) {
	case value.Strings:
		return with(v, operand, strings.Compare)
	case value.Binaries:
		return with(v, operand, strings.Compare)
	case value.Numbers:
		return with(v, operand, value.Number.Cmp)
	}
	n, err := typed[value.Number](v, nil)
	if err != nil {
		return nil, err
	}
	m, err := typed[value.Number](operand, nil)
	if err != nil {
		return nil, err
	}
	return n.Add(m)
}

// remove returns what DELETE makes of v: nil if no member is left.
func remove(v, operand value.Value) (value.Value, error) {
	if v == nil {
		return nil, nil // there is nothing to remove from
	}
	switch operand := operand.(type) {
	case value.Strings:
		return without(v, operand, strings.Compare)
	case value.Binaries:
		return without(v, operand, strings.Compare)
	case value.Numbers:
		return without(v, operand, value.Number.Cmp)
	}
	return v, nil // no other operand is let through
}
