package limittest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/store"
)

type call = limittest.Call[limits.GPT4Entity, limits.GPT4Cost]

// newFake returns a fake as handlers take it, too.
func newFake() (*limittest.Fake[limits.GPT4Entity, limits.GPT4Cost], limits.GPT4Acquirer) {
	fake := limittest.NewFake((*limits.GPT4Resource)(nil))
	return fake, fake
}

// recorded compares what fake recorded.
func recorded(t *testing.T, fake *limittest.Fake[limits.GPT4Entity, limits.GPT4Cost], want ...call) {
	t.Helper()
	unexported := cmpopts.IgnoreUnexported(limits.GPT4Cost{}, limits.User{}, limits.Project{}, limits.Org{})
	if diff := cmp.Diff(want, fake.Calls(), unexported, cmpopts.EquateErrors(),
		cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

var cost, actual = limits.GPT4Cost{TPM: 500}, limits.GPT4Cost{TPM: 300}

func TestFakeRecords(t *testing.T) {
	fake, gpt4 := newFake()
	ctx := t.Context()
	recorded(t, fake)

	settled := acquire(t, gpt4, user, cost)
	if settled.Cost() != cost || settled.Remaining() != (limits.GPT4Cost{}) {
		t.Errorf("a lease of %v has %v left, want the cost and nothing", settled.Cost(), settled.Remaining())
	}
	open := call{Method: "Acquire", Entity: user, Cost: cost}
	recorded(t, fake, open)
	if err := settled.Settle(ctx, actual); err != nil {
		t.Error(err)
	}
	settled.Release(ctx) // does nothing
	if err := settled.Settle(ctx, cost); !errors.Is(err, runtime.ErrSettled) {
		t.Errorf("a second settle: %v", err)
	}
	first := call{Method: "Acquire", Entity: user, Cost: cost, Settled: actual, Done: true}
	recorded(t, fake, first)

	waited, err := gpt4.Wait(ctx, user.Project, cost)
	if err != nil {
		t.Fatal(err)
	}
	waited.Release(ctx)
	second := call{Method: "Wait", Entity: user.Project, Cost: cost, Done: true, Released: true}
	acquire(t, gpt4, user, actual) // dropped
	third := call{Method: "Acquire", Entity: user, Cost: actual}
	recorded(t, fake, first, second, third)

	// To settle for nothing is to settle.
	if err := acquire(t, gpt4, user, cost).Settle(ctx, limits.GPT4Cost{}); err != nil {
		t.Error(err)
	}
	recorded(t, fake, first, second, third, call{Method: "Acquire", Entity: user, Cost: cost, Done: true})
}

func TestFakeDo(t *testing.T) {
	fake, gpt4 := newFake()
	failed := errors.New("the model failed")
	nothing := func(context.Context, *limits.GPT4Lease) error { return nil }
	if err := gpt4.Do(t.Context(), user, cost, nothing); err != nil {
		t.Error(err)
	}
	if err := gpt4.Do(t.Context(), user, cost, func(context.Context,
		*limits.GPT4Lease) error {
		return failed
	}); !errors.Is(err, failed) {
		t.Error(err)
	}
	err := gpt4.Do(t.Context(), user, cost, func(ctx context.Context,
		lease *limits.GPT4Lease) error {
		return lease.Settle(ctx, actual)
	})
	if err != nil {
		t.Error(err)
	}
	fake.Fail(failed)
	if err := gpt4.Do(t.Context(), user, cost, nothing); !errors.Is(err, failed) {
		t.Error(err)
	}
	open := call{Method: "Do", Entity: user, Cost: cost}
	recorded(t, fake, open, call{Method: "Do", Entity: user, Cost: cost, Done: true, Released: true},
		call{Method: "Do", Entity: user, Cost: cost, Settled: actual, Done: true},
		call{Method: "Do", Entity: user, Cost: cost, Err: failed})
}

func TestFakeDenies(t *testing.T) {
	fake, gpt4 := newFake()
	fake.Deny(limits.GPT4TPM, 1500*time.Millisecond)
	for range 2 {
		_, err := gpt4.Acquire(t.Context(), user, cost)
		denied, ok := errors.AsType[*limits.DeniedError](err)
		if !ok || !denied.By(limits.GPT4TPM) || denied.RetryAfter != 1500*time.Millisecond ||
			denied.Entity != "1" || len(denied.Refusals) != 1 {
			t.Errorf("%#v", err)
		}
	}
	if calls := fake.Calls(); len(calls) != 2 || calls[1].Err == nil || calls[1].Done {
		t.Errorf("recorded %+v", calls)
	}
	if _, err := gpt4.Peek(t.Context(), user); err != nil { // which denies nobody
		t.Error(err)
	}
	fake.Deny(limits.GPT4TPM, -time.Second)
	_, err := gpt4.Acquire(t.Context(), user, cost)
	if denied, ok := errors.AsType[*limits.DeniedError](err); !ok || denied.RetryAfter != 0 {
		t.Errorf("denied for less than no time: %v", err)
	}
	fake.Admit()
	acquire(t, gpt4, user, cost)
}

func TestFakeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, gpt4 := newFake()
		fake.Deny(limits.GPT4RPM, time.Minute)
		began := time.Now()
		lease, err := gpt4.Wait(t.Context(), user, cost)
		if err != nil {
			t.Fatal(err)
		}
		lease.Release(t.Context())
		if took := time.Since(began); took != time.Minute {
			t.Errorf("it waited %v, want the minute", took)
		}

		began = time.Now()
		_, err = gpt4.Wait(t.Context(), user, cost, runtime.MaxWait(time.Second))
		if denied, ok := errors.AsType[*limits.DeniedError](err); !ok || denied.RetryAfter != time.Minute ||
			!errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without the time: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, cancel)
		_, left := gpt4.Wait(ctx, user, cost)
		if !errors.Is(left, context.Canceled) {
			t.Errorf("a caller who has gone: %v", left)
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("both took %v, want 2s", took)
		}
		recorded(t, fake, call{Method: "Wait", Entity: user, Cost: cost, Done: true, Released: true},
			call{Method: "Wait", Entity: user, Cost: cost, Err: err}, call{Method: "Wait", Entity: user, Cost: cost,
				Err: left})
	})
}

