package expr

import (
	"strconv"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

// maxText is the most bytes an expression may have. It bounds the parser's recursion too.
const maxText = 4096

// parser reads one text. Its methods read what their name says, from the current token on, and err at the
// first token that cannot follow.
type parser struct {
	parameter string
	text      string
	prev, tok token // the last token read, and the current one

	groupStart, groupEnd int  // the parentheses that were closed last
	redundant            bool // there were parentheses just inside parentheses

	nodes chunk[node]
	args  chunk[*node]
	steps chunk[step]
}

// chunk allocates for many: an expression is many small parts, which live and die together.
type chunk[T any] struct{ spare []T }

// take returns n new elements.
func (c *chunk[T]) take(n int) []T {
	if len(c.spare) < n {
		c.spare = make([]T, max(n, 8))
	}
	taken := c.spare[:n:n]
	c.spare = c.spare[n:]
	return taken
}

func newParser(parameter, text string) (*parser, error) {
	switch {
	case text == "":
		return nil, exception.Invalid("Invalid %s: The expression can not be empty;", parameter)
	case len(text) > maxText && (parameter == UpdateExpression || parameter == ProjectionExpression):
		return nil, exception.Invalid("Invalid %s: Expression size has exceeded the maximum allowed size;",
			parameter)
	case len(text) > maxText:
		return nil, exception.Invalid("Invalid %s: Expression size has exceeded the maximum allowed size; "+
			"expression size: %d",
			parameter, len(text))
	}
	return &parser{parameter: parameter, text: text, tok: lex(text, 0)}, nil
}

// end errs if anything follows.
func (p *parser) end() error {
	if p.tok.kind != tEOF {
		return p.unexpected()
	}
	return nil
}

// tidy errs if there were redundant parentheses. It is asked when a condition or an action has been read:
// mistakes of syntax in it go before.
func (p *parser) tidy() error {
	if p.redundant {
		return exception.Invalid("Invalid %s: The expression has redundant parentheses;", p.parameter)
	}
	return nil
}

// operand reads a path, a value or a function, perhaps in parentheses.
func (p *parser) operand() (*node, error) {
	switch p.tok.kind {
	case tLParen:
		return p.group(p.operand)
	case tValueRef:
		return p.value(), nil
	case tName:
		name := p.tok
		if next := lex(p.text, name.end); next.kind == tLParen {
			p.next()
			args, err := p.operands()
			if err != nil {
				return nil, err
			}
			return p.node(node{op: opFunction, name: p.text[name.start:name.end], args: args}), nil
		}
	}
	path, err := p.path()
	if err != nil {
		return nil, err
	}
	return p.node(node{op: opPath, path: path}), nil
}

// operands reads operands in parentheses, at least one, and appends them to those given.
func (p *parser) operands(args ...*node) ([]*node, error) {
	for more := true; more; more = p.tok.kind == tComma {
		p.next()
		arg, err := p.operand()
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
	}
	return args, p.expect(tRParen)
}

func (p *parser) value() *node {
	n := p.node(node{op: opValue, name: p.text[p.tok.start:p.tok.end]})
	p.next()
	return n
}

// group reads parentheses around what inner reads.
func (p *parser) group(inner func() (*node, error)) (*node, error) {
	start := p.tok.start
	p.next()
	first := p.tok.start
	n, err := inner()
	if err != nil {
		return nil, err
	}
	if p.groupStart == first && p.groupEnd == p.prev.end {
		p.redundant = true
	}
	if err := p.expect(tRParen); err != nil {
		return nil, err
	}
	p.groupStart, p.groupEnd = start, p.prev.end
	return n, nil
}

// path reads a document path.
func (p *parser) path() (path, error) {
	if p.tok.kind != tName && p.tok.kind != tNameRef {
		return nil, p.unexpected()
	}
	result := path(p.steps.take(1)) // most paths are of one step
	result[0] = p.name()
	for {
		switch p.tok.kind {
		case tDot:
			p.next()
			if p.tok.kind != tName && p.tok.kind != tNameRef {
				return nil, p.unexpected()
			}
			result = append(result, p.name())
		case tLBracket:
			p.next()
			index := p.tok
			if err := p.expect(tNumber); err != nil {
				return nil, err
			}
			if err := p.expect(tRBracket); err != nil {
				return nil, err
			}
			result = append(result, indexStep(p.text[index.start:index.end]))
		default:
			return result, nil
		}
	}
}

func (p *parser) name() step {
	s := step{name: p.text[p.tok.start:p.tok.end], ref: p.tok.kind == tNameRef}
	p.next()
	return s
}

// indexStep returns the step of an index. One that no list can have is left as text for the checker: other
// mistakes go before.
func indexStep(digits string) step {
	i, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		return step{name: digits, index: outOfRange}
	}
	return step{index: int(i)}
}

func (p *parser) next() { p.prev, p.tok = p.tok, lex(p.text, p.tok.end) }

func (p *parser) expect(k kind) error {
	if p.tok.kind != k {
		return p.unexpected()
	}
	p.next()
	return nil
}

// unexpected is the error of a token that cannot stand where it stands.
func (p *parser) unexpected() error {
	name := "<EOF>"
	if p.tok.kind != tEOF {
		name = p.text[p.tok.start:p.tok.end]
	}
	near := p.text[p.prev.start:lex(p.text, p.tok.end).end]
	return exception.Invalid(`Invalid %s: Syntax error; token: "%s", near: "%s"`, p.parameter, name, near)
}

func (p *parser) node(n node) *node {
	result := &p.nodes.take(1)[0]
	*result = n
	return result
}

// operation returns a node with operands.
func (p *parser) operation(o op, operands ...*node) *node {
	args := p.args.take(len(operands))
	copy(args, operands)
	return p.node(node{op: o, args: args})
}
