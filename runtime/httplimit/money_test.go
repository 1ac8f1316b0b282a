package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/httplimit"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

// broke is a denial by a budget.
func broke() *runtime.DeniedError {
	return store.AddRefusal(nil, runtime.Refusal{
		Resource: "gpt-4", Entity: "org-secret", Limit: "month", Unit: "USD", RetryAfter: time.Hour,
		Requested: int64(2*money.Unit + money.Nano), Available: int64(125 * money.Cent),
		Resets: time.Unix(3600, 0),
	})
}

// TestProblemOfMoney: amounts are strings with all decimals.
func TestProblemOfMoney(t *testing.T) {
	large := &runtime.CostTooLargeError{Resource: "gpt-4", Entity: "org-secret", Limit: "month", Unit: "USD",
		Requested: int64(600 * money.Unit), Burst: int64(500 * money.Unit)}
	for want, err := range map[string]error{
		`{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests",` +
			`"status":429,"detail":"month has 1.25 of the 2.000000001 USD that the request needs: retry after ` +
			`3600 s.","resource":"gpt-4","limits":[{"limit":"month","money":{"currency":"USD",` +
			`"requested":"2.000000001","available":"1.25"},"retry_after":3600,"resets":"1970-01-01T01:00:00Z"}],` +
			`"violated-policies":["month"],"retry_after":3600}` + "\n": broke(),
		`{"type":"about:blank","title":"Bad Request","status":400,"detail":"The request needs 600 USD of month, ` +
			`which never has more than 500 USD: make it smaller.","resource":"gpt-4","limits":[{"limit":"month",` +
			`"money":{"currency":"USD","requested":"600","capacity":"500"}}]}` + "\n": large,
	} {
		w := httptest.NewRecorder()
		if !httplimit.WriteError(w, httptest.NewRequest(http.MethodGet, "/", nil), err) || w.Body.String() != want {
			t.Errorf("%s\nwant %s", w.Body, want)
		}
	}
}

// TestStatus: the named limits' denials have their own status, also beside others, and no other error has.
func TestStatus(t *testing.T) {
	tpm := httplimit.Status(generated.GPT4TPM, http.StatusPaymentRequired)
	both := store.AddRefusal(broke(), runtime.Refusal{Resource: "gpt-4", Limit: "tpm", RetryAfter: time.Second})
	for _, test := range []struct {
		name string
		err  error
		opts []httplimit.Option
		want int
	}{
		{"by it", denied, []httplimit.Option{tpm}, 402},
		{"beside a longer one", both, []httplimit.Option{tpm}, 402},
		{"by another", broke(), []httplimit.Option{tpm}, 429},
		{"the first that denies", denied, []httplimit.Option{httplimit.Status(generated.GPT4RPM, 403), tpm}, 403},
		{"without", denied, nil, 429},
		{"too large", &runtime.CostTooLargeError{Resource: "gpt-4", Limit: "tpm"}, []httplimit.Option{tpm}, 400},
	} {
		w := httptest.NewRecorder()
		httplimit.WriteError(w, httptest.NewRequest(http.MethodGet, "/", nil), test.err, test.opts...)
		if w.Code != test.want {
			t.Errorf("%s: %d, want %d", test.name, w.Code, test.want)
		}
	}
}

// TestStatusPanics names the mistake in its arguments.
func TestStatusPanics(t *testing.T) {
	for want, status := range map[string]func(){
		"httplimit: Status(<nil>, 402): pass a limit, such as limits.GPT4TPM, and a status from 400 to 599, such " +
			"as 402": func() { httplimit.Status(nil, 402) },
		"httplimit: Status(tpm, 200): pass a limit, such as limits.GPT4TPM, and a status from 400 to 599, such " +
			"as " +
			"402": func() { httplimit.Status(generated.GPT4TPM, 200) },
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("%v\nwant %s", got, want)
				}
			}()
			status()
		}()
	}
}

// TestHeadersOfMoney: a Decimal has three decimals, never more than there is, and X headers have all.
func TestHeadersOfMoney(t *testing.T) {
	limit := bucket.Limit{Capacity: int64(500 * money.Unit), Burst: int64(500 * money.Unit), Period: 86_400_000}
	for available, want := range map[money.Amount][2]string{
		1_999_999_999 * money.Nano: {`"month";r=1.999;t=60`, "1.999999999"},
		500 * money.Unit:           {`"month";r=500.0;t=60`, "500"},
		money.Nano:                 {`"month";r=0.0;t=60`, "0.000000001"},
	} {
		l := &levelled{denied: &runtime.DeniedError{}, balances: []runtime.Balance{{
			Resource: "gpt-4", Limit: "month", Unit: "USD", Params: limit, Available: int64(available),
			Full: time.Minute,
		}}}
		l.denied.RetryAfter = time.Hour
		h := l.answer(httplimit.XHeaders()).Header()
		if got := [2]string{h.Get("RateLimit"), h.Get("X-RateLimit-Remaining")}; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := h.Get("RateLimit-Policy"); got != `"month";q=500.0;qu="USD";w=86400` {
			t.Errorf("policy %s", got)
		}
	}
}

// TestScarcestOfMoney: XHeaders shows a budget that is almost spent, not the tokens beside it, in any order.
func TestScarcestOfMoney(t *testing.T) {
	tokens := runtime.Balance{Resource: "gpt-4", Limit: "tpm", Params: bucket.Per(100_000, time.Minute),
		Available: 90_000}
	budget := runtime.Balance{Resource: "gpt-4", Limit: "month", Unit: "USD", Available: int64(5 * money.Cent),
		Params: bucket.Limit{Capacity: int64(5 * money.Unit), Burst: int64(5 * money.Unit), Period: 86_400_000}}
	for _, balances := range [][]runtime.Balance{{tokens, budget}, {budget, tokens}} {
		l := &levelled{denied: &runtime.DeniedError{}, balances: balances}
		h := l.answer(httplimit.XHeaders()).Header()
		if got := h.Get("X-RateLimit-Remaining") + " of " + h.Get("X-RateLimit-Limit"); got != "0.05 of 5" {
			t.Errorf("%s remain, want 0.05 of 5", got)
		}
	}
}
