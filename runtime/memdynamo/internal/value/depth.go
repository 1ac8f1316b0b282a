package value

// MaxDepth is how many levels of lists and maps a value may have, and an item, whose own map is its first
// level.
const MaxDepth = 32

// Depth returns how many levels of lists and maps v has: 0 of a string, 1 of an empty list. The values of a
// request are checked when they are decoded, but an update can nest them deeper.
func Depth(v Value) int {
	deepest := -1
	switch v := v.(type) {
	case List:
		deepest = 0
		for _, element := range v {
			deepest = max(deepest, Depth(element))
		}
	case Map:
		deepest = 0
		for _, element := range v {
			deepest = max(deepest, Depth(element))
		}
	}
	return deepest + 1
}
