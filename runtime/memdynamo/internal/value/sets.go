package value

import (
	"slices"
	"strings"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

func decodeStrings(w []*string) (Value, error) {
	if len(w) == 0 {
		return nil, errParameter("An string set  may not be empty")
	}
	set := make(Strings, len(w))
	for i, s := range w {
		if s == nil {
			return nil, errParameter("An string set may not have a null string as a member")
		}
		set[i] = *s
	}
	slices.Sort(set)
	if len(slices.Compact(set)) < len(w) {
		return nil, errParameter("Input collection %s contains duplicates.", listing(w))
	}
	return set, nil
}

func decodeNumbers(w []*string) (Value, error) {
	if len(w) == 0 {
		return nil, errParameter("An number set  may not be empty")
	}
	set := make(Numbers, len(w))
	for i, text := range w {
		if text == nil {
			return nil, errNotNumeric("")
		}
		n, err := ParseNumber(*text)
		if err != nil {
			return nil, err
		}
		set[i] = n
	}
	slices.SortFunc(set, Number.Cmp)
	if len(slices.CompactFunc(set, func(a, b Number) bool { return a.Cmp(b) == 0 })) < len(w) {
		return nil, exception.Invalid("Input collection contains duplicates")
	}
	return set, nil
}

func decodeBinaries(w []*string) (Value, error) {
	if len(w) == 0 {
		return nil, errParameter("Binary sets should not be empty")
	}
	set := make(Binaries, len(w))
	for i, text := range w {
		if text == nil {
			return nil, errNull()
		}
		s, err := decodeBinary(*text)
		if err != nil {
			return nil, err
		}
		set[i] = s
	}
	slices.Sort(set)
	if len(slices.Compact(set)) < len(w) {
		return nil, errParameter("Input collection %sof type BS contains duplicates.", listing(w))
	}
	return set, nil
}

// listing is how the service's messages print a set.
func listing(w []*string) string {
	members := make([]string, len(w))
	for i, s := range w {
		members[i] = *s
	}
	return "[" + strings.Join(members, ", ") + "]"
}
