package differential_test

import "strings"

var comparators = []string{"=", "<>", "<", "<=", ">", ">="}

// condition is a condition or a filter. depth bounds how it is nested.
func (a *author) condition(depth int) string {
	if depth > 0 && a.oneIn(3) {
		switch a.upTo(4) {
		case 0:
			return a.condition(depth-1) + " " + a.word("AND") + " " + a.condition(depth-1)
		case 1:
			return a.condition(depth-1) + " " + a.word("OR") + " " + a.condition(depth-1)
		case 2:
			return a.word("NOT") + " " + a.condition(depth-1)
		default:
			return "(" + a.condition(depth-1) + ")"
		}
	}
	switch a.upTo(11) {
	case 0:
		path, _ := a.path("")
		return "attribute_exists(" + path + ")"
	case 1:
		path, _ := a.path("")
		return "attribute_not_exists (" + path + ")"
	case 2, 3, 4:
		path, kind := a.path(pick(a.dice, "N", "S", ""))
		return path + " " + pick(a.dice, comparators...) + " " + a.operand(kind)
	case 5:
		kind := pick(a.dice, "N", "S", "B", "")
		return a.operand(kind) + " " + pick(a.dice, comparators...) + a.operand(kind)
	case 6:
		return a.between()
	case 7:
		path, kind := a.path("")
		values := []string{a.operand(kind)}
		for range a.upTo(3) {
			values = append(values, a.operand(kind))
		}
		if a.fault(60) {
			for len(values) < 101 {
				values = append(values, values[0])
			}
		}
		return path + " " + a.word("IN") + " (" + strings.Join(values, ", ") + ")"
	case 8:
		return a.function()
	case 9:
		path, kind := a.path(pick(a.dice, "S", "SS", "NS", "L", "BS"))
		element := map[string]string{"SS": "S", "NS": "N", "BS": "B", "L": "N", "S": "S"}[kind]
		return "contains(" + path + ", " + a.operand(element) + ")"
	default:
		path, _ := a.path(pick(a.dice, "S", "L", "M", "SS", "B"))
		return "size(" + path + ") " + pick(a.dice, comparators...) + " " + a.operand("N")
	}
}

// between is mostly of bounds that are in order: the others are refused.
func (a *author) between() string {
	path, kind := a.path(pick(a.dice, "N", "S"))
	low, high := a.operand(kind), a.operand(kind)
	return path + " " + a.word("BETWEEN") + " " + low + " " + a.word("AND") + " " + high
}

func (a *author) function() string {
	switch a.upTo(5) {
	case 0, 1:
		path, _ := a.path("")
		kind := pick(a.dice, kinds...)
		if a.fault(12) {
			kind = "X"
		}
		return "attribute_type(" + path + ", " + a.hold(textValue(kind)) + ")"
	case 2, 3:
		path, kind := a.path(pick(a.dice, "S", "B"))
		return "begins_with(" + path + ", " + a.operand(kind) + ")"
	default:
		path, _ := a.path("")
		if a.fault(3) {
			return pick(a.dice, "nothing", "begins_with", "size", "ATTRIBUTE_EXISTS", "if_not_exists") + "(" +
				path + ")"
		}
		return a.hold(textValue("abc")) + " = " + path
	}
}

// operand is a value of that kind, a path or a size.
func (a *author) operand(kind string) string {
	switch {
	case a.oneIn(6):
		path, _ := a.path(kind)
		return path
	case a.oneIn(12):
		path, _ := a.path("S")
		return "size(" + path + ")"
	}
	return a.constant(kind)
}

// update is an update expression of one to four clauses in any order.
func (a *author) update() string {
	var clauses []string
	for _, clause := range some(a.dice, 4, []string{"SET", "REMOVE", "ADD", "DELETE"}) {
		var actions []string
		for range 1 + a.upTo(3) {
			actions = append(actions, a.action(clause))
		}
		clauses = append(clauses, a.word(clause)+" "+strings.Join(actions, ", "))
	}
	if a.fault(60) {
		clauses = append(clauses, clauses[0])
	}
	return strings.Join(clauses, " ")
}

// action is one element of a clause.
func (a *author) action(clause string) string {
	kind := ""
	switch clause {
	case "ADD":
		kind = pick(a.dice, "N", "N", "SS", "NS", "BS")
	case "DELETE":
		kind = pick(a.dice, "SS", "NS", "BS")
	}
	path, found := a.fresh(kind)
	switch {
	case clause == "REMOVE":
		return path
	case clause == "SET":
		if a.fault(60) {
			path = a.name(a.table.key().hash.name)
		}
		return path + " = " + a.assigned(path, found)
	}
	return path + " " + a.constant(kind)
}

// assigned is the right-hand side of SET for a path of that kind.
func (a *author) assigned(path, kind string) string {
	switch {
	case kind == "N" && a.oneIn(2):
		return a.term(path, "N") + pick(a.dice, " + ", " - ", "+", "-") + a.term(path, "N")
	case kind == "L" && a.oneIn(2):
		return "list_append(" + a.term(path, "L") + ", " + a.term(path, "L") + ")"
	}
	return a.term(path, kind)
}

// term is an operand of SET; path is where its result goes.
func (a *author) term(path, kind string) string {
	switch a.upTo(8) {
	default:
		return a.constant(kind)
	case 5:
		return path
	case 6:
		other, _ := a.path(kind)
		return other
	case 7:
		other := path
		if a.oneIn(2) {
			other, _ = a.path(kind)
		}
		if a.fault(15) {
			other = a.constant(kind)
		}
		return "if_not_exists(" + other + ", " + a.term(path, kind) + ")"
	}
}

// projection is a list of paths.
func (a *author) projection() string {
	var paths []string
	for range 1 + a.upTo(4) {
		path, _ := a.fresh("")
		paths = append(paths, path)
	}
	return strings.Join(paths, ", ")
}

// keyCondition is a partition of the index, and a range in it.
func (a *author) keyCondition(x index) string {
	hash := a.name(x.hash.name) + " = " + a.hold(a.keyValue(x.hash))
	if a.fault(20) {
		hash = a.name(x.hash.name) + " " + pick(a.dice, "<", "<>", ">=") + " " + a.constant(x.hash.kind)
	}
	if x.sort.name == "" || a.oneIn(3) {
		return hash
	}
	sort := a.sortCondition(x)
	if a.fault(15) {
		switch a.upTo(3) {
		case 0:
			return sort
		case 1:
			return hash + " " + pick(a.dice, "OR", "AND NOT") + " " + sort
		default:
			return hash + " AND " + sort + " AND " + a.condition(0)
		}
	}
	switch {
	case a.oneIn(8):
		return "(" + hash + ") " + a.word("AND") + " (" + sort + ")"
	case a.oneIn(4):
		return sort + " " + a.word("AND") + " " + hash
	}
	return hash + " " + a.word("AND") + " " + sort
}

func (a *author) sortCondition(x index) string {
	name := a.name(x.sort.name)
	one := func() string { return a.hold(a.keyValue(x.sort)) }
	switch a.upTo(4) {
	case 0:
		return name + " = " + one()
	case 1:
		return name + " " + pick(a.dice, "<", "<=", ">", ">=") + " " + one()
	case 2:
		return name + " " + a.word("BETWEEN") + " " + one() + " " + a.word("AND") + " " + one()
	default:
		if x.sort.kind == "N" && !a.fault(10) {
			return name + " >= " + one()
		}
		return "begins_with(" + name + ", " + one() + ")"
	}
}
