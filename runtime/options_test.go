package runtime_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

func TestBadOptions(t *testing.T) {
	for _, test := range []struct {
		name string
		opt  runtime.Option
		want string
	}{
		{"clock", runtime.WithClock(nil), "setup: WithClock: the clock is nil | correct the option"},
		{"logger", runtime.WithLogger(nil),
			"setup: WithLogger: the logger is nil; slog.DiscardHandler discards | correct the option"},
		{"observer", runtime.WithObserver(nil), "setup: WithObserver: the observer is nil | correct the option"},
		{"settle timeout", runtime.WithSettleTimeout(0),
			"setup: WithSettleTimeout(0s): want more than 0 | correct the option"},
		{"max waiters", runtime.WithMaxWaiters(0),
			"setup: WithMaxWaiters(0): want more than 0 | correct the option"},
		{"budget", runtime.WithCallDefaults(runtime.Budget(0)),
			"setup: WithCallDefaults: Budget(0s): want more than 0 | correct the option"},
		{"max wait", runtime.WithCallDefaults(runtime.MaxWait(-time.Second)),
			"setup: WithCallDefaults: MaxWait(-1s): want more than 0 | correct the option"},
		{"policy", runtime.WithCallDefaults(runtime.OnUnavailable(4)),
			"setup: WithCallDefaults: OnUnavailable(4): want Allow, Deny or Local | correct the option"},
	} {
		t.Run(test.name, func(t *testing.T) {
			// The first of several is reported, and a good one does not hide it.
			opts := []runtime.Option{test.opt, runtime.WithSettleTimeout(-1), runtime.WithSettleTimeout(1),
				runtime.WithCallDefaults(runtime.Budget(1))}
			if test.name == "budget" || test.name == "max wait" || test.name == "policy" {
				opts = []runtime.Option{test.opt, runtime.WithCallDefaults(runtime.Budget(-5), runtime.Budget(1),
					runtime.MaxWait(1))}
			}
			lim, err := runtime.NewBuilder(&fake{}, opts...).Limiter()
			check(t, err, test.want)
			if _, ok := errors.AsType[*runtime.SetupError](err); !ok || lim != nil {
				t.Errorf("limiter %v and a %T", lim, err)
			}
		})
	}
}

func TestNilStore(t *testing.T) {
	b := runtime.NewBuilder(nil, runtime.WithSettleTimeout(0))
	runtime.Bind[entity](b, gpt4(), toVector, fromVector)
	_, err := b.Limiter()
	check(t, err, "setup: New: the store is nil | pass one: dynamo.New(client, table)")
}

func TestBadCallOptions(t *testing.T) {
	store := &fake{}
	_, r := open(t, store)
	const want = `invalid gpt-4 option "Budget(-1ns)" is out of range: want more than 0`
	_, err := r.Acquire(t.Context(), user{"1"}, cost{}, runtime.Budget(-1), runtime.MaxWait(0))
	checkReason(t, err, want)
	_, err = r.Wait(t.Context(), user{"1"}, cost{}, runtime.MaxWait(0))
	checkReason(t, err, `invalid gpt-4 option "MaxWait(0s)" is out of range: want more than 0`)
	_, err = r.Acquire(t.Context(), user{"1"}, cost{}, runtime.OnUnavailable(0), runtime.Budget(0))
	checkReason(t, err, `invalid gpt-4 option "OnUnavailable(0)" is out of range: want Allow, Deny or Local`)
	bad := r.With(runtime.Budget(-1))
	_, err = bad.Acquire(t.Context(), user{"1"}, cost{}, runtime.Budget(1))
	checkReason(t, err, want)
	_, err = bad.Peek(t.Context(), user{"1"})
	checkReason(t, err, want)
	checkReason(t, bad.Do(t.Context(), user{"1"}, cost{}, nil), want)
	if _, ok := errors.AsType[*runtime.InvalidError](err); !ok {
		t.Errorf("a %T, want an *InvalidError", err)
	}
	equal(t, "calls to the store", store.count(), 0)
}

func TestNilOptionsAreSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r := open(t, &fake{}, nil, runtime.WithCallDefaults(nil))
		_, err := r.With(nil).Acquire(t.Context(), user{"1"}, cost{}, nil)
		check(t, err, "")
	})
}

