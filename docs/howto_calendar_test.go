package docs_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	billing "github.com/sluice-go/sluice/examples/billing/limits"
	"github.com/sluice-go/sluice/internal/test/doccheck"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/httplimit"
	"github.com/sluice-go/sluice/runtime/limittest"
)

// billed is the API whose customers have a billing month, with its table.
func billed(t *testing.T) doccheck.World {
	t.Helper()
	return tableWith(t, pageOf(t), "examples/billing/limits.yaml",
		map[string]func(runtime.Store, runtime.Option) error{
			"the table of the billed API": func(runtime.Store, runtime.Option) error { return nil },
			"a key of acme has called": func(s runtime.Store, o runtime.Option) error {
				lim, err := billing.New(s, o)
				if err == nil {
					_, err = lim.API.Acquire(t.Context(), acmeKey, billing.APICost{Cycle: 500})
				}
				return err
			},
		})
}

// acmeKey is a key of a customer.
var acmeKey = billing.Key{ID: "1", Customer: billing.Customer{ID: "acme"}}

// subscribe is quoted in docs/how-to/calendar-windows.md.
func subscribe(ctx context.Context, lim *billing.Limiter, customer, zone string, since time.Time) error {
	location, err := time.LoadLocation(zone)
	if err != nil {
		return err
	}
	return lim.Entities().SetCalendar(ctx, billing.Customer{ID: customer}, since.In(location))
}

// upgrade is quoted in docs/how-to/calendar-windows.md.
func upgrade(ctx context.Context, lim *billing.Limiter, customer string, monthly int64) error {
	override := lim.Config.API.Entity(billing.Customer{ID: customer})
	_, revision, err := override.Get(ctx)
	if err != nil {
		return err
	}
	_, err = override.Set(ctx, billing.APILimits{Cycle: &monthly}, revision)
	return err
}

// limited is quoted in docs/how-to/calendar-windows.md.
func limited(lim *billing.Limiter, mux http.Handler) http.Handler {
	ask := func(r *http.Request) (billing.APIEntity, billing.APICost, error) {
		key := billing.Key{ID: r.Header.Get("X-Key"), Customer: billing.Customer{ID: "acme"}}
		return key, billing.APICost{}, nil
	}
	return httplimit.Middleware(lim.API, ask, httplimit.Headers(), httplimit.Spread(10*time.Minute))(mux)
}

// call makes a call of a key of acme that costs n of its billing month. It returns when the window ends that
// denied it, or a zero time.
func call(t *testing.T, lim *billing.Limiter, n int64) time.Time {
	t.Helper()
	_, err := lim.API.Acquire(t.Context(), acmeKey, billing.APICost{Cycle: n})
	denied, ok := errors.AsType[*runtime.DeniedError](err)
	if err != nil && !ok {
		t.Fatal(err)
	}
	if !ok {
		return time.Time{}
	}
	return denied.Resets
}

// TestBillingMonth: a customer's month ends on the day and at the time of its calendar, and an upgrade is
// there at once.
func TestBillingMonth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, err := billing.New(limittest.Store(t))
		berlin := bucket.MustZone("Europe/Berlin")
		since := time.Date(1999, 12, 31, 8, 0, 0, 0, time.UTC)
		if err == nil {
			err = subscribe(t.Context(), lim, "acme", "Europe/Berlin", since)
		}
		if err != nil {
			t.Fatal(err)
		}
		if at := call(t, lim, 200_000); !at.IsZero() {
			t.Fatal(at)
		}
		end := time.Date(2000, 1, 31, 9, 0, 0, 0, berlin) // a bubble begins on 2000-01-01
		if at := call(t, lim, 1); !at.Equal(end) {
			t.Errorf("resets %v, want %v", at.In(berlin), end)
		}
		if err := upgrade(t.Context(), lim, "acme", 250_000); err != nil {
			t.Fatal(err)
		}
		if at := call(t, lim, 50_000); !at.IsZero() {
			t.Errorf("after the upgrade: denied until %v", at)
		}
		if at := call(t, lim, 1); !at.Equal(end) {
			t.Errorf("all used: resets %v", at.In(berlin))
		}
		time.Sleep(time.Until(end)) //nolint:forbidigo // in a bubble
		if at := call(t, lim, 250_000); !at.IsZero() {
			t.Errorf("in the next month: denied until %v", at)
		}
		// February has no 31st: its last day stands for it.
		if at, want := call(t, lim, 1), time.Date(2000, 2, 29, 9, 0, 0, 0, berlin); !at.Equal(want) {
			t.Errorf("resets %v, want %v", at.In(berlin), want)
		}
	})
}

// TestLimitedDay: a day's denial says when the day ends, and its callers come back over ten minutes.
func TestLimitedDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, err := billing.New(limittest.Store(t))
		if err != nil {
			t.Fatal(err)
		}
		for range 200 { // all of a day, by 50 a second
			if _, err := lim.API.Acquire(t.Context(), acmeKey, billing.APICost{RPS: 50, Day: 50}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) //nolint:forbidigo // in a bubble
		}
		handler := limited(lim, http.NotFoundHandler())
		left := int64(time.Until(time.Date(2000, 1, 1, 23, 0, 0, 0, time.UTC)) / time.Second) // midnight in Berlin
		answers := map[int64]bool{}
		for range 50 {
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("X-Key", "1")
			handler.ServeHTTP(w, r)
			after, err := strconv.ParseInt(w.Header().Get("Retry-After"), 10, 64)
			if err != nil || after < left || after > left+600 {
				t.Fatalf("%d %v, want %d to %d", w.Code, w.Header(), left, left+600)
			}
			answers[after] = true
		}
		if len(answers) < 25 {
			t.Errorf("50 callers come back in %d seconds", len(answers))
		}
	})
}
