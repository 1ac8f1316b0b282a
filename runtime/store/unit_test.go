package store_test

import (
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

// budgets is a resource with a limit of tokens beside one of money.
func budgets() *store.Spec {
	return &store.Spec{Resource: "gpt-4", Limits: []string{"tpd", "day"}, Units: []string{"", "USD"}}
}

// TestUnits: of two limits with the same millitokens, a denial counts one in tokens and one in nano-units.
func TestUnits(t *testing.T) {
	end := time.UnixMilli(90_000)
	limit := bucket.Limit{Capacity: 5_000, Burst: 5_000, Period: 60_000}
	balance := bucket.Balance{Limit: limit, Tokens: 2_500, Ends: end.UnixMilli()}
	img := &bucket.Image{Balances: []bucket.Balance{balance, balance}, Missing: make([]bool, 2)}
	denied := store.Refuse(nil, budgets(), "user-1", img, []int64{4_000, 4_000}, 30_000)
	want := []store.Refusal{
		{Resource: "gpt-4", Entity: "user-1", Limit: "tpd", Requested: 4, Available: 2, RetryAfter: time.Minute,
			Resets: end},
		{Resource: "gpt-4", Entity: "user-1", Limit: "day", Unit: "USD", Requested: 4_000, Available: 2_500,
			RetryAfter: time.Minute, Resets: end},
	}
	if len(denied.Refusals) != len(want) || denied.Refusals[0] != want[0] || denied.Refusals[1] != want[1] {
		t.Errorf("%+v, want %+v", denied.Refusals, want)
	}
	if denied.Unit != "" || denied.Requested != 4 {
		t.Errorf("%+v, want it to name the first", denied)
	}
	large := store.Exceeds(budgets(), "user-1", img, []int64{0, 5_001}, 0)
	wantText(t, large, "sluice: gpt-4 for user-1: cost of 0.000005001 USD exceeds 0.000005 USD, the capacity "+
		"of "+
		"day, and can never be served: split the call, or raise the capacity")
}

// TestTextsOfMoney: errors have decimals and the currency.
func TestTextsOfMoney(t *testing.T) {
	denied := store.AddRefusal(nil, store.Refusal{
		Resource: "gpt-4", Entity: "user-1", Limit: "day", Unit: "USD", RetryAfter: time.Hour,
		Requested: int64(4 * money.Unit / 1000), Available: int64(25 * money.Cent),
	})
	wantText(t, denied,
		"sluice: gpt-4 denied for user-1: day has 0.25 of 0.004 USD, retry after 1h0m0s")
	denied = store.AddRefusal(nil, store.Refusal{Resource: "gpt-4", Entity: "user-1", Limit: "tpm", Requested: 4,
		RetryAfter: time.Second})
	wantText(t, denied, "sluice: gpt-4 denied for user-1: tpm has 0 of 4 tokens, retry after 1s")
}

func wantText(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}
