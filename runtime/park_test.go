package runtime_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestPark: a parked lease ends as one that was not parked would, by each of its calls.
func TestPark(t *testing.T) {
	for name, use := range map[string]func(context.Context, *runtime.Lease[cost]) error{
		"settle": func(ctx context.Context, l *runtime.Lease[cost]) error { return l.Settle(ctx, cost{TPM: 40}) },
		"keep": func(ctx context.Context, l *runtime.Lease[cost]) error {
			l.Keep(ctx)
			return nil
		},
		"release": func(ctx context.Context, l *runtime.Lease[cost]) error {
			l.Release(ctx)
			return nil
		},
		"more, and settle": func(ctx context.Context, l *runtime.Lease[cost]) error {
			return errors.Join(l.More(ctx, cost{RPM: 1, TPM: 7}), l.Settle(ctx, cost{TPM: 9}))
		},
		"a bad settle": func(ctx context.Context, l *runtime.Lease[cost]) error {
			if err := l.Settle(ctx, cost{TPM: -1}); err == nil {
				t.Error("a negative cost is settled")
			}
			return l.Settle(ctx, cost{TPM: 1})
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			backend := &fake{}
			_, r := open(t, backend)
			check(t, use(t.Context(), acquire(t, r, user{"plain"}, cost{TPM: 100})), "")
			lease := acquire(t, r, user{"parked"}, cost{TPM: 100})
			parked, ok := lease.Park([]byte("before"))
			if !ok || string(parked[:6]) != "before" || len(parked) > 40 {
				t.Fatalf("%s: parked %q, %t", name, parked, ok)
			}
			calls := backend.count()
			if err := lease.Settle(t.Context(), cost{}); !errors.Is(err, runtime.ErrSettled) {
				t.Errorf("%s: a settle after Park: %v", name, err)
			}
			lease.Release(t.Context())
			if _, again := lease.Park(nil); again || backend.count() != calls {
				t.Errorf("%s: the lease is still open", name)
			}
			back, err := r.Unpark(parked[6:])
			check(t, err, "")
			equal(t, name+": cost", back.Cost(), cost{1, 100})
			if back.Balances() != nil {
				t.Errorf("%s: it knows balances: %v", name, back.Balances())
			}
			check(t, use(t.Context(), back), "")
			equal(t, name, backend.level("user-parked"), backend.level("user-plain"))
		})
	}
}

// TestParkedPlan: a parked lease goes by the plan that its acquire has found.
func TestParkedPlan(t *testing.T) {
	known := family()
	known["org-4"] = store.Member{Entity: "org-4", Plan: "pro", PlanVersion: 7}
	backend := &fake{known: known}
	l := openPlanned(t, backend)
	lease, err := l.Acquire(t.Context(), lookedUp(ofUser, "1"), cost{RPM: 1})
	check(t, err, "")
	want := backend.plans["user-1"]
	parked, ok := lease.Park(nil)
	equal(t, "parked", ok, true)
	back, err := l.Unpark(parked)
	check(t, err, "")
	backend.plans = nil
	check(t, back.More(t.Context(), cost{RPM: 1}), "")
	equal(t, "plan", backend.plans["user-1"], want)
	equal(t, "version", want.Version, 7)
}

// TestNotParked: a lease that holds something, or took nothing, stays as it was.
func TestNotParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		lim, r := openSlots(t, backend)
		held := acquire(t, r, user{"1"}, cost{TPM: 100})
		if _, ok := held.Park(nil); ok {
			t.Error("a lease with a slot is parked")
		}
		check(t, held.Settle(t.Context(), cost{TPM: 1}), "")
		check(t, lim.Close(t.Context()), "")

		down := &fake{}
		_, r = open(t, down)
		down.hook(func(context.Context, string, *store.Call) error { return &runtime.UnavailableError{} })
		degraded := acquire(t, r, user{"1"}, cost{TPM: 100})
		if _, ok := degraded.Park(nil); ok || !degraded.Degraded() {
			t.Error("a degraded lease is parked")
		}
		var zero *runtime.Lease[cost]
		if _, ok := zero.Park(nil); ok {
			t.Error("no lease is parked")
		}
	})
}

// FuzzUnpark: bytes that Park did not write are an error, or a lease, and no panic.
func FuzzUnpark(f *testing.F) {
	_, r := open(f, &fake{})
	parked, _ := acquire(f, r, user{"1"}, cost{TPM: 100}).Park(nil)
	f.Add(parked)
	f.Add([]byte{0x80})
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := r.Unpark(text)
		_, invalid := errors.AsType[*runtime.InvalidError](err)
		if (l == nil) != (err != nil) || err != nil && !invalid {
			t.Errorf("%q: %v, %v", text, l, err)
		}
	})
}
