package expr

// function is a function of the language. Names are case-sensitive.
type function uint8

const (
	fnUnknown function = iota
	fnAttributeExists
	fnAttributeNotExists
	fnAttributeType
	fnBeginsWith
	fnContains
	fnSize
	fnIfNotExists
	fnListAppend
)

func functionOf(name string) function {
	switch name {
	case "attribute_exists":
		return fnAttributeExists
	case "attribute_not_exists":
		return fnAttributeNotExists
	case "attribute_type":
		return fnAttributeType
	case "begins_with":
		return fnBeginsWith
	case "contains":
		return fnContains
	case "size":
		return fnSize
	case "if_not_exists":
		return fnIfNotExists
	case "list_append":
		return fnListAppend
	}
	return fnUnknown
}

// operands returns how many operands f takes.
func (f function) operands() int {
	switch f {
	case fnAttributeExists, fnAttributeNotExists, fnSize:
		return 1
	}
	return 2
}

// ofUpdate reports whether f belongs in updates, or else in conditions.
func (f function) ofUpdate() bool { return f >= fnIfNotExists }

// mayStand reports whether f may stand as an operand (nested), or on its own: as a condition, or as what SET
// assigns.
func (f function) mayStand(nested bool) bool {
	switch f {
	case fnIfNotExists:
		return true
	case fnSize:
		return nested
	}
	return !nested
}
