package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

func TestSettle(t *testing.T) {
	for _, test := range []struct {
		name          string
		took, actual  cost
		level, remain cost
	}{
		{"down", cost{RPM: 2, TPM: 100}, cost{RPM: 2, TPM: 40}, cost{58, 5960}, cost{58, 5960}},
		{"up", cost{TPM: 100}, cost{TPM: 140}, cost{59, 5860}, cost{59, 5860}},
		{"both ways", cost{RPM: 2, TPM: 100}, cost{RPM: 5, TPM: 1}, cost{55, 5999}, cost{55, 5999}},
		{"per_call stands for 0", cost{RPM: 5, TPM: 100}, cost{}, cost{59, 6000}, cost{59, 6000}},
		{"the same", cost{TPM: 100}, cost{TPM: 100}, cost{59, 5900}, cost{59, 5900}},
		{"into debt", cost{TPM: 5000}, cost{TPM: 8000}, cost{59, -2000}, cost{59, 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &fake{}
				_, r := open(t, store)
				lease := acquire(t, r, user{"1"}, test.took)
				took := lease.Cost()
				check(t, lease.Settle(t.Context(), test.actual), "")
				equal(t, "level", store.level("user-1"), test.level)
				equal(t, "remaining", lease.Remaining(), test.remain)
				equal(t, "cost stays", lease.Cost(), took)
				if err := lease.Settle(t.Context(), test.actual); !errors.Is(err, runtime.ErrSettled) {
					t.Errorf("second settle: %v", err)
				}
				lease.Release(t.Context())
				equal(t, "level after a release too many", store.level("user-1"), test.level)
				equal(t, "calls to the store", store.count(), 2)
			})
		})
	}
}

func TestSettleToNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{}
		_, r := open(t, store)
		check(t, acquire(t, r, project{"1"}, cost{RPM: 5}).Settle(t.Context(), cost{}), "")
		equal(t, "level", store.level("project-1"), cost{120, 6000})
	})
}

func TestRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{}
		_, r := open(t, store)
		lease := acquire(t, r, user{"1"}, cost{RPM: 9, TPM: 100})
		elapse(2 * time.Second)
		lease.Release(t.Context())
		equal(t, "level", store.level("user-1"), cost{60, 6000})
		equal(t, "remaining", lease.Remaining(), cost{60, 6000})
		lease.Release(t.Context())
		if err := lease.Settle(t.Context(), cost{}); !errors.Is(err, runtime.ErrSettled) {
			t.Errorf("settle after release: %v", err)
		}
		equal(t, "calls to the store", store.count(), 2)
	})
}

// TestRemainingIsOfTheLastWrite: a release does not move rf, so what the bucket has left then includes the
// refill since.
func TestRemainingIsOfTheLastWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{before: func(_ context.Context, op string, _ *store.Call) error {
			if op == "settle" {
				return errors.New("down") // leaves the image of the acquire
			}
			return nil
		}}
		_, r := open(t, backend, runtime.WithLogger(slog.New(slog.DiscardHandler)))
		lease := acquire(t, r, user{"1"}, cost{RPM: 9})
		elapse(2 * time.Second)
		equal(t, "before", lease.Remaining(), cost{51, 6000})
		lease.Release(t.Context())
		equal(t, "after", lease.Remaining(), cost{53, 6000})
	})
}

// TestKeep: a kept lease stands as charged, without a call of the store, and is ended.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{}
		_, r := open(t, store)
		lease := acquire(t, r, user{"1"}, cost{TPM: 100})
		lease.Keep(t.Context())
		lease.Keep(t.Context())
		lease.Release(t.Context())
		if err := lease.Settle(t.Context(), cost{TPM: 1}); !errors.Is(err, runtime.ErrSettled) {
			t.Errorf("settle: %v, want ErrSettled", err)
		}
		equal(t, "calls to the store", store.count(), 1)
		equal(t, "level", store.level("user-1"), cost{59, 5900})
		settled := acquire(t, r, user{"1"}, cost{TPM: 100})
		check(t, settled.Settle(t.Context(), cost{TPM: 40}), "")
		settled.Keep(t.Context())
		equal(t, "level", store.level("user-1"), cost{58, 5860})
	})
}

func TestNilLease(t *testing.T) {
	var lease *runtime.Lease[cost]
	lease.Keep(t.Context())
	lease.Release(t.Context())
	if err := lease.Settle(t.Context(), cost{}); !errors.Is(err, runtime.ErrSettled) {
		t.Errorf("settle: %v", err)
	}
	check(t, runtime.ErrSettled, "sluice: the lease was settled, kept or released before")
}

func TestInvalidSettleLeavesTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{}
		_, r := open(t, store)
		lease := acquire(t, r, user{"1"}, cost{TPM: 100})
		err := lease.Settle(t.Context(), cost{TPM: -1})
		check(t, err, `invalid gpt-4 cost tpm "-1"`)
		err = lease.Settle(t.Context(), cost{TPM: 1_000_000_000_001})
		check(t, err, `invalid gpt-4 cost tpm "1000000000001"`)
		equal(t, "calls to the store", store.count(), 1)
		check(t, lease.Settle(t.Context(), cost{TPM: 30}), "")
		equal(t, "level", store.level("user-1"), cost{59, 5970})
	})
}

func TestFailedSettleSpendsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := &runtime.UnavailableError{Resource: "gpt-4", Attempts: 1, Err: errors.New("reset")}
		backend := &fake{}
		_, r := open(t, backend)
		lease := acquire(t, r, user{"1"}, cost{TPM: 100})
		backend.hook(func(context.Context, string, *store.Call) error { return down })
		check(t, lease.Settle(t.Context(), cost{TPM: 1}), "unavailable gpt-4 1: reset")
		backend.hook(nil)
		if err := lease.Settle(t.Context(), cost{TPM: 1}); !errors.Is(err, runtime.ErrSettled) {
			t.Errorf("second settle: %v", err)
		}
		lease.Release(t.Context())
		equal(t, "level", backend.level("user-1"), cost{59, 5900})
	})
}

type key struct{}

// TestOutlivesTheCaller: settle and release go on when ctx has ended, with its values, for as long as
// WithSettleTimeout.
func TestOutlivesTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		backend := &fake{}
		_, r := open(t, backend, runtime.WithSettleTimeout(3*time.Second),
			runtime.WithLogger(slog.New(slog.NewTextHandler(&out, nil))))
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		settled, released := acquire(t, r, user{"1"}, cost{TPM: 100}), acquire(t, r, user{"1"}, cost{TPM: 100})
		hung, lost := acquire(t, r, user{"1"}, cost{TPM: 100}), acquire(t, r, user{"1"}, cost{TPM: 100})
		cancel()

		backend.hook(func(ctx context.Context, _ string, _ *store.Call) error {
			if ctx.Value(key{}) != "value" {
				return errors.New("ctx's value is lost")
			}
			return ctx.Err()
		})
		check(t, settled.Settle(ctx, cost{TPM: 50}), "")
		released.Release(ctx)
		equal(t, "level", backend.level("user-1"), cost{57, 5750})

		backend.hook(func(ctx context.Context, _ string, _ *store.Call) error { <-ctx.Done(); return ctx.Err() })
		start := time.Now()
		check(t, hung.Settle(ctx, cost{TPM: 50}), "context deadline exceeded")
		equal(t, "settle took", time.Since(start), 3*time.Second)
		equal(t, "logged so far", out.String(), "")
		lost.Release(ctx)
		equal(t, "release took", time.Since(start), 6*time.Second)
		const want = `level=WARN msg="sluice: release did not get through; the tokens come back by refill" ` +
			`resource=gpt-4 entity=user-1 error="context deadline exceeded"` + "\n"
		if got := out.String(); !strings.HasSuffix(got, want) {
			t.Errorf("logged %q, want %q", got, want)
		}
	})
}

// TestLeaseIsSharedSafely: of many that close a lease at once, one writes. The race detector watches the
// rest.
func TestLeaseIsSharedSafely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{before: func(context.Context, string, *store.Call) error {
			elapse(time.Millisecond)
			return nil
		}}
		_, r := open(t, backend)
		for range 20 {
			lease := acquire(t, r, user{"1"}, cost{TPM: 100})
			before := backend.count()
			var settled atomic.Int64
			var wg sync.WaitGroup
			for range 5 {
				wg.Go(func() {
					if err := lease.Settle(t.Context(), cost{TPM: 50}); err == nil {
						settled.Add(1)
					} else if !errors.Is(err, runtime.ErrSettled) {
						t.Error(err)
					}
				})
				wg.Go(func() { lease.Release(t.Context()) })
				wg.Go(func() { equal(t, "cost", lease.Cost(), cost{RPM: 1, TPM: 100}) })
				wg.Go(func() {
					if left := lease.Remaining(); left.RPM > 60 || left.TPM > 6000 {
						t.Errorf("remaining %v is above the burst", left)
					}
				})
			}
			wg.Wait()
			equal(t, "writes", backend.count()-before, 1)
			if settled.Load() > 1 {
				t.Errorf("%d settles succeeded", settled.Load())
			}
		}
	})
}
