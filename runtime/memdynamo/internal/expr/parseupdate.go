package expr

// parseUpdate reads a whole update.
func parseUpdate(text string) ([]action, []clause, error) {
	p, err := newParser(UpdateExpression, text)
	if err != nil {
		return nil, nil, err
	}
	actions := make([]action, 0, 4)
	clauses := make([]clause, 0, clauseDelete+1)
	for p.tok.kind != tEOF || len(clauses) == 0 {
		if p.tok.kind < tSet || p.tok.kind > tDelete {
			return nil, nil, p.unexpected()
		}
		c := clause(p.tok.kind - tSet)
		clauses = append(clauses, c)
		for more := true; more; more = p.tok.kind == tComma {
			p.next()
			a, err := p.action(c)
			if err != nil {
				return nil, nil, err
			}
			actions = append(actions, a)
		}
	}
	return actions, clauses, p.end()
}

// action reads one element of a clause.
func (p *parser) action(c clause) (action, error) {
	target, err := p.path()
	if err != nil || c == clauseRemove {
		return action{clause: c, target: target}, err
	}
	var operand *node
	if c == clauseSet {
		if err := p.expect(tEQ); err != nil {
			return action{}, err
		}
		if operand, err = p.sum(); err == nil {
			err = p.tidy()
		}
	} else {
		if p.tok.kind != tValueRef {
			return action{}, p.unexpected()
		}
		operand = p.value()
	}
	return action{clause: c, target: target, operand: operand}, err
}

// sum reads what SET assigns: an operand, a sum or a difference of two.
func (p *parser) sum() (*node, error) {
	var left *node
	var err error
	if p.tok.kind == tLParen {
		left, err = p.group(p.sum)
	} else {
		left, err = p.operand()
	}
	if err != nil || left.op > opFunction || p.tok.kind != tPlus && p.tok.kind != tMinus {
		return left, err
	}
	o := opPlus + op(p.tok.kind-tPlus)
	p.next()
	right, err := p.operand()
	if err != nil {
		return nil, err
	}
	return p.operation(o, left, right), nil
}