func TestFakeFails(t *testing.T) {
	fake, gpt4 := newFake()
	lease := acquire(t, gpt4, user, cost)
	released := acquire(t, gpt4, user, cost)
	down := &limits.UnavailableError{Resource: limits.GPT4, Attempts: 3, Err: errors.New("down")}
	fake.Fail(down)
	if _, err := gpt4.Acquire(t.Context(), user, cost); !errors.Is(err, down) {
		t.Error(err)
	}
	if _, err := gpt4.Wait(t.Context(), user, cost); !errors.Is(err, down) {
		t.Error(err)
	}
	if _, err := gpt4.Peek(t.Context(), user); !errors.Is(err, down) {
		t.Error(err)
	}
	if err := lease.Settle(t.Context(), actual); !errors.Is(err, down) {
		t.Error(err)
	}
	released.Release(t.Context())
	fake.Fail(nil)
	acquire(t, gpt4, user, cost)
	refused := func(method string) call { return call{Method: method, Entity: user, Cost: cost, Err: down} }
	recorded(t, fake, call{Method: "Acquire", Entity: user, Cost: cost, Settled: actual, Done: true},
		call{Method: "Acquire", Entity: user, Cost: cost, Done: true, Released: true},
		refused("Acquire"), refused("Wait"), call{Method: "Acquire", Entity: user, Cost: cost})
}

// TestFakeFailsEveryTime: its breaker, if it had one that lasts, would have opened.
func TestFakeFailsEveryTime(t *testing.T) {
	fake, gpt4 := newFake()
	down := &limits.UnavailableError{Err: errors.New("down")}
	fake.Fail(down)
	for range 20 {
		if _, err := gpt4.Acquire(t.Context(), user, cost); !errors.Is(err, down) ||
			errors.Is(err, runtime.ErrBreakerOpen) {
			t.Fatal(err)
		}
	}
}

