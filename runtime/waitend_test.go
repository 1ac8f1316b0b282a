package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

const noTime = "denied gpt-4 user-1 tpm 0/1000 10s deadline"

// within is t's context with a deadline.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// patient returns a copy of ctx that ends in a year: a Wait without an end denies at once if it is over a
// minute.
func patient(t *testing.T, ctx context.Context) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 365*24*time.Hour)
	t.Cleanup(cancel)
	return ctx
}

// gaveUp checks that the waiter that ended last was denied for want of time.
func (w *waits) gaveUp(limit string, retryAfter time.Duration) {
	w.t.Helper()
	denied, ok := errors.AsType[*runtime.DeniedError](w.last)
	if !ok || !errors.Is(w.last, context.DeadlineExceeded) || denied.Limit != limit ||
		denied.RetryAfter != retryAfter {
		w.t.Errorf("error %v, want %s to deny for %v and the deadline to be exceeded", w.last, limit, retryAfter)
	}
}

func TestWaitFailsAtOnce(t *testing.T) {
	for _, test := range []struct {
		name     string
		deadline time.Duration // 0: none
		maxWait  time.Duration // 0: none
		want     string
	}{
		{"deadline before", 9 * time.Second, 0, noTime},
		{"deadline then", 10 * time.Second, 0, noTime},
		{"deadline after", 10*time.Second + 1, 0, ""},
		{"MaxWait before", 0, 10 * time.Second, noTime},
		{"MaxWait after", 0, 10*time.Second + 1, ""},
		{"MaxWait before the deadline", time.Minute, time.Second, noTime},
		{"deadline before MaxWait", time.Second, time.Minute, noTime},
		{"both after", time.Minute, time.Minute, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &fake{}
				w := queue(t, store)
				ctx := t.Context()
				if test.deadline > 0 {
					ctx = within(t, test.deadline)
				}
				var opts []runtime.CallOption
				if test.maxWait > 0 {
					opts = append(opts, runtime.MaxWait(test.maxWait))
				}
				w.join(ctx, "a", 1000, opts...)
				if test.want == "" {
					w.next("a", 10*time.Second, "")
					return
				}
				w.next("a", 0, test.want)
				w.gaveUp("tpm", 10*time.Second)
				equal(t, "tries", store.count(), 1)
				equal(t, "level", store.level("user-1"), cost{60, 0})
			})
		})
	}
}

func TestMaxWaitPrecedence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := queue(t, &fake{}, runtime.WithCallDefaults(runtime.MaxWait(time.Second)))
		w.join(t.Context(), "default", 1000)
		w.next("default", 0, noTime)
		w.r = w.r.With(runtime.MaxWait(11 * time.Second))
		w.join(t.Context(), "call", 1000, runtime.MaxWait(time.Second))
		w.next("call", 0, noTime)
		w.join(t.Context(), "With", 1000)
		w.next("With", 10*time.Second, "")
		// Acquire does not wait, whatever MaxWait.
		_, err := w.r.Acquire(t.Context(), user{"1"}, cost{TPM: 1000})
		check(t, err, "denied gpt-4 user-1 tpm 0/1000 10s")
	})
}

// TestDeepInTheLine: a waiter knows from those ahead that its turn would come too late.
func TestDeepInTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{}
		w := queue(t, store)
		w.join(t.Context(), "a", 1000)
		w.join(within(t, 25*time.Second), "b", 1000)
		elapse(3 * time.Second)
		w.join(within(t, 25*time.Second), "c", 1000)
		w.next("c", 3*time.Second,
			"denied gpt-4 user-1 tpm 0/1000 27s deadline")
		w.gaveUp("tpm", 27*time.Second)
		w.join(within(t, 25*time.Second), "d", 500) // in its place, with less
		equal(t, "attempts, a's alone", store.of("acquire"), 1)
		w.next("a", 10*time.Second, "")
		w.next("b", 20*time.Second, "")
		w.next("d", 25*time.Second, "")
	})
}

