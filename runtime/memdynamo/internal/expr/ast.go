package expr

import "github.com/sluice-go/sluice/runtime/memdynamo/internal/value"

// op is what a node of an expression does.
type op uint8

const (
	opPath  op = iota // an operand: path
	opValue           // an operand: value, by its name
	opFunction
	opEQ
	opNE
	opLT
	opLE
	opGT
	opGE
	opBetween // args: value, lower bound, upper bound
	opIn      // args: value, candidates
	opAnd
	opOr
	opNot
	opPlus
	opMinus
)

// String returns the operator as messages name it.
func (o op) String() string {
	return [...]string{"", "", "", "=", "<>", "<", "<=", ">", ">=", "BETWEEN", "IN", "AND", "OR", "NOT", "+",
		"-"}[o]
}

// node is a part of an expression.
type node struct {
	op    op
	fn    function    // of an opFunction; the checker finds it
	name  string      // of an opFunction, or an opValue's, as written
	path  path        // of an opPath
	value value.Value // of an opValue; the checker finds it
	args  []*node
}

// operator returns what messages call a node that has operands.
func (n *node) operator() string {
	if n.op == opFunction {
		return n.name
	}
	return n.op.String()
}

// clause is what an action of an update does to its path.
type clause uint8

const (
	clauseSet clause = iota
	clauseRemove
	clauseAdd
	clauseDelete
)

// String returns the clause's keyword.
func (c clause) String() string { return [...]string{"SET", "REMOVE", "ADD", "DELETE"}[c] }

// action is one element of a clause. operand is nil for REMOVE.
type action struct {
	clause  clause
	target  path
	operand *node
}
