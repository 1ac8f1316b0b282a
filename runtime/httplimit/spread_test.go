package httplimit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/httplimit"
)

// midnight is when the windows of these tests end.
var midnight = time.Date(2026, 12, 1, 0, 0, 0, 0, time.FixedZone("CET", 3600))

// windowed returns a denial by a limit with a window, in whose wait a limit that refills has denied too.
func windowed(wait, refill time.Duration) *runtime.DeniedError {
	refusals := []runtime.Refusal{
		{Resource: "gpt-4", Limit: "day", Requested: 700, Available: 20, RetryAfter: wait, Resets: midnight},
		{Resource: "gpt-4", Limit: "rpm", Requested: 1, RetryAfter: refill},
	}
	longest := refusals[0]
	if refill > wait {
		longest = refusals[1]
	}
	return &runtime.DeniedError{Resource: "gpt-4", Limit: longest.Limit, Requested: longest.Requested,
		Available: longest.Available, RetryAfter: longest.RetryAfter, Resets: longest.Resets, Refusals: refusals}
}

// answered is what a client reads of a denial.
type answered struct {
	header int64
	Detail string
	After  int64 `json:"retry_after"`
	Limits []struct {
		Limit  string
		After  int64 `json:"retry_after"`
		Resets string
	}
}

func answerOf(t *testing.T, err error, opts ...httplimit.Option) (a answered) {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if !httplimit.WriteError(w, r, err, opts...) {
		t.Fatal("not answered")
	}
	var wrong error
	a.header, wrong = strconv.ParseInt(w.Header().Get("Retry-After"), 10, 64)
	if wrong == nil {
		wrong = json.Unmarshal(w.Body.Bytes(), &a)
	}
	if wrong != nil || a.header != a.After || !strings.Contains(a.Detail, fmt.Sprintf("after %d s", a.header)) {
		t.Fatalf("Retry-After %d, body %s: %v", a.header, w.Body, wrong)
	}
	return a
}

// TestSpread: callers that wait for the end of a window come back over the time of Spread, and none early.
// Without it they come back in the same second, and so do those that wait for a refill.
func TestSpread(t *testing.T) {
	const wait, spread = time.Hour, 10 * time.Minute
	for _, test := range []struct {
		name     string
		err      error
		opts     []httplimit.Option
		from, to int64
		all      bool // the answers lie over all of from to to
	}{
		{"a window", windowed(wait, time.Second), []httplimit.Option{httplimit.Spread(spread)}, 3600, 4200, true},
		{"control: without Spread", windowed(wait, time.Second), nil, 3600, 3600, true},
		{"none", windowed(wait, time.Second), []httplimit.Option{httplimit.Spread(0)}, 3600, 3600, true},
		{"a refill", windowed(time.Second, wait), []httplimit.Option{httplimit.Spread(spread)}, 3600, 3600, true},
		{"a refill, and a window a little sooner", windowed(wait-time.Minute, wait),
			[]httplimit.Option{httplimit.Spread(spread)}, 3600, 4140, true},
		{"for very long", windowed(math.MaxInt64-1, time.Second), []httplimit.Option{httplimit.Spread(spread)},
			9223372037, 9223372037, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			least, most := int64(math.MaxInt64), int64(0)
			for range 1_000 {
				a := answerOf(t, test.err, test.opts...)
				least, most = min(least, a.header), max(most, a.header)
				if a.Limits[0].Resets != "2026-11-30T23:00:00Z" || a.Limits[1].Resets != "" {
					t.Fatalf("%+v", a)
				}
			}
			margin := (test.to - test.from) / 20
			if least < test.from || least > test.from+margin || most > test.to || most < test.to-margin {
				t.Errorf("%d to %d, want %d to %d", least, most, test.from, test.to)
			}
		})
	}
}

// TestSpreadOfMiddleware: Middleware's own answers are spread, and its fields still say when the window ends.
func TestSpreadOfMiddleware(t *testing.T) {
	l := &levelled{denied: windowed(time.Hour, time.Second), balances: []runtime.Balance{
		{Resource: "gpt-4", Limit: "day", Params: bucket.InWindows(1_000, 24*time.Hour)},
	}}
	later := 0
	for range 100 {
		w := httptest.NewRecorder()
		httplimit.Middleware(l, ask, httplimit.Headers(), httplimit.Spread(time.Hour))(http.NotFoundHandler()).
			ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/?user=1&tpm=1", nil))
		if w.Header().Get("Retry-After") != "3600" {
			later++
		}
		if field := w.Header().Get("RateLimit"); field != `"day";r=20;t=3600, "rpm";r=0;t=1` {
			t.Fatal(field)
		}
		if field := w.Header().Get("RateLimit-Policy"); field != `"day";q=1000;w=86400` {
			t.Fatal(field)
		}
	}
	if later < 90 {
		t.Errorf("%d of 100 come back later than the window ends", later)
	}
}

// TestSpreadBounds: a time that makes no sense is a panic at the start, and its text has the cure.
func TestSpreadBounds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "", time.Minute: "", 24 * time.Hour: "",
		-1:               "httplimit: Spread(-1ns): pass 0 to 24h0m0s, such as a minute",
		24*time.Hour + 1: "httplimit: Spread(24h0m0.000000001s): pass 0 to 24h0m0s, such as a minute",
		math.MaxInt64:    "httplimit: Spread(2562047h47m16.854775807s): pass 0 to 24h0m0s, such as a minute",
	} {
		func() {
			defer func() {
				if got, _ := recover().(string); got != want {
					t.Errorf("%v: %s", d, got)
				}
			}()
			httplimit.Spread(d)
		}()
	}
}
