package expr

import "slices"

// Sets are sorted slices without duplicates.

func has[T any](set []T, member T, compare func(T, T) int) bool {
	_, found := slices.BinarySearchFunc(set, member, compare)
	return found
}

// union returns the members of a or b, in a slice of its own.
func union[T any](a, b []T, compare func(T, T) int) []T {
	result := slices.Concat(a, b)
	slices.SortFunc(result, compare)
	return slices.CompactFunc(result, func(x, y T) bool { return compare(x, y) == 0 })
}

// difference returns the members of a that are not in b, in a slice of its own.
func difference[T any](a, b []T, compare func(T, T) int) []T {
	var result []T
	for _, member := range a {
		if !has(b, member, compare) {
			result = append(result, member)
		}
	}
	return result
}
