package grpclimit_test

import (
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/grpclimit"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestStatusOfMoney: violations have decimals and the currency, and no quota_value, which is an integer.
func TestStatusOfMoney(t *testing.T) {
	denied := store.AddRefusal(nil, runtime.Refusal{
		Resource: "gpt-4", Entity: "org-secret", Limit: "month", Unit: "USD", RetryAfter: time.Minute,
		Requested: int64(2*money.Unit + money.Nano), Available: int64(25 * money.Cent), Resets: time.Unix(3600, 0),
	})
	for want, err := range map[string]error{
		"0.25 of the 2.000000001 USD that the request needs: retry after 60 s, resets 1970-01-01T01:00:00Z": denied,
		"the request needs 600 USD, and there is never more than 500 USD": &runtime.CostTooLargeError{
			Resource: "gpt-4", Limit: "month", Unit: "USD", Requested: int64(600 * money.Unit),
			Burst: int64(500 * money.Unit),
		},
	} {
		status, ok := grpclimit.Status(t.Context(), err)
		if !ok {
			t.Fatalf("no status for %v", err)
		}
		found := false
		for _, detail := range status.Details() {
			if failure, ok := detail.(*errdetails.QuotaFailure); ok {
				v := failure.GetViolations()[0]
				found = v.GetDescription() == want && v.GetQuotaValue() == 0 && v.GetQuotaId() == "month"
			}
		}
		if !found {
			t.Errorf("%v\nwant %s", status.Details(), want)
		}
	}
}
