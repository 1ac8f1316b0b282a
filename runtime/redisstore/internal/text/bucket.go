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

// OfField is in each hash of a bucket: the entity whose plan gave its numbers, if a plan did.
const OfField = "of"

// Fields of the hash of a bucket's windowed limit.
const (
	UsedField = "used" // millitokens of the open window
	EndField  = "end"  // when it ends, in ms
)

// Fields of the hash of a bucket's limit that counts holds.
const (
	EvenField  = "h0" // millitokens held in epochs of even numbers
	OddField   = "h1"
	EpochField = "e" // the lowest epoch that is counted
)

// BucketFields returns all fields, in the order that Balance, Window and Holds take.
func BucketFields() []string {
	return []string{TokensField, SinceField, filledByField, filledToField, filledAtField, UsedField, EndField,
		EvenField, OddField, EpochField, OfField}
}

// Stored reports whether fields are those of a hash that is there.
func Stored(fields []any) bool { return fields[0] != nil || HasWindow(fields) || HasHolds(fields) }

// HasHolds reports whether fields are those of a limit that counts holds.
func HasHolds(fields []any) bool { return fields[7] != nil || fields[8] != nil || fields[9] != nil }

// HasWindow reports whether fields are those of a windowed limit.
func HasWindow(fields []any) bool { return fields[5] != nil || fields[6] != nil }

// Of returns the entity whose plan gave a limit its numbers, "" for none.
func Of(fields []any) string {
	of, _ := fields[10].(string)
	return of
}

// Window decodes the fields of a windowed limit. It fails, naming the field, for one that is not a number.
func Window(fields []any) (used, ends int64, err error) {
	numbers, err := integers(fields, 5, 7)
	return numbers[0], numbers[1], err
}

// Holds decodes the fields of a limit that counts holds. It fails as Window does.
func Holds(fields []any) (cells [2]int64, epoch int64, err error) {
	numbers, err := integers(fields, 7, 10)
	return [2]int64(numbers[:2]), numbers[2], err
}

// integers decodes fields from first on, up to last.
func integers(fields []any, first, last int) (numbers [3]int64, err error) {
	for i := first; i < last; i++ {
		n, err := Number(BucketFields()[i], fields[i])
		if err != nil {
			return [3]int64{}, err
		}
		numbers[i-first] = int64(n)
	}
	return numbers, nil
}

// Balance decodes the fields of a limit that refills: the millitokens at refilled, rounded down as in the
// script, and refilled in ms. It fails, naming the field, for one that is not a number.
func Balance(fields []any) (tokens, refilled int64, err error) {
	names, numbers := BucketFields()[:5], make([]float64, len(fields))
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