// TestOutlookKnowsTheBurst: a limit that has been full for an hour has its burst to give, not the hour.
func TestOutlookKnowsTheBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{}
		w := queue(t, store)
		store.put(time.Hour, 60, -360_000) // an hour later: 60 rpm, and 0 tpm
		equal(t, "level", store.level("user-1"), cost{60, 0})
		w.joinCost(t.Context(), "a", cost{RPM: 60, TPM: 1000})
		w.joinCost(within(t, 29*time.Second), "b", cost{RPM: 30})
		w.next("b", 0, "denied gpt-4 user-1 rpm 0/30 30s deadline")
		w.gaveUp("rpm", 30*time.Second)
		w.next("a", 10*time.Second, "")
	})
}

// TestOutlookAfterATurn: what the one served left is news to those behind.
func TestOutlookAfterATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{}
		w := queue(t, store)
		w.join(t.Context(), "a", 100)
		w.join(t.Context(), "b", 100)
		w.join(within(t, 4*time.Second), "c", 100)
		store.put(0, 60, -900) // somebody else's settle
		w.done(0)
		// At 1 s a finds out, and so does everyone.
		w.next("c", time.Second,
			"denied gpt-4 user-1 tpm 0/100 11s deadline")
		w.gaveUp("tpm", 11*time.Second)
		w.next("a", 10*time.Second, "")
		w.next("b", 11*time.Second, "")
	})
}

// TestDeniedAgain: the tokens were there in time, but somebody else took them after the last read.
func TestDeniedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{}
		w := queue(t, store)
		w.join(within(t, 11*time.Second), "a", 1000)
		elapse(9500 * time.Millisecond)
		acquire(t, w.r, user{"1"}, cost{TPM: 900})
		w.next("a", 10*time.Second,
			"denied gpt-4 user-1 tpm 100/1000 9s deadline")
		w.gaveUp("tpm", 9*time.Second)
	})
}

func TestCancelledWaiterLeaves(t *testing.T) {
	const abandoned = "context canceled gpt-4 user-1"
	for _, test := range []struct {
		name string
		who  string
		want []outcome // after the cancellation
	}{
		{"first", "a", []outcome{{"b", 10 * time.Second, nil}, {"c", 20 * time.Second, nil}}},
		{"in the middle", "b", []outcome{{"a", 10 * time.Second, nil}, {"c", 20 * time.Second, nil}}},
		{"last", "c", []outcome{{"a", 10 * time.Second, nil}, {"b", 20 * time.Second, nil}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := queue(t, &fake{})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				for _, name := range []string{"a", "b", "c"} {
					if name == test.who {
						w.join(ctx, name, 1000)
					} else {
						w.join(t.Context(), name, 1000)
					}
				}
				elapse(5 * time.Second)
				cancel()
				w.next(test.who, 5*time.Second, abandoned)
				err := w.last
				if !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v is not context.Canceled alone", err)
				}
				for _, o := range test.want {
					w.next(o.name, o.at, "")
				}
			})
		})
	}
}

// TestPlaceFreedInTime: a waiter whose turn has come nearer by another's leaving is served, and joins none
// too late.
func TestPlaceFreedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := queue(t, &fake{})
		ctx, cancel := context.WithCancel(t.Context())
		w.join(ctx, "a", 5000)
		w.join(within(t, time.Minute), "b", 500)
		cancel()
		w.next("a", 0, "context canceled gpt-4 user-1")
		w.next("b", 5*time.Second, "")
	})
}

// TestDeadlineBehindASilentStore: nobody knows the bucket yet, so that there is no denial to return.
func TestDeadlineBehindASilentStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{before: func(ctx context.Context, _ string, _ *store.Call) error {
			<-ctx.Done()
			return &runtime.UnavailableError{Resource: "gpt-4", Attempts: 1, Err: ctx.Err()}
		}}
		w := queue(t, backend)
		w.join(t.Context(), "a", 1, runtime.Budget(5*time.Second), runtime.OnUnavailable(runtime.Deny))
		w.join(within(t, time.Second), "b", 1)
		w.next("b", time.Second, "context deadline exceeded gpt-4 user-1")
		err := w.last
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error("not context.DeadlineExceeded")
		}
		w.next("a", 5*time.Second, "unavailable gpt-4 1: context deadline exceeded")
	})
}

