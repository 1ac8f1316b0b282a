package expr

// parseCondition reads a whole condition, filter or key condition.
func parseCondition(parameter, text string) (*node, error) {
	p, err := newParser(parameter, text)
	if err != nil {
		return nil, err
	}
	n, err := p.or(false)
	if err != nil {
		return nil, err
	}
	return n, p.end()
}

// or reads terms joined by OR. In parentheses a mere operand may stand in place of a condition: what follows
// tells.
func (p *parser) or(inParens bool) (*node, error) {
	left, err := p.and(inParens)
	for err == nil && p.tok.kind == tOr {
		p.next()
		var right *node
		if right, err = p.and(false); err == nil {
			left = p.operation(opOr, left, right)
		}
	}
	return left, err
}

func (p *parser) and(inParens bool) (*node, error) {
	left, err := p.not(inParens)
	for err == nil && p.tok.kind == tAnd {
		p.next()
		var right *node
		if right, err = p.not(false); err == nil {
			left = p.operation(opAnd, left, right)
		}
	}
	return left, err
}

func (p *parser) not(inParens bool) (*node, error) {
	if p.tok.kind != tNot {
		n, err := p.comparison(inParens)
		if err == nil && n.op >= opFunction { // or else the comparison is still to come
			err = p.tidy()
		}
		return n, err
	}
	p.next()
	inner, err := p.not(false)
	if err != nil {
		return nil, err
	}
	return p.operation(opNot, inner), nil
}

// comparison reads a comparison, a function, or a condition in parentheses.
func (p *parser) comparison(inParens bool) (*node, error) {
	var left *node
	var err error
	if p.tok.kind == tLParen {
		left, err = p.group(func() (*node, error) { return p.or(true) })
	} else {
		left, err = p.operand()
	}
	if err != nil {
		return nil, err
	}
	if left.op > opFunction { // a condition: nothing compares with one
		return left, nil
	}
	switch k := p.tok.kind; {
	case tEQ <= k && k <= tGE:
		p.next()
		right, err := p.operand()
		if err != nil {
			return nil, err
		}
		return p.operation(opEQ+op(k-tEQ), left, right), nil
	case k == tBetween:
		return p.between(left)
	case k == tIn:
		p.next()
		if p.tok.kind != tLParen {
			return nil, p.unexpected()
		}
		args, err := p.operands(left)
		if err != nil {
			return nil, err
		}
		return p.node(node{op: opIn, args: args}), nil
	case left.op == opFunction, inParens && k == tRParen:
		return left, nil
	}
	return nil, p.unexpected()
}

func (p *parser) between(left *node) (*node, error) {
	p.next()
	lower, err := p.operand()
	if err != nil {
		return nil, err
	}
	if err := p.expect(tAnd); err != nil {
		return nil, err
	}
	upper, err := p.operand()
	if err != nil {
		return nil, err
	}
	return p.operation(opBetween, left, lower, upper), nil
}
