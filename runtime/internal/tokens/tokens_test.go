package tokens_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/tokens"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

// budgets is a resource with tokens and money, where a 0 means 2 tokens and a cent.
func budgets() *store.Spec {
	return &store.Spec{
		Resource: "gpt-4", Limits: []string{"tpm", "day"}, Units: []string{"", "USD"},
		Kinds: []store.Kind{{Name: "user", Prefix: "user-", Parent: store.NoParent,
			Limits: []bucket.Limit{
				bucket.Per(100, time.Minute),
				{Capacity: int64(10 * money.Unit), Burst: int64(10 * money.Unit), Period: 86_400_000},
			},
			PerCall: []int64{2, int64(money.Cent)},
		}},
	}
}

// TestScale: tokens become millitokens, and money stays in nano-units.
func TestScale(t *testing.T) {
	for _, test := range []struct {
		cost, want []int64
		perCall    bool
	}{
		{[]int64{3, int64(money.Unit)}, []int64{3_000, int64(money.Unit)}, true},
		{[]int64{0, 0}, []int64{2_000, int64(money.Cent)}, true},
		{[]int64{0, 0}, []int64{0, 0}, false},
		{[]int64{1e12, int64(money.Unlimited)}, []int64{1e15, 1e17}, false},
	} {
		cost := slices.Clone(test.cost)
		empty, err := tokens.Scale(budgets(), 0, test.perCall, cost)
		if err != nil || !slices.Equal(cost, test.want) || empty != (cost[0]+cost[1] == 0) {
			t.Errorf("%v became %v, %v, %v, want %v", test.cost, cost, empty, err, test.want)
		}
	}
}

// TestScaleRefuses: what saturated counts become is refused, and so is what no call can take.
func TestScaleRefuses(t *testing.T) {
	for cost, want := range map[[2]int64]string{
		{0, math.MinInt64}: `sluice: gpt-4: cost of day "-9223372036.854775808 USD" comes from a negative count ` +
			`of a usage: pass counts from 0 up`,
		{math.MinInt64, 0}: `sluice: gpt-4: cost of tpm "-9223372036854775808" comes from a negative count of ` +
			`a usage: pass counts from 0 up`,
		{0, -int64(money.Cent)}: `sluice: gpt-4: cost of day "-0.01 USD" is negative: to give tokens back, ` +
			`settle for less or release the lease`,
		{0, math.MaxInt64}: `sluice: gpt-4: cost of day "9223372036.854775807 USD" is above 100000000 USD, the ` +
			`most that one call can take`,
		{0, int64(money.Unlimited) + 1}: `sluice: gpt-4: cost of day "100000000.000000001 USD" is above ` +
			`100000000 USD, the most that one call can take`,
		{math.MaxInt64, 0}: `sluice: gpt-4: cost of tpm "9223372036854775807" is above 1000000000000, the most ` +
			`that one call can take`,
	} {
		_, err := tokens.Scale(budgets(), 0, true, cost[:])
		if invalid, ok := errors.AsType[*store.InvalidError](err); !ok || invalid.Error() != want {
			t.Errorf("%v: %v\nwant %s", cost, err, want)
		}
	}
}
