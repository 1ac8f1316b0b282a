package value

import (
	"maps"
	"slices"
	"strings"
)

// Equal reports whether a and b have the same type and value. Sets are equal whatever the order they came in.
func Equal(a, b Value) bool {
	switch a := a.(type) {
	case Number:
		b, ok := b.(Number)
		return ok && a.Cmp(b) == 0
	case Strings:
		b, ok := b.(Strings)
		return ok && slices.Equal(a, b)
	case Numbers:
		b, ok := b.(Numbers)
		return ok && slices.EqualFunc(a, b, func(x, y Number) bool { return x.Cmp(y) == 0 })
	case Binaries:
		b, ok := b.(Binaries)
		return ok && slices.Equal(a, b)
	case List:
		b, ok := b.(List)
		return ok && slices.EqualFunc(a, b, Equal)
	case Map:
		b, ok := b.(Map)
		return ok && maps.EqualFunc(a, b, Equal)
	}
	return a == b // String, Binary, Bool, Null, and no value at all
}

// Compare orders two values of the same type out of S, N and B; ok is false for any others. Strings are
// ordered by their UTF-8 bytes, numbers by their value, binaries by their bytes as unsigned numbers.
func Compare(a, b Value) (order int, ok bool) {
	switch a := a.(type) {
	case String:
		if b, ok := b.(String); ok {
			return strings.Compare(string(a), string(b)), true
		}
	case Number:
		if b, ok := b.(Number); ok {
			return a.Cmp(b), true
		}
	case Binary:
		if b, ok := b.(Binary); ok {
			return strings.Compare(string(a), string(b)), true
		}
	}
	return 0, false
}
