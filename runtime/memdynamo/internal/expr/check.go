package expr

import (
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// maxCandidates is the most operands that IN takes on its right.
const maxCandidates = 100

// operation checks a function or operator whose operands are resolved: how many there are, that they differ,
// their types. Types are those of values and of size; what a path leads to is seen when it is evaluated.
func (c *checker) operation(n *node) error {
	if n.op == opFunction && len(n.args) != n.fn.operands() {
		return c.invalid("Incorrect number of operands for operator or function; operator or function: %s, "+
			"number of operands: %d",
			n.name, len(n.args))
	}
	if n.op == opBetween { // the only one whose types go first
		if err := c.types(n, n.args, value.KindS, value.KindN, value.KindB); err != nil {
			return err
		}
	}
	if err := c.distinct(n); err != nil {
		return err
	}
	switch n.op {
	case opFunction:
		return c.call(n)
	case opLT, opLE, opGT, opGE:
		return c.types(n, n.args, value.KindS, value.KindN, value.KindB)
	case opBetween:
		return c.bounds(n.args[1], n.args[2])
	case opIn:
		if candidates := len(n.args) - 1; candidates > maxCandidates {
			return c.invalid("The IN operator is provided with too many operands; number of operands: %d", candidates)
		}
	case opPlus, opMinus:
		return c.types(n, n.args, value.KindN)
	}
	return nil
}

// call checks a function's operands.
func (c *checker) call(n *node) error {
	switch first := n.args[0]; n.fn {
	case fnAttributeExists, fnAttributeNotExists, fnIfNotExists:
		if first.op != opPath {
			return c.invalid("Operator or function requires a document path; operator or function: %s", n.name)
		}
	case fnAttributeType:
		return c.typeName(n)
	case fnBeginsWith:
		return c.types(n, n.args, value.KindS, value.KindB)
	case fnSize:
		return c.types(n, n.args, value.KindS, value.KindB, value.KindSS, value.KindNS, value.KindBS, value.KindL,
			value.KindM)
	case fnListAppend:
		return c.types(n, n.args, value.KindL)
	}
	return nil
}

// types errs for the first operand whose type is known and not allowed.
func (c *checker) types(n *node, operands []*node, allowed ...value.Kind) error {
	for _, o := range operands {
		if k := staticKind(o); k != 0 && !slices.Contains(allowed, k) {
			return c.wrongType(n, k.String())
		}
	}
	return nil
}

func (c *checker) wrongType(n *node, kind string) error {
	return c.invalid("Incorrect operand type for operator or function; operator or function: %s, operand "+
		"type: %s",
		n.operator(), kind)
}

// staticKind returns an operand's type if it does not depend on the item, or 0.
func staticKind(n *node) value.Kind {
	switch {
	case n.op == opValue:
		return n.value.Kind()
	case n.op == opFunction && n.fn == fnSize:
		return value.KindN
	}
	return 0
}

// typeName checks the second operand of attribute_type. DynamoDB lists the types in an order of its own.
func (c *checker) typeName(n *node) error {
	name, ok := n.args[1].value.(value.String)
	switch kind := staticKind(n.args[1]); {
	case kind == 0:
		return c.wrongType(n, "{NS,SS,L,BS,N,M,B,BOOL,NULL,S}")
	case !ok:
		return c.wrongType(n, kind.String())
	}
	for k := value.KindS; k <= value.KindM; k++ {
		if string(name) == k.String() {
			return nil
		}
	}
	return c.invalid("Invalid attribute type name found; type: %s, valid types: {N,BS,L,B,NULL,M,S,SS,NS,BOOL}",
		string(name))
}

// distinct errs if the first operand is a path that comes again.
func (c *checker) distinct(n *node) error {
	first := n.args[0]
	if first.op != opPath || n.op >= opPlus || n.fn == fnListAppend {
		return nil
	}
	for _, o := range n.args[1:] {
		if o.op == opPath && slices.Equal(o.path, first.path) {
			return c.invalid(
				"The first operand must be distinct from the remaining operands for this operator or function; "+
					"operator: %s, first operand: %s", n.operator(), first.path)
		}
	}
	return nil
}

// bounds checks those of BETWEEN if both are values.
func (c *checker) bounds(lower, upper *node) error {
	if lower.op != opValue || upper.op != opValue {
		return nil
	}
	var wrong string
	switch order, ok := value.Compare(lower.value, upper.value); {
	case !ok:
		wrong = "same data type for lower and upper bounds"
	case order > 0:
		wrong = "upper bound to be greater than or equal to lower bound"
	default:
		return nil
	}
	return c.invalid(
		"The BETWEEN operator requires %s; lower bound operand: AttributeValue: %s, upper bound operand: "+
			"AttributeValue: %s", wrong, bound(lower.value), bound(upper.value))
}

// bound returns a value as messages about BETWEEN have it: DynamoDB shows a binary as a buffer of its
// language.
func bound(v value.Value) string {
	if b, ok := v.(value.Binary); ok {
		return fmt.Sprintf("{B:java.nio.HeapByteBuffer[pos=0 lim=%d cap=%[1]d]}", len(b))
	}
	return fmt.Sprintf("{%s:%v}", v.Kind(), v)
}

// assignment checks the operand of ADD or DELETE.
func (c *checker) assignment(a action) error {
	kind := a.operand.value.Kind()
	switch {
	case kind == value.KindSS || kind == value.KindNS || kind == value.KindBS:
		return nil
	case kind == value.KindN && a.clause == clauseAdd:
		return nil
	}
	return c.invalid("Incorrect operand type for operator or function; operator: %s, operand type: %s, "+
		"typeSet: ALLOWED_FOR_%[1]s_OPERAND",
		a.clause, longName(kind))
}

// longName returns the name of a type in messages about ADD and DELETE, for types that either refuses.
func longName(k value.Kind) string {
	switch k {
	case value.KindS:
		return "STRING"
	case value.KindN:
		return "NUMBER"
	case value.KindB:
		return "BINARY"
	case value.KindBool:
		return "BOOLEAN"
	case value.KindL:
		return "LIST"
	case value.KindM:
		return "MAP"
	}
	return k.String()
}
