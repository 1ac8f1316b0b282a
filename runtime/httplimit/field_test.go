package httplimit_test

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"pgregory.net/rapid"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/httplimit"
	"github.com/sluice-go/sluice/runtime/store"
)

// levelled is an Acquirer that denies, and says where its limits stand.
type levelled struct {
	limits.GPT4Acquirer

	denied   *runtime.DeniedError
	balances []runtime.Balance
}

func (l *levelled) Acquire(
	context.Context, limits.GPT4Entity, limits.GPT4Cost, ...runtime.CallOption,
) (*limits.GPT4Lease, error) {
	return nil, l.denied
}

func (l *levelled) Lookup(limits.GPT4Entity) []runtime.Balance { return l.balances }

// answer is what l's callers get.
func (l *levelled) answer(opts ...httplimit.Option) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	httplimit.Middleware(l, ask, append(opts, httplimit.Headers())...)(http.NotFoundHandler()).
		ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?user=1&tpm=1", nil))
	return w
}

// TestFields: whatever the numbers and names, fields are structured ones, Retry-After is not early and at
// most a second late. No t is later, and no policy promises more than the limit gives.
func TestFields(t *testing.T) {
	numbers := rapid.OneOf(rapid.Int64Range(0, 5), rapid.Int64Range(0, 1_000_000),
		rapid.Int64Range(0, math.MaxInt64-1))
	rapid.Check(t, func(t *rapid.T) {
		l := &levelled{denied: &runtime.DeniedError{}}
		limitOf := map[string]bucket.Limit{}
		for i := range rapid.IntRange(1, 4).Draw(t, "limits") {
			name := rapid.OneOf(rapid.Just(fmt.Sprint("limit_", i)),
				rapid.StringMatching(fmt.Sprintf(`[ -~]{0,6}%d`, i)),
				rapid.StringN(0, 5, -1).Filter(func(s string) bool { return s != "" })).Draw(t, "name")
			balance := runtime.Balance{
				Limit: name, Available: numbers.Draw(t, "available"), Full: time.Duration(numbers.Draw(t, "full")),
				Params: rapid.OneOf(rapid.Custom(params).Filter(schematic), rapid.Custom(inWindows),
					rapid.Just(bucket.InFlight(20))).Draw(t, "params"),
			}
			l.balances = append(l.balances, balance)
			if _, twice := limitOf[name]; !twice {
				limitOf[name] = balance.Params
			}
			if i == 0 || rapid.Bool().Draw(t, "refuses") {
				l.denied = store.AddRefusal(l.denied, runtime.Refusal{
					Limit: name, Available: numbers.Draw(t, "left"),
					RetryAfter: time.Duration(numbers.Draw(t, "retry after")),
				})
			}
		}
		h := l.answer().Header()
		retry, err := strconv.ParseInt(h.Get("Retry-After"), 10, 64)
		exact := l.denied.RetryAfter
		if err != nil || float64(retry) < exact.Seconds() && retry*1e9 < int64(exact) ||
			retry-1 >= int64(exact/time.Second)+1 {
			t.Fatalf("Retry-After %d, %v of %v", retry, err, exact)
		}
		for _, item := range list(t, h, "RateLimit") {
			if limitOf[item.Value.(string)].InFlight() {
				if _, timed := item.Params.Get("t"); timed || number(t, item, "r") < 0 {
					t.Errorf("slots: %v %v", item.Value, item.Params)
				}
				continue
			}
			if at := number(t, item, "t"); at > retry || number(t, item, "r") < 0 {
				t.Errorf("%v %v, Retry-After %d", item.Value, item.Params, retry)
			}
		}
		for _, item := range list(t, h, "RateLimit-Policy") {
			quota, l := number(t, item, "q"), limitOf[item.Value.(string)]
			if l.InFlight() {
				if _, timed := item.Params.Get("w"); timed || quota != 20 {
					t.Errorf("slots: %v %v", item.Value, item.Params)
				}
				continue
			}
			window := number(t, item, "w")
			if l.Windowed() {
				if quota != l.Capacity/bucket.Milli || window*1000 < l.Period || (window-1)*1000 >= l.Period {
					t.Errorf("%d in %d s of %+v", quota, window, l)
				}
				continue
			}
			promised, given := product(quota, bucket.Milli, l.Period), product(l.Refill, window, 1000)
			if window < 1 || promised.Cmp(given) > 0 {
				t.Errorf("%d in %d s of %+v", quota, window, l)
			}
		}
	})
}

