package store

import (
	"math"
	"strconv"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/money"
)

// Unit returns the currency of the i-th limit if it is one of money, and "" if it is one of tokens.
func (s *Spec) Unit(i int) string {
	if s.Units == nil {
		return ""
	}
	return s.Units[i]
}

// Scale returns how many stored millitokens one token of the i-th limit is: 1,000. For a limit of money it is
// 1, since nano-units are stored as they are.
func (s *Spec) Scale(i int) int64 {
	if s.Unit(i) != "" {
		return 1
	}
	return bucket.Milli
}

// Whole turns stored millitokens of the i-th limit into whole tokens, rounded down, or nano-units of money.
func (s *Spec) Whole(i int, milli int64) int64 { return milli / s.Scale(i) }

// CheckLimit returns what is wrong with l as the i-th limit: a clause without l's name, or "". perCall is in
// whole tokens, or in nano-units of money.
func (s *Spec) CheckLimit(i int, l bucket.Limit, perCall int64) string {
	if s.Unit(i) != "" {
		return l.CheckMoney(perCall)
	}
	return l.Check(perCall)
}

// Sum adds counts of usages for a limit of tokens. It saturates, and is negative if a count is, so that no
// negative count takes from another. Generated code calls it.
func Sum(counts ...int64) (sum int64) {
	signs := int64(0)
	for _, n := range counts {
		signs |= n
		sum = bucket.Add(sum, n)
	}
	if signs < 0 {
		return math.MinInt64
	}
	return sum
}

// Text writes a number of a limit with its unit: 0.004 USD. A number of tokens has none.
func Text(unit string, n int64) string {
	if unit == "" {
		return strconv.FormatInt(n, 10)
	}
	return money.Amount(n).String() + " " + unit
}
