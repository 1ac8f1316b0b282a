package dynamo

import (
	"fmt"
	"maps"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// The part of DynamoDB's expression language that the write paths use, for the simulation: a recursive
// descent that evaluates as it goes. Numbers are int64; the open bounds beyond that saturate.
type evaluator struct {
	tokens []string
	names  map[string]string
	values codec.Item
	item   codec.Item // as it was before the write
}

var tokenPattern = regexp.MustCompile(`[#:]?[A-Za-z0-9_]+|<>|[=(),+<-]`)

// evaluators remembers the tokens of the texts it has seen. It is used under its table's lock.
type evaluators map[string][]string

func (es evaluators) of(text string, names map[string]string, values, item codec.Item) *evaluator {
	tokens, ok := es[text]
	if !ok {
		tokens = tokenPattern.FindAllString(text, -1)
		es[text] = tokens
	}
	return &evaluator{tokens: tokens, names: names, values: values, item: item}
}

func (e *evaluator) peek() string {
	if len(e.tokens) == 0 {
		return ""
	}
	return e.tokens[0]
}

func (e *evaluator) next() string {
	t := e.peek()
	if t != "" {
		e.tokens = e.tokens[1:]
	}
	return t
}

func (e *evaluator) accept(t string) bool {
	if e.peek() == t {
		e.next()
		return true
	}
	return false
}

func (e *evaluator) expect(t string) {
	if got := e.next(); got != t {
		panic(fmt.Sprintf("expression: got %q, want %q", got, t))
	}
}

func (e *evaluator) name() string {
	t := e.next()
	if strings.HasPrefix(t, "#") {
		n, ok := e.names[t]
		if !ok {
			panic("expression: undefined name " + t)
		}
		return n
	}
	return t
}

// operand is a value or an attribute, nil where the item has none.
func (e *evaluator) operand() types.AttributeValue {
	if e.accept("if_not_exists") {
		e.expect("(")
		attr := e.item[e.name()]
		e.expect(",")
		other := e.operand()
		e.expect(")")
		if attr != nil {
			return attr
		}
		return other
	}
	if t := e.peek(); strings.HasPrefix(t, ":") {
		e.next()
		v, ok := e.values[t]
		if !ok {
			panic("expression: undefined value " + t)
		}
		return v
	}
	return e.item[e.name()]
}

func compare(a, b types.AttributeValue) (int, bool) {
	switch a := a.(type) {
	case *types.AttributeValueMemberN:
		if _, ok := b.(*types.AttributeValueMemberN); ok {
			x, y := number(a), number(b)
			switch {
			case x < y:
				return -1, true
			case x > y:
				return 1, true
			}
			return 0, true
		}
	case *types.AttributeValueMemberS:
		if b, ok := b.(*types.AttributeValueMemberS); ok {
			return strings.Compare(a.Value, b.Value), true
		}
	}
	return 0, false
}

func (e *evaluator) or() bool {
	v := e.and()
	for e.accept("OR") {
		v = e.and() || v
	}
	return v
}

func (e *evaluator) and() bool {
	v := e.term()
	for e.accept("AND") {
		v = e.term() && v
	}
	return v
}

func (e *evaluator) term() bool {
	switch e.peek() {
	case "(":
		e.next()
		v := e.or()
		e.expect(")")
		return v
	case "attribute_exists", "attribute_not_exists":
		want := e.next() == "attribute_exists"
		e.expect("(")
		_, has := e.item[e.name()]
		e.expect(")")
		return has == want
	}
	left := e.operand()
	switch op := e.next(); op {
	case "BETWEEN":
		lo := e.operand()
		e.expect("AND")
		hi := e.operand()
		if number(lo) > number(hi) {
			panic("ValidationException: BETWEEN with its bounds the wrong way round")
		}
		c1, ok1 := compare(left, lo)
		c2, ok2 := compare(left, hi)
		return ok1 && ok2 && c1 >= 0 && c2 <= 0
	case "=", "<", "<>":
		c, ok := compare(left, e.operand())
		switch op {
		case "=":
			return ok && c == 0
		case "<":
			return ok && c < 0
		}
		return !ok || c != 0
	default:
		panic("expression: operator " + op)
	}
}

// update returns the item after an update expression.
func (e *evaluator) update() codec.Item {
	after := maps.Clone(e.item)
	clause := ""
	for e.peek() != "" {
		if t := e.peek(); t == "SET" || t == "ADD" || t == "REMOVE" {
			clause = e.next()
		} else {
			e.expect(",")
		}
		name := e.name()
		switch clause {
		case "SET":
			e.expect("=")
			v := e.operand()
			if e.accept("+") {
				v = codec.N(number(v) + number(e.operand()))
			}
			after[name] = v
		case "ADD":
			add := number(e.operand())
			if old, ok := e.item[name]; ok {
				add += number(old)
			}
			after[name] = codec.N(add)
		case "REMOVE":
			delete(after, name)
		}
	}
	return after
}