// TestContendedToTheEnd: a wait that only ever lost its race ends with its context, whatever ended that.
func TestContendedToTheEnd(t *testing.T) {
	contended := func(context.Context, string, *store.Call) error {
		elapse(300 * time.Millisecond)
		return &runtime.ContendedError{Resource: "gpt-4", Entity: "user-1", Attempts: 8}
	}
	synctest.Test(t, func(t *testing.T) {
		store := &fake{before: contended}
		w := queue(t, store)
		w.join(within(t, time.Second), "a", 1)
		w.next("a", time.Second, "context deadline exceeded gpt-4 user-1")
		ctx, cancel := context.WithCancel(t.Context())
		w.join(ctx, "b", 1)
		cancel()
		w.next("b", 1300*time.Millisecond, "context canceled gpt-4 user-1")
	})
	synctest.Test(t, func(t *testing.T) {
		store := &fake{}
		w := queue(t, store)
		w.join(within(t, 1100*time.Millisecond), "a", 100)
		store.hook(contended)
		w.next("a", 1300*time.Millisecond,
			"denied gpt-4 user-1 tpm 0/100 1s deadline")
		w.gaveUp("tpm", time.Second)
	})
}

// TestMaxWaitOfASilentStore: MaxWait bounds the first try as a Budget does, so that its error says what was
// wrong.
func TestMaxWaitOfASilentStore(t *testing.T) {
	silent := func(ctx context.Context, _ string, _ *store.Call) error {
		<-ctx.Done()
		return &runtime.UnavailableError{Resource: "gpt-4", Attempts: 2, Err: fmt.Errorf("%w, after reset",
			ctx.Err())}
	}
	const down = "unavailable gpt-4 2: context deadline exceeded, after reset"
	deny := runtime.OnUnavailable(runtime.Deny)
	synctest.Test(t, func(t *testing.T) {
		w := queue(t, &fake{before: silent})
		w.join(t.Context(), "MaxWait first", 1, deny, runtime.MaxWait(300*time.Millisecond))
		w.next("MaxWait first", 300*time.Millisecond, down)
		w.join(t.Context(), "Budget first", 1, deny, runtime.MaxWait(time.Minute))
		w.next("Budget first", 1300*time.Millisecond, down)
		w.join(within(t, 300*time.Millisecond), "deadline first", 1, deny, runtime.MaxWait(time.Second))
		w.next("deadline first", 1600*time.Millisecond, "context deadline exceeded gpt-4 user-1")
		w.join(t.Context(), "a", 1, deny)
		w.join(t.Context(), "b", 1, deny, runtime.MaxWait(time.Millisecond)) // behind a, who has heard nothing
		w.next("b", 1601*time.Millisecond, "MaxWait is over gpt-4 user-1 1ms")
		if !errors.Is(w.last, context.DeadlineExceeded) {
			t.Error("not context.DeadlineExceeded")
		}
		w.next("a", 2600*time.Millisecond, down)
	})
	// Once the store has answered, MaxWait is the wait's: what it cuts short is no outage, and so not admitted.
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		w := queue(t, backend)
		w.join(t.Context(), "a", 100, runtime.MaxWait(1100*time.Millisecond))
		backend.hook(silent)
		w.next("a", 1100*time.Millisecond,
			"denied gpt-4 user-1 tpm 0/100 1s deadline")
		w.gaveUp("tpm", time.Second)
		backend.hook(func(context.Context, string, *store.Call) error {
			elapse(300 * time.Millisecond)
			return &runtime.ContendedError{Resource: "gpt-4", Entity: "user-1", Attempts: 8}
		})
		w.join(t.Context(), "b", 1, runtime.MaxWait(325*time.Millisecond))
		w.next("b", 1425*time.Millisecond, "MaxWait is over gpt-4 user-1 325ms")
	})
}
