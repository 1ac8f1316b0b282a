package text

import (
	"math"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// Fields of the hash of a bucket's limit. Those of its last fill are there if it was ever filled.
const (
	TokensField = "tokens"
	SinceField  = "lastRefill"

	filledByField = "filledBy" // the version of the overrides
	filledToField = "filledTo" // the burst in tokens
	filledAtField = "filledAt" // when that was, in ms
)

// BucketFields returns all fields, in the order that Balance takes.
func BucketFields() []string {
	return []string{TokensField, SinceField, filledByField, filledToField, filledAtField}
}

// Balance decodes fields, which has the first if the hash is there: the millitokens at refilled, rounded down
// as in the script, and refilled in ms. It fails, naming the field, for one that is not a number.
func Balance(fields []any) (tokens, refilled int64, err error) {
	names, numbers := BucketFields(), make([]float64, len(fields))
	if fields[2] == nil { // never filled
		names = names[:2]
	}
	for i, field := range names {
		if numbers[i], err = Number(field, fields[i]); err != nil {
			return 0, 0, err
		}
	}
	return int64(math.Floor((numbers[0] + 1e-9) * bucket.Milli)), int64(numbers[1]), nil
}

// Finite reports whether balances that a script has returned are numbers: for infinite ones and for no number
// Redis returns the least int64.
func Finite(balances []int64) bool { return !slices.Contains(balances, math.MinInt64) }
