package expr

import "github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"

const (
	maxOperators = 300 // operators and functions of an expression
	maxDepth     = 32  // steps of a path
)

// checker holds an expression against the rules that need no item, in passes as DynamoDB does: which mistake
// is told, if there are several, depends on them. First come words; then operands, which are resolved on the
// way.
type checker struct {
	scope     *Scope
	parameter string
	operators int
	paths     []path // those that were resolved
}

func (c *checker) invalid(format string, args ...any) error {
	return exception.Invalid("Invalid "+c.parameter+": "+format, args...)
}

// words checks, in the order of the text, the rules that need no scope: functions and their positions,
// reserved words, indexes, and the number of operators. nested is whether n is an operand.
func (c *checker) words(n *node, nested bool) error {
	switch n.op {
	case opPath:
		return c.pathWords(n.path)
	case opValue:
		return nil
	case opFunction:
		if err := c.function(n, nested); err != nil {
			return err
		}
	}
	if c.operators++; c.operators > maxOperators {
		return c.invalid("The expression contains too many operators; operator count: %d", c.operators)
	}
	logical := n.op == opAnd || n.op == opOr || n.op == opNot
	for _, arg := range n.args {
		if err := c.words(arg, !logical); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) function(n *node, nested bool) error {
	n.fn = functionOf(n.name)
	inUpdate := c.parameter == UpdateExpression
	switch {
	case n.fn == fnUnknown:
		return c.invalid("Invalid function name; function: %s", n.name)
	case n.fn.ofUpdate() && !inUpdate:
		return c.invalid("The function is not allowed in a condition expression; function: %s", n.name)
	case !n.fn.ofUpdate() && inUpdate:
		return c.invalid("The function is not allowed in an update expression; function: %s", n.name)
	case !n.fn.mayStand(nested):
		return c.invalid("The function is not allowed to be used this way in an expression; function: %s", n.name)
	}
	return nil
}

func (c *checker) pathWords(p path) error {
	for _, s := range p {
		switch {
		case s.index == outOfRange:
			return c.invalid("List index is not within the allowable range; index: [%s]", s.name)
		case !s.ref && isReserved(s.name):
			return c.invalid("Attribute name is a reserved keyword; reserved keyword: %s", s.name)
		}
	}
	return nil
}

// path gives names to the path's placeholders.
func (c *checker) path(p path) error {
	for i := range p {
		if !p[i].ref {
			continue
		}
		name, ok := c.scope.names.use(p[i].name)
		if !ok {
			return c.invalid("An expression attribute name used in the document path is not defined; attribute "+
				"name: %s",
				p[i].name)
		}
		p[i] = step{name: name}
	}
	if len(p) > maxDepth {
		return c.invalid("The document path has too many nesting levels; nesting levels: %d", len(p))
	}
	c.paths = append(c.paths, p)
	return nil
}

// operands resolves and checks n, its operands first.
func (c *checker) operands(n *node) error {
	for _, arg := range n.args {
		if err := c.operands(arg); err != nil {
			return err
		}
	}
	switch n.op {
	case opPath:
		return c.path(n.path)
	case opValue:
		var ok bool
		if n.value, ok = c.scope.values.use(n.name); !ok {
			return c.invalid("An expression attribute value used in expression is not defined; attribute value: %s",
				n.name)
		}
		return nil
	case opAnd, opOr, opNot:
		return nil
	}
	return c.operation(n)
}
