package expr

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// set is one of the three kinds of sets: sorted slices without duplicates.
type set[T any] interface {
	~[]T
	value.Value
}

func has[T any](members []T, member T, compare func(T, T) int) bool {
	_, found := slices.BinarySearchFunc(members, member, compare)
	return found
}

// with returns v, which must be a set of the operand's kind, and the operand's members.
func with[S set[T], T any](v value.Value, operand S, compare func(T, T) int) (value.Value, error) {
	old, err := typed[S](v, nil)
	if err != nil {
		return nil, err
	}
	sum := slices.Concat(old, operand)
	slices.SortFunc(sum, compare)
	return slices.CompactFunc(sum, func(a, b T) bool { return compare(a, b) == 0 }), nil
}

// without returns v, which must be a set of the operand's kind, less the operand's members: nil if none is
// left.
func without[S set[T], T any](v value.Value, operand S, compare func(T, T) int) (value.Value, error) {
	old, err := typed[S](v, nil)
	if err != nil {
		return nil, err
	}
	var rest S
	for _, member := range old {
		if !has(operand, member, compare) {
			rest = append(rest, member)
		}
	}
	if rest == nil {
		return nil, nil
	}
	return rest, nil
}
