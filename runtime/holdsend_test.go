package runtime_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestContext: it ends with the lease, unless it is Do's; with its parent; and not before.
func TestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		_, r := openSlots(t, backend)
		parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
		lease := acquire(t, r, user{"1"}, cost{})
		ctx := lease.Context(parent)
		child, done := context.WithCancel(ctx)
		defer done()
		equal(t, "value", ctx.Value(key{}), any("value"))
		elapse(5 * time.Minute)
		equal(t, "while the lease is open", child.Err(), nil)
		lease.Keep(t.Context())
		<-child.Done()
		equal(t, "after it", context.Cause(child), runtime.ErrSettled)
		equal(t, "of an ended lease", context.Cause(lease.Context(parent)), runtime.ErrSettled)

		other := acquire(t, r, user{"1"}, cost{})
		defer other.Keep(t.Context())
		ctx = other.Context(parent)
		left := errors.New("left")
		cancel(left)
		<-ctx.Done()
		equal(t, "with its parent", context.Cause(ctx), left)
	})
}

// TestContextWithoutHolds is the caller's own: nothing of it can be lost.
func TestContextWithoutHolds(t *testing.T) {
	_, r := open(t, &fake{})
	lease := acquire(t, r, user{"1"}, cost{TPM: 1})
	ctx := context.WithValue(t.Context(), key{}, 1)
	equal(t, "context", lease.Context(ctx), ctx)
	var none *runtime.Lease[cost]
	equal(t, "context of none", none.Context(ctx), ctx)
	equal(t, "of the zero lease", (&runtime.Lease[cost]{}).Context(ctx), ctx)
}

// TestDoHolds: fn has the lease's context, which outlasts a settle. Whatever fn does, its slot is back after.
func TestDoHolds(t *testing.T) {
	failure := errors.New("failed")
	for name, fn := range map[string]func(context.Context, *runtime.Lease[cost]) error{
		"returns": func(context.Context, *runtime.Lease[cost]) error { return nil },
		"fails":   func(context.Context, *runtime.Lease[cost]) error { return failure },
		"settles": func(ctx context.Context, l *runtime.Lease[cost]) error {
			return errors.Join(l.Settle(ctx, cost{}), ctx.Err())
		},
		"panics": func(context.Context, *runtime.Lease[cost]) error { panic(failure) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				backend := &fake{}
				_, r := openSlots(t, backend)
				var of context.Context
				defer func() {
					_ = recover()
					equal(t, "free", backend.free("user-1"), 20)
					equal(t, "its context has ended", of.Err(), context.Canceled)
					equal(t, "not by a loss", context.Cause(of), context.Canceled)
					backend.addUp(t)
				}()
				err := r.Do(t.Context(), user{"1"}, cost{}, func(ctx context.Context, l *runtime.Lease[cost]) error {
					of = ctx
					equal(t, "free meanwhile", backend.free("user-1"), 19)
					return fn(ctx, l)
				})
				equal(t, "error", err, map[string]error{"fails": failure}[name])
			})
		})
	}
}

// TestDoLost: fn's error also says that the loss ended its context. Without an error it has succeeded.
func TestDoLost(t *testing.T) {
	for name, fails := range map[string]bool{"fails": true, "returns": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				backend := &fake{}
				_, r := openSlots(t, backend)
				backend.hook(func(_ context.Context, op string, _ *store.Call) error {
					if op == "extend" {
						return errors.New("no reply")
					}
					return nil
				})
				err := r.Do(t.Context(), user{"1"}, cost{}, func(ctx context.Context, _ *runtime.Lease[cost]) error {
					<-ctx.Done()
					if fails {
						return ctx.Err()
					}
					return nil
				})
				if !fails {
					check(t, err, "")
					return
				}
				if !errors.Is(err, runtime.ErrLeaseLost) || !errors.Is(err, context.Canceled) {
					t.Errorf("%v, want ErrLeaseLost and fn's", err)
				}
				equal(t, "text", err.Error(),
					"sluice: the lease is lost: what it holds could not be extended: context canceled")
			})
		})
	}
}

// TestClose: it ends the contexts of open leases, then gives back their slots, before it closes the session.
// A lease that cannot be ended in time does not hold it up for longer than its context.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		lim, r := openSlots(t, backend)
		var contexts []context.Context
		var leases []*runtime.Lease[cost]
		for range 20 {
			lease := acquire(t, r, user{"1"}, cost{TPM: 1})
			leases = append(leases, lease)
			contexts = append(contexts, lease.Context(t.Context()))
		}
		open := 0
		backend.hook(func(_ context.Context, op string, _ *store.Call) error {
			for _, ctx := range contexts {
				if op == "settle" && ctx.Err() == nil {
					open++
				}
			}
			return nil
		})
		check(t, lim.Close(t.Context()), "")
		equal(t, "contexts that were open at a keep", open, 0)
		for _, ctx := range contexts {
			if !errors.Is(context.Cause(ctx), runtime.ErrLeaseLost) {
				t.Errorf("cause %v", context.Cause(ctx))
			}
		}
		equal(t, "free", backend.free("user-1"), 20)
		check(t, leases[0].Settle(t.Context(), cost{TPM: 5}), runtime.ErrSettled.Error())
		late := acquire(t, r, user{"1"}, cost{})
		if cause := context.Cause(late.Context(t.Context())); !errors.Is(cause, runtime.ErrLeaseLost) {
			t.Errorf("a lease of a closed limiter: %v", cause)
		}
		backend.addUp(t)
	})
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		lim, r := openSlots(t, backend)
		ctx := acquire(t, r, user{"1"}, cost{}).Context(t.Context())
		backend.hook(func(ctx context.Context, _ string, _ *store.Call) error { <-ctx.Done(); return ctx.Err() })
		start := time.Now()
		check(t, lim.Close(within(t, time.Second)), "context deadline exceeded")
		equal(t, "took", time.Since(start), time.Second)
		equal(t, "its context has ended", ctx.Err(), context.Canceled)
		elapse(store.DefaultSettleTimeout) // which bounds the keep
	})
}

// TestClaimsHold: each lease of a transaction holds its own slots, and gives back these alone.
func TestClaimsHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		lim, r := openSlots(t, backend)
		one, two := r.Claim(user{"1"}, cost{RPM: 2}), r.Claim(user{"1"}, cost{RPM: 3})
		check(t, lim.AcquireAll(t.Context(), one, two), "")
		equal(t, "free", backend.free("user-1"), 15)
		elapse(5 * time.Minute)
		one.Lease().Keep(t.Context())
		equal(t, "free after one", backend.free("user-1"), 17)
		check(t, two.Lease().Settle(t.Context(), cost{}), "")
		equal(t, "free after both", backend.free("user-1"), 20)
		equal(t, "extensions", backend.of("extend"), 4) // one write for both
		backend.addUp(t)
	})
}
