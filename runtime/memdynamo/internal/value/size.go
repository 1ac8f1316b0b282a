package value

// MaxItemSize is the most bytes an item may have.
const MaxItemSize = 400 << 10

// collectionOverhead is what a list or map takes beside its elements, each of which takes one more byte than
// its own size.
const collectionOverhead = 3

// Size returns v's size in bytes by DynamoDB's rules. They stand in its developer guide ("DynamoDB item sizes
// and formats"); what the guide gives as approximate was measured on DynamoDB Local against the 400 KB limit.
func Size(v Value) int {
	switch v := v.(type) {
	case String:
		return len(v)
	case Number:
		return numberSize(v)
	case Binary:
		return len(v)
	case Strings:
		return sum(v, func(s string) int { return len(s) })
	case Numbers:
		return sum(v, numberSize)
	case Binaries:
		return sum(v, func(s string) int { return len(s) })
	case List:
		return collectionOverhead + len(v) + sum(v, Size)
	case Map:
		return collectionOverhead + len(v) + ItemSize(v)
	}
	return 1 // Bool, Null
}

// ItemSize returns the item's size in bytes: names and values.
func ItemSize(m Map) int {
	size := 0
	for name, v := range m {
		size += len(name) + Size(v)
	}
	return size
}

// maxNumberSize is the most bytes a number takes: the last one of a negative number is saved if need be.
const maxNumberSize = 21

// numberSize is one byte, one more for a sign, and one for every digit of base 100 from the first to the last
// that is not zero. Such a digit is a pair of decimal ones, counted from the point: 12 is one, 1.2 and 120
// are two.
func numberSize(n Number) int {
	count, exponent := n.digits()
	if count == 0 {
		return 1
	}
	const even = 1 << 10 // makes the powers of ten positive, so that division rounds down
	first, last := exponent+count-1+even, exponent+even
	size := 1 + first/2 - last/2 + 1
	if n.negative() {
		size++
	}
	return min(size, maxNumberSize)
}

func sum[T any](elements []T, size func(T) int) int {
	total := 0
	for _, e := range elements {
		total += size(e)
	}
	return total
}
