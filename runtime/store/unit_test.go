package store_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
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
	large := &store.CostTooLargeError{Resource: "gpt-4", Entity: "user-1", Limit: "day", Unit: "USD",
		Requested: 5_001, Burst: 5_000}
	if got := store.Exceeds(budgets(), "user-1", img, []int64{0, 5_001}, 0); !reflect.DeepEqual(got, large) {
		t.Errorf("%+v, want %+v", got, large)
	}
}