// TestBudget: a call's option beats With's, With's beats WithCallDefaults', that beats the default; never
// beyond ctx.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left time.Duration
		backend := &fake{before: func(ctx context.Context, _ string, _ *store.Call) error {
			deadline, ok := ctx.Deadline()
			if !ok {
				return errors.New("no deadline")
			}
			left = time.Until(deadline)
			return nil
		}}
		_, r := open(t, backend)
		for _, test := range []struct {
			name string
			on   *resource
			opts []runtime.CallOption
			want time.Duration
		}{
			{"default", r, nil, store.DefaultBudget},
			{"call", r, []runtime.CallOption{runtime.Budget(3 * time.Second)}, 3 * time.Second},
			{"last of two", r, []runtime.CallOption{runtime.Budget(1), runtime.Budget(2 * time.Second)},
				2 * time.Second},
			{"With", r.With(runtime.Budget(time.Minute)), nil, time.Minute},
			{"call before With", r.With(runtime.Budget(time.Minute)), []runtime.CallOption{runtime.Budget(5)}, 5},
			{"With of With", r.With(runtime.Budget(time.Minute)).With(runtime.Budget(6)), nil, 6},
		} {
			left = 0
			_, err := test.on.Acquire(t.Context(), user{"1"}, cost{}, test.opts...)
			check(t, err, "")
			equal(t, test.name, left, test.want)
		}
		// Both Wait and Peek are bound as well, r itself is as it was, and With shares its buckets.
		_, err := r.Wait(t.Context(), user{"1"}, cost{}, runtime.Budget(7))
		check(t, err, "")
		equal(t, "Wait", left, 7)
		_, err = r.With(runtime.Budget(8)).Peek(t.Context(), user{"1"})
		check(t, err, "")
		equal(t, "Peek", left, 8)
		equal(t, "level", backend.level("user-1"), cost{RPM: 53, TPM: 6000})

		_, defaults := open(t, backend, runtime.WithCallDefaults(runtime.Budget(9), runtime.MaxWait(1)),
			runtime.WithCallDefaults(runtime.Budget(10)))
		acquire(t, defaults, user{"1"}, cost{})
		equal(t, "WithCallDefaults", left, 10)
		acquire(t, defaults.With(runtime.Budget(11)), user{"1"}, cost{})
		equal(t, "With before WithCallDefaults", left, 11)

		ctx, cancel := context.WithTimeout(t.Context(), 12)
		defer cancel()
		_, err = r.Acquire(ctx, user{"1"}, cost{})
		check(t, err, "")
		equal(t, "ctx's own", left, 12)
	})
}

// TestBudgetEnds: the store is told when it is over, and its error is the caller's.
func TestBudgetEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := &runtime.UnavailableError{Resource: "gpt-4", Attempts: 2, Err: context.DeadlineExceeded}
		_, r := open(t, &fake{before: func(ctx context.Context, _ string, _ *store.Call) error {
			<-ctx.Done()
			return down
		}})
		start := time.Now()
		_, err := r.Acquire(t.Context(), user{"1"}, cost{}, runtime.Budget(50*time.Millisecond),
			runtime.OnUnavailable(runtime.Deny))
		equal(t, "took", time.Since(start), 50*time.Millisecond)
		check(t, err, "unavailable gpt-4 2: context deadline exceeded")
		if !errors.Is(err, down) {
			t.Error("not the store's error")
		}
	})
}

func TestEnvOfTheStore(t *testing.T) {
	observer, logger := &runtime.Observer{}, slog.New(slog.DiscardHandler)
	backend := &fake{}
	open(t, backend, runtime.WithObserver(observer), runtime.WithLogger(logger),
		runtime.WithClock(ahead(time.Hour)),
		runtime.WithSettleTimeout(time.Minute), runtime.WithCacheTTL(time.Second))
	env := *backend.env
	equal(t, "clock", env.Clock, runtime.Clock(ahead(time.Hour)))
	equal(t, "observer", env.Observer, observer)
	equal(t, "logger", env.Logger, logger)
	equal(t, "settle time-out", env.SettleTimeout, time.Minute)
	equal(t, "cache's TTL", env.CacheTTL, time.Second)
	equal(t, "definitions", len(backend.defs), 1)

	open(t, backend)
	if env := backend.env; env.Clock == nil || env.Observer == nil || env.Logger != slog.Default() ||
		env.SettleTimeout != 5*time.Second || env.Answered == nil {
		t.Errorf("defaults are %+v", env)
	}
}

// TestStoreErrors: those of Open, Check and Close go through as they are.
func TestStoreErrors(t *testing.T) {
	broken := &runtime.SetupError{What: "table limits is not there", Do: "create it: sluice table create",
		Err: errors.New("not found")}
	const want = "setup: table limits is not there | not found | create it: sluice table create"
	_, err := runtime.NewBuilder(&fake{broken: broken}).Limiter()
	check(t, err, want)
	store := &fake{}
	lim, _ := open(t, store)
	check(t, lim.Check(t.Context()), "")
	check(t, lim.Close(t.Context()), "")
	store.broken = broken
	check(t, lim.Check(t.Context()), want)
	check(t, lim.Close(t.Context()), want)
}