// TestFakeDegrades where the call itself asks for it, and records what becomes of the lease.
func TestFakeDegrades(t *testing.T) {
	fake, gpt4 := newFake()
	fake.Fail(&limits.UnavailableError{Err: errors.New("down")})
	for _, policy := range []store.Policy{store.Allow, store.Local} {
		settled, err := gpt4.Acquire(t.Context(), user, cost, runtime.OnUnavailable(policy))
		if err != nil || !settled.Degraded() {
			t.Fatalf("%v: degraded %v, %v", policy, settled.Degraded(), err)
		}
		released, err := gpt4.Wait(t.Context(), user, cost, runtime.OnUnavailable(policy))
		if err != nil || !released.Degraded() {
			t.Fatalf("%v: degraded %v, %v", policy, released.Degraded(), err)
		}
		if err := settled.Settle(t.Context(), actual); err != nil {
			t.Error(err)
		}
		released.Release(t.Context())
	}
	one, two := call{Method: "Acquire", Entity: user, Cost: cost, Settled: actual, Done: true},
		call{Method: "Wait", Entity: user, Cost: cost, Done: true, Released: true}
	recorded(t, fake, one, two, one, two)
}

// TestFakeFindsFault where a Resource does, but for what only the schema knows.
func TestFakeFindsFault(t *testing.T) {
	fake, gpt4 := newFake()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx    context.Context
		entity limits.GPT4Entity
		opts   []runtime.CallOption
		want   string
	}{
		"no entity": {t.Context(), nil, nil, "invalid fake entity"},
		"no id":     {t.Context(), limits.User{}, nil, "invalid fake id User"},
		"bad option": {t.Context(), user, []runtime.CallOption{runtime.MaxWait(-1)},
			`invalid fake option "MaxWait(-1ns)"`},
		"ctx over": {over, user, nil, "context canceled fake 1"},
	} {
		_, err := gpt4.Acquire(test.ctx, test.entity, cost, test.opts...)
		if got := errtext.Of(err); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		if calls := fake.Calls(); !errors.Is(calls[len(calls)-1].Err, err) {
			t.Errorf("%s: recorded %v", name, calls[len(calls)-1].Err)
		}
	}
}

// TestFakeConcurrently: each settle is recorded with its call. It is for the race detector, too.
func TestFakeConcurrently(t *testing.T) {
	fake, gpt4 := newFake()
	var all sync.WaitGroup
	for i := range int64(64) {
		all.Go(func() {
			lease, err := gpt4.Acquire(t.Context(), user, limits.GPT4Cost{TPM: i + 1})
			if err != nil {
				t.Error(err)
				return
			}
			var both sync.WaitGroup
			// one of these comes first
			both.Go(func() { _ = lease.Settle(t.Context(), limits.GPT4Cost{TPM: 1000 + i}) })
			both.Go(func() { _ = lease.Settle(t.Context(), limits.GPT4Cost{TPM: 1000 + i}) })
			both.Wait()
			_ = fake.Calls()
		})
	}
	all.Wait()
	seen := map[int64]bool{}
	for _, c := range fake.Calls() {
		seen[c.Cost.TPM] = true
		if !c.Done || c.Settled.TPM != c.Cost.TPM+999 {
			t.Errorf("recorded %+v", c)
		}
	}
	if len(seen) != 64 {
		t.Errorf("%d calls, want 64", len(seen))
	}
}

// TestFakeFailsWithADenial: it is as with Deny, and the error that was handed over stays as it is.
func TestFakeFailsWithADenial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, gpt4 := newFake()
		// To be tried again at once.
		fake.Fail(&store.DeniedError{Resource: limits.GPT4, Limit: limits.GPT4TPM.String()})
		if _, err := gpt4.Wait(t.Context(), user, cost); err != nil {
			t.Error(err)
		}
		fake.Fail(&store.DeniedError{Resource: limits.GPT4, Limit: limits.GPT4TPM.String(), RetryAfter: time.Hour})
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if _, err := gpt4.Wait(t.Context(), user, cost, runtime.MaxWait(time.Second)); !errors.Is(err,
					context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		_, err := gpt4.Acquire(t.Context(), user, cost)
		if denied, ok := errors.AsType[*limits.DeniedError](err); !ok || denied.RetryAfter != time.Hour ||
			errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}
