package docs_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	inflight "github.com/sluice-go/sluice/examples/inflight/limits"
	"github.com/sluice-go/sluice/internal/test/doccheck"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/httplimit"
	"github.com/sluice-go/sluice/runtime/limittest"
)

// called is the API whose keys have slots, with its table.
func called(t *testing.T) doccheck.World {
	t.Helper()
	return tableWith(t, pageOf(t), "examples/inflight/limits.yaml",
		map[string]func(runtime.Store, runtime.Option) error{
			"three calls of key-1 run": func(s runtime.Store, o runtime.Option) error {
				lim, err := inflight.New(s, o)
				for range 3 {
					if err != nil {
						break
					}
					var lease *inflight.ModelLease
					if lease, err = lim.Model.Acquire(t.Context(), key1, inflight.ModelCost{Month: 10}); err == nil {
						t.Cleanup(func() { lease.Keep(context.WithoutCancel(t.Context())) })
					}
				}
				return err
			},
		})
}

// key1 is an API key.
var key1 = inflight.Key{ID: "1"}

// backend is a model that says what its call has cost.
type backend func(ctx context.Context) (cents int64, err error)

// callModel is quoted in docs/how-to/in-flight.md.
func callModel(ctx context.Context, lim *inflight.Limiter, key inflight.Key, model backend) error {
	most := inflight.ModelCost{Month: 25} // Parallel: per_call 1
	return lim.Model.Do(ctx, key, most, func(ctx context.Context, l *inflight.ModelLease) error {
		cents, err := model(ctx) // stops if the slot is lost
		if err != nil {
			return err // slot and reservation come back
		}
		return l.Settle(ctx, inflight.ModelCost{Month: cents})
	})
}

// callByHand is quoted in docs/how-to/in-flight.md.
func callByHand(ctx context.Context, lim *inflight.Limiter, key inflight.Key, model backend) error {
	lease, err := lim.Model.Acquire(ctx, key, inflight.ModelCost{Month: 25})
	if err != nil {
		return err
	}
	defer lease.Release(ctx) // does nothing once settled
	cents, err := model(lease.Context(ctx))
	if err != nil {
		return err
	}
	return lease.Settle(ctx, inflight.ModelCost{Month: cents})
}

// waitForSlot is quoted in docs/how-to/in-flight.md.
func waitForSlot(ctx context.Context, lim *inflight.Limiter, key inflight.Key) (*inflight.ModelLease, error) {
	return lim.Model.Wait(ctx, key, inflight.ModelCost{Month: 25}, runtime.MaxWait(30*time.Second))
}

// serveModel is quoted in docs/how-to/in-flight.md.
func serveModel(lim *inflight.Limiter, model backend) http.Handler {
	ask := func(r *http.Request) (inflight.ModelEntity, inflight.ModelCost, error) {
		return inflight.Key{ID: r.Header.Get("X-Key")}, inflight.ModelCost{Month: 25}, nil
	}
	return httplimit.Middleware(lim.Model, ask)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cents, err := model(r.Context()) // stops if the slot is lost, or if the client hangs up
		if err != nil {
			http.Error(w, "failed", http.StatusBadGateway)
			return // the lease is kept: ReleaseOn would give it back
		}
		_ = httplimit.Lease[inflight.ModelCost](r.Context()).Settle(r.Context(), inflight.ModelCost{Month: cents})
	}))
}

// leftOf fails unless a key has so many slots and cents left.
func leftOf(t *testing.T, lim *inflight.Limiter, slots, cents int64) {
	t.Helper()
	snap, err := lim.Model.Peek(t.Context(), key1)
	if err != nil || snap.Available.Parallel != slots || snap.Available.Month != cents {
		t.Errorf("left: %+v, %v; want %d slots and %d cents", snap, err, slots, cents)
	}
}

// TestCallsInFlight: each form of a call has a slot while it runs, and gives it back with what it has not
// used. A model whose slot is lost stops.
func TestCallsInFlight(t *testing.T) {
	forms := map[string]func(*testing.T, *inflight.Limiter, backend) error{
		"Do": func(t *testing.T, lim *inflight.Limiter, model backend) error {
			t.Helper()
			return callModel(t.Context(), lim, key1, model)
		},
		"Acquire": func(t *testing.T, lim *inflight.Limiter, model backend) error {
			t.Helper()
			return callByHand(t.Context(), lim, key1, model)
		},
		"httplimit": func(t *testing.T, lim *inflight.Limiter, model backend) (err error) {
			t.Helper()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
			r.Header.Set("X-Key", "1")
			w := httptest.NewRecorder()
			serveModel(lim, func(ctx context.Context) (cents int64, _ error) {
				cents, err = model(ctx)
				return cents, err
			}).ServeHTTP(w, r)
			if (w.Code == http.StatusOK) != (err == nil) {
				t.Errorf("status %d with %v", w.Code, err)
			}
			return err
		},
	}
	for name, call := range forms {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lim, err := inflight.New(limittest.Store(t))
				if err != nil {
					t.Fatal(err)
				}
				err = call(t, lim, func(ctx context.Context) (int64, error) {
					time.Sleep(time.Hour) //nolint:forbidigo // in a bubble
					leftOf(t, lim, 19, 50_000-25)
					return 7, ctx.Err()
				})
				if err != nil {
					t.Error(err)
				}
				leftOf(t, lim, 20, 50_000-7)
				err = call(t, lim, func(ctx context.Context) (int64, error) {
					if err := lim.Close(context.WithoutCancel(ctx)); err != nil { // no slot is extended any more
						t.Error(err)
					}
					<-ctx.Done()
					return 0, context.Cause(ctx)
				})
				if !errors.Is(err, runtime.ErrLeaseLost) {
					t.Errorf("a lost slot: %v", err)
				}
			})
		})
	}
}

// TestFullInFlight: of 21 calls at once one is denied, and has a hint of a second. One that waits is served
// when a call ends.
func TestFullInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, err := inflight.New(limittest.Store(t))
		if err != nil {
			t.Fatal(err)
		}
		var leases []*inflight.ModelLease
		for range 20 {
			lease, err := lim.Model.Acquire(t.Context(), key1, inflight.ModelCost{Month: 25})
			if err != nil {
				t.Fatal(err)
			}
			leases = append(leases, lease)
		}
		_, err = lim.Model.Acquire(t.Context(), key1, inflight.ModelCost{Month: 25})
		if denied, ok := errors.AsType[*runtime.DeniedError](err); !ok || denied.RetryAfter != time.Second ||
			!denied.Resets.IsZero() {
			t.Errorf("the 21st call: %v", err)
		}
		start := time.Now()
		const back = 9900 * time.Millisecond // between two reads of the bucket, which come five times a second
		time.AfterFunc(back, func() { leases[0].Keep(context.WithoutCancel(t.Context())) })
		lease, err := waitForSlot(t.Context(), lim, key1)
		took := time.Since(start)
		if err != nil || took < back || took > back+10*time.Millisecond {
			t.Fatalf("waited %v: %v", took, err)
		}
		if _, err := waitForSlot(t.Context(), lim, key1); err == nil || time.Since(start) > 41*time.Second {
			t.Errorf("without a slot: %v after %v", err, time.Since(start))
		}
		for _, l := range append(leases[1:], lease) {
			l.Keep(t.Context())
		}
		leftOf(t, lim, 20, 50_000-21*25)
	})
}
