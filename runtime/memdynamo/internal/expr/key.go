package expr

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// Op compares a sort key.
type Op uint8

// The comparisons of a sort key. All is no comparison.
const (
	All Op = iota
	EQ
	LT
	LE
	GT
	GE
	Between
	BeginsWith
)

// KeyCondition is one partition, and a range in it.
type KeyCondition struct {
	Hash      value.Value
	Op        Op
	Sort, End value.Value // End is Between's upper bound
}

// KeyExpression is a key condition that is not yet held against a key.
type KeyExpression struct{ root *node }

// KeyCondition reads a key condition.
func (s *Scope) KeyCondition(text string) (*KeyExpression, error) {
	c, err := s.Condition(KeyConditionExpression, text)
	if err != nil {
		return nil, err
	}
	return &KeyExpression{c.root}, nil
}

// For returns the key condition for the key of a table or index; sort is empty if the key has none. It errs
// where the condition asks more than a key can answer, which DynamoDB says only after it has read all of the
// request's expressions.
func (e *KeyExpression) For(hash, sort string) (*KeyCondition, error) {
	var conditions []keyPart
	if err := collect(e.root, &conditions); err != nil {
		return nil, err
	}
	if len(conditions) > 2 {
		return nil, exception.Invalid("Conditions can be of length 1 or 2 only")
	}
	if sort == "" && len(conditions) > 1 {
		return nil, unsupported()
	}
	find := func(attribute string) int {
		return slices.IndexFunc(conditions, func(p keyPart) bool { return p.attribute == attribute })
	}
	h := find(hash)
	switch {
	case h < 0:
		return nil, missed(hash)
	case conditions[h].op != EQ:
		return nil, unsupported()
	}
	k := &KeyCondition{Hash: conditions[h].operands[0]}
	if len(conditions) == 1 {
		return k, nil
	}
	s := find(sort)
	if s < 0 {
		return nil, missed(sort)
	}
	part := conditions[s]
	k.Op, k.Sort = part.op, part.operands[0]
	if part.op == Between {
		k.End = part.operands[1]
	}
	return k, nil
}

func unsupported() error { return exception.Invalid("Query key condition not supported") }

func missed(attribute string) error {
	return exception.Invalid("Query condition missed key schema element: %s", attribute)
}

// keyPart is a condition on one attribute.
type keyPart struct {
	attribute string
	op        Op
	operands  []value.Value
}

// collect appends the conditions that AND joins in n.
func collect(n *node, parts *[]keyPart) error {
	if n.op == opAnd {
		if err := collect(n.args[0], parts); err != nil {
			return err
		}
		return collect(n.args[1], parts)
	}
	op := keyOp(n)
	if op == All {
		return exception.Invalid("Invalid operator used in KeyConditionExpression: %s", n.operator())
	}
	if (op == Between || op == BeginsWith) && n.args[0].op != opPath {
		return exception.Invalid(
			"Invalid condition in KeyConditionExpression: %s operator must have the key attribute "+
				"as its first operand", n.operator())
	}
	part := keyPart{op: op}
	for i, arg := range n.args {
		switch {
		case arg.op == opFunction:
			return exception.Invalid("KeyConditionExpressions cannot contain nested operations")
		case arg.op == opValue:
			part.operands = append(part.operands, arg.value)
		case part.attribute != "":
			return exception.Invalid("Invalid condition in KeyConditionExpression: Multiple attribute names used in " +
				"one condition")
		case len(arg.path) > 1:
			return exception.Invalid("KeyConditionExpressions cannot have conditions on nested attributes")
		default:
			part.attribute = arg.path[0].name
			if i > 0 {
				part.op = part.op.flipped()
			}
		}
	}
	if part.attribute == "" {
		return exception.Invalid("Invalid condition in KeyConditionExpression: No key attribute specified")
	}
	for _, p := range *parts {
		if p.attribute == part.attribute {
			return exception.Invalid("KeyConditionExpressions must only contain one condition per key")
		}
	}
	*parts = append(*parts, part)
	return nil
}

// keyOp returns n's operator, or All if it is none for keys.
func keyOp(n *node) Op {
	switch n.op {
	case opEQ:
		return EQ
	case opLT:
		return LT
	case opLE:
		return LE
	case opGT:
		return GT
	case opGE:
		return GE
	case opBetween:
		return Between
	case opFunction:
		if n.fn == fnBeginsWith {
			return BeginsWith
		}
	}
	return All
}

// flipped returns the operator for the operands in the other order.
func (o Op) flipped() Op {
	switch o {
	case LT:
		return GT
	case LE:
		return GE
	case GT:
		return LT
	case GE:
		return LE
	}
	return o
}
