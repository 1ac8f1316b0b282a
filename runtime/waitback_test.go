package runtime_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestGivenBackServesWaiters: what the process gives back is there for its waiters at once, and for what they
// are told.
func TestGivenBackServesWaiters(t *testing.T) {
	for name, actual := range map[string]*cost{
		"released": nil,
		"settled":  {RPM: 1, TPM: 100},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &fake{}
				lim, r := open(t, store)
				w := &waits{t: t, lim: lim, r: r, start: time.Now(), ended: make(chan outcome, 100)}
				lease, err := r.Acquire(t.Context(), user{"1"}, cost{TPM: 6000})
				check(t, err, "")
				w.join(t.Context(), "a", 5000)
				elapse(time.Second)
				w.done(0)
				if actual != nil {
					check(t, lease.Settle(t.Context(), *actual), "")
				}
				lease.Release(t.Context())
				w.next("a", time.Second, "")
				// Behind nobody, and within its deadline.
				w.join(within(t, 2*time.Second), "b", 500)
				w.next("b", time.Second, "")
			})
		})
	}
}

// filler is an override store whose Fill fills user 1's bucket.
type filler struct {
	overrides
	backend *fake
}

func (f *filler) Fill(context.Context, *store.Spec, int, string, string) error {
	f.backend.put(0, 60, 6000)
	return f.failure
}

// TestResetServesWaiters: what Reset fills is there for the process's waiters at once, and also if it cannot
// tell whether it has.
func TestResetServesWaiters(t *testing.T) {
	for name, failure := range map[string]error{"filled": nil, "unknown": errors.New("no reply")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				backend := &fake{}
				backend.overrides = &filler{overrides{failure: failure}, backend}
				b := runtime.NewBuilder(backend)
				r := runtime.Bind[entity](b, gpt4(), toVector, fromVector)
				config := runtime.BindConfig[entity](b, gpt4(), toVector, toLimits, fromLimits)
				lim, err := b.Limiter()
				check(t, err, "")
				backend.put(0, 60, 0)
				w := &waits{t: t, lim: lim, r: r, start: time.Now(), ended: make(chan outcome, 100)}
				w.join(t.Context(), "a", 5000)
				elapse(500 * time.Millisecond)
				w.done(0)
				if err := config.Reset(t.Context(), user{"1"}); !errors.Is(err, failure) {
					t.Errorf("%v, want %v", err, failure)
				}
				w.next("a", 500*time.Millisecond, "")
			})
		})
	}
}

// TestGivenBackTooLittle: less than the first waiter wants lets it wait on, without another call to the
// store.
func TestGivenBackTooLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		lim, r := open(t, backend)
		w := &waits{t: t, lim: lim, r: r, start: time.Now(), ended: make(chan outcome, 100)}
		lease, err := r.Acquire(t.Context(), user{"1"}, cost{TPM: 6000})
		check(t, err, "")
		w.join(t.Context(), "a", 5000)
		var calls atomic.Int64
		backend.hook(func(_ context.Context, op string, _ *store.Call) error {
			if op == "acquire" {
				calls.Add(1)
			}
			return nil
		})
		check(t, lease.Settle(t.Context(), cost{RPM: 1, TPM: 5000}), "") // 1000 of 5000: 40 s to go, not 50
		synctest.Wait()
		equal(t, "acquires", calls.Load(), 0)
		w.next("a", 40*time.Second, "")
	})
}

// TestZeroLease: no acquire made it, so nothing can be settled. None, where nothing was limited, has ended.
func TestZeroLease(t *testing.T) {
	var none *runtime.Lease[cost]
	none.Release(t.Context())
	equal(t, "cost of none", none.Cost(), cost{})
	equal(t, "remaining of none", none.Remaining(), cost{})
	check(t, none.Settle(t.Context(), cost{TPM: 1}), runtime.ErrSettled.Error())
	check(t, none.More(t.Context(), cost{TPM: 1}), runtime.ErrSettled.Error())

	zero := &runtime.Lease[cost]{}
	equal(t, "cost", zero.Cost(), cost{})
	equal(t, "remaining", zero.Remaining(), cost{})
	for _, err := range []error{zero.Settle(t.Context(), cost{TPM: 1}), zero.More(t.Context(), cost{TPM: 1})} {
		checkReason(t, err, "invalid lease is empty: Acquire, Wait, Do and Claim make leases")
	}
	zero.Keep(t.Context())
	zero.Release(t.Context())
}