// params draws a limit's parameters.
func params(t *rapid.T) bucket.Limit {
	return bucket.Limit{
		Capacity: rapid.Int64Range(0, 1e12).Draw(t, "capacity") * bucket.Milli,
		Refill:   rapid.Int64Range(1, 1e15).Draw(t, "refill"),
		Period:   rapid.Int64Range(1, tenYears).Draw(t, "period"),
	}
}

// inWindows draws the parameters of a limit with windows.
func inWindows(t *rapid.T) bucket.Limit {
	capacity := rapid.Int64Range(1, 1e12).Draw(t, "capacity")
	period := time.Duration(rapid.Int64Range(2, 366*24*3_600_000).Draw(t, "period")) * time.Millisecond
	return bucket.InWindows(capacity, period)
}

// tenYears is how long the slowest limit of a schema takes to be full, in ms.
const tenYears = 10 * 366 * 24 * 3_600_000

func schematic(l bucket.Limit) bool {
	return product(l.Capacity, l.Period).Cmp(product(l.Refill, tenYears)) <= 0
}

// list parses a field of h; each name is there once.
func list(t *rapid.T, h http.Header, field string) []httpsfv.Item {
	values := h.Values(field)
	if len(values) == 0 {
		return nil
	}
	parsed, err := httpsfv.UnmarshalList(values)
	if err != nil || len(parsed) == 0 {
		t.Fatalf("%s: %q: %v", field, values, err)
	}
	again, err := httpsfv.Marshal(parsed)
	if err != nil || again != h.Get(field) {
		t.Fatalf("%s: %q is serialized as %q: %v", field, values, again, err)
	}
	items, seen := make([]httpsfv.Item, len(parsed)), map[string]bool{}
	for i, member := range parsed {
		items[i] = member.(httpsfv.Item)
		name, ok := items[i].Value.(string)
		if !ok || seen[name] {
			t.Fatalf("%s: %q: %v is no name, or is there twice", field, values, items[i].Value)
		}
		seen[name] = true
	}
	return items
}

func number(t *rapid.T, item httpsfv.Item, param string) int64 {
	value, ok := item.Params.Get(param)
	n, whole := value.(int64)
	if !ok || !whole {
		t.Fatalf("%v has %s = %v", item.Value, param, value)
	}
	return n
}

func product(factors ...int64) *big.Int {
	p := big.NewInt(1)
	for _, f := range factors {
		p.Mul(p, big.NewInt(f))
	}
	return p
}

// TestPolicy says what a limit is shown as.
func TestPolicy(t *testing.T) {
	refill := bucket.Per(10, time.Second)
	refill.Refill = 4 * bucket.Milli
	for _, test := range []struct {
		params bucket.Limit
		want   string
	}{
		{bucket.Per(100, time.Minute), `"tpm";q=100;w=60`},
		{bucket.Per(100, time.Minute).WithBurst(500), `"tpm";q=100;w=60`},
		{bucket.Per(5, 100*time.Millisecond), `"tpm";q=50;w=1`},
		{bucket.Per(3, 1500*time.Millisecond), `"tpm";q=4;w=2`},
		{refill, `"tpm";q=12;w=3`}, // 10 come in 2.5 s
		{bucket.Per(1_000_000, time.Hour).Quota(250_000), `"tpm";q=250000;w=3600`},
		{bucket.Per(60, time.Minute).Quota(0), `"tpm";q=0;w=60`},
		{bucket.InWindows(1_000, 24*time.Hour), `"tpm";q=1000;w=86400`},
		{bucket.InWindows(7, 1500*time.Millisecond), `"tpm";q=7;w=2`},
		{bucket.InFlight(20), `"tpm";q=20`},
		{bucket.Limit{}, ""},
	} {
		l := &levelled{balances: []runtime.Balance{{Limit: "tpm", Params: test.params}},
			denied: &runtime.DeniedError{}}
		if got := l.answer().Header().Get("RateLimit-Policy"); got != test.want {
			t.Errorf("%v: %s, want %s", test.params, got, test.want)
		}
	}
}
