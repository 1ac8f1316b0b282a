package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// lazies is a fake that leaves what it may for later.
type lazies struct {
	*fake

	t     *testing.T
	later []func(err error) // each ends one settle, with err unless that is nil
	hasty bool              // they end before Settle returns
}

func (l *lazies) Open(env *store.Env, defs ...store.Definition) (store.Session, error) {
	_, err := l.fake.Open(env, defs...)
	return l, err
}

func (l *lazies) Settle(ctx context.Context, call *store.Call) error {
	ended := call.Later
	if ended == nil {
		return l.fake.Settle(ctx, call)
	}
	call.Later = nil
	end := func(err error) {
		if err == nil {
			err = errors.Join(ctx.Err(), l.fake.Settle(ctx, call))
		}
		ended(err)
		equal(l.t, "context of what has ended", ctx.Err(), context.Canceled)
	}
	if l.hasty {
		end(nil)
		return nil
	}
	l.later = append(l.later, end)
	return nil
}

// flush ends all settles that wait.
func (l *lazies) flush(err error) {
	for _, end := range l.later {
		end(err)
	}
	l.later = nil
}

// TestLazySettle: everything that follows from a settle or release follows once it is written.
func TestLazySettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []report
		option, lines := logged()
		store := &lazies{t: t, fake: &fake{}}
		_, r := openOn(t, store, 0, option, runtime.WithObserver(watch(&got)),
			runtime.WithCallDefaults(runtime.LazySettle(true)))
		settled, released := acquire(t, r, user{"1"}, cost{TPM: 100}), acquire(t, r, user{"1"}, cost{TPM: 100})
		failed, lost := acquire(t, r, user{"1"}, cost{TPM: 100}), acquire(t, r, user{"1"}, cost{TPM: 100})
		got = nil
		check(t, settled.Settle(t.Context(), cost{TPM: -1}),
			`invalid gpt-4 cost tpm "-1"`)
		equal(t, "reports of it", len(got), 1)
		got = nil
		check(t, settled.Settle(t.Context(), cost{TPM: 40}), "")
		released.Release(t.Context())
		if err := settled.Settle(t.Context(), cost{}); !errors.Is(err, runtime.ErrSettled) {
			t.Errorf("second settle: %v", err)
		}
		released.Release(t.Context())
		equal(t, "left for later", len(store.later), 2)
		equal(t, "reports so far", len(got), 0)
		equal(t, "remaining of the acquire", settled.Remaining(), cost{59, 5900})
		elapse(50 * time.Millisecond)
		store.flush(nil)
		equal(t, "remaining", settled.Remaining(), cost{56, 5665}) // 50 ms of refill
		equal(t, "remaining of the released", released.Remaining(), cost{57, 5765})

		check(t, failed.Settle(t.Context(), cost{TPM: 40}), "")
		lost.Release(t.Context())
		elapse(time.Second)
		store.flush(errors.New("down"))
		of := func(operation string, took time.Duration) runtime.Event {
			return runtime.Event{Operation: operation, Resource: "gpt-4", Kind: "user", Entity: "user-1", Took: took}
		}
		want := []report{
			{"settled", of("", 50*time.Millisecond), ""}, {"released", of("", 50*time.Millisecond), ""},
			{"failed", of("settle", time.Second), "down"}, {"failed", of("release", time.Second), "down"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("reported (-want +got):\n%s", diff)
		}
		const who = ` resource=gpt-4 entity=user-1 error=down`
		logs := []string{
			`level=WARN msg="sluice: settle did not get through; its lease stands as charged or as settled"` + who,
			`level=WARN msg="sluice: release did not get through; the tokens come back by refill"` + who,
		}
		if diff := cmp.Diff(logs, lines()); diff != "" {
			t.Errorf("logged (-want +got):\n%s", diff)
		}
	})
}

// TestLazySettleAtOnce: a store may do without, fail at once, or be done before it returns.
func TestLazySettleAtOnce(t *testing.T) {
	for _, test := range []struct {
		name  string
		store func(*fake) runtime.Store
		err   error
		want  string
	}{
		{"hasty", func(f *fake) runtime.Store { return &lazies{fake: f, t: t, hasty: true} }, nil, "settled"},
		{"without", func(f *fake) runtime.Store { return f }, nil, "settled"},
		{"without, failing", func(f *fake) runtime.Store { return f }, errors.New("down"), "failed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []report
				option, lines := logged()
				backend := &fake{}
				_, r := openOn(t, test.store(backend), 0, option, runtime.WithObserver(watch(&got)))
				lease, err := r.Acquire(t.Context(), user{"1"}, cost{TPM: 100}, runtime.LazySettle(true))
				check(t, err, "")
				backend.hook(func(context.Context, string, *store.Call) error { return test.err })
				got = nil
				if err := lease.Settle(t.Context(), cost{TPM: 40}); !errors.Is(err, test.err) {
					t.Errorf("error %v, want %v", err, test.err)
				}
				equal(t, "reports", len(got), 1)
				equal(t, "report", got[0].Which, test.want)
				equal(t, "log lines", len(lines()), 0)
				equal(t, "remaining", lease.Remaining() == cost{59, 5960}, test.err == nil)
			})
		})
	}
}

// TestLazySettleServesWaiters once it is written.
func TestLazySettleServesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &lazies{t: t, fake: &fake{}}
		lim, r := openOn(t, store, 0, runtime.WithCallDefaults(runtime.LazySettle(true)))
		w := &waits{t: t, lim: lim, r: r, start: time.Now(), ended: make(chan outcome, 100)}
		lease := acquire(t, r, user{"1"}, cost{TPM: 6000})
		w.join(t.Context(), "a", 5000)
		lease.Release(t.Context())
		w.done(0)
		elapse(100 * time.Millisecond)
		store.flush(nil)
		w.next("a", 100*time.Millisecond, "")
	})
}

// TestLazySettlePrecedence: a call's option beats With's, With's beats WithCallDefaults', that beats
// limits.yaml's. Claims have their resource's.
func TestLazySettlePrecedence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on, off := runtime.LazySettle(true), runtime.LazySettle(false)
		for i, test := range []struct {
			schema         bool
			all, with, one runtime.CallOption
			lazy           bool
		}{
			{},
			{schema: true, lazy: true},
			{all: on, lazy: true},
			{schema: true, all: off},
			{all: off, with: on, lazy: true},
			{schema: true, all: on, with: off},
			{with: off, one: on, lazy: true},
			{schema: true, all: on, with: on, one: off},
		} {
			store := &lazies{t: t, fake: &fake{}}
			def := gpt4()
			def.spec.LazySettle = test.schema
			b := runtime.NewBuilder(store, runtime.WithCallDefaults(test.all))
			r := runtime.Bind[entity](b, def, toVector, fromVector)
			lim, err := b.Limiter()
			check(t, err, "")
			r = r.With(test.with)
			left := func(what string, lazy bool, lease *runtime.Lease[cost], err error) {
				check(t, err, "")
				store.later = nil
				lease.Release(t.Context())
				equal(t, fmt.Sprintf("case %d, %s: left for later", i, what), len(store.later) == 1, lazy)
			}
			lease, err := r.Acquire(t.Context(), user{"1"}, cost{}, test.one)
			left("Acquire", test.lazy, lease, err)
			lease, err = r.Wait(t.Context(), user{"1"}, cost{}, test.one)
			left("Wait", test.lazy, lease, err)
			if test.one == nil {
				claim := r.Claim(user{"1"}, cost{})
				err = lim.AcquireAll(t.Context(), claim)
				left("AcquireAll", test.lazy, claim.Lease(), err)
			}
		}
	})
}

// TestLazySettleOfADegradedLease is done at once: it is no write.
func TestLazySettleOfADegradedLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, policy := range []runtime.Policy{runtime.Allow, runtime.Local} {
			var got []report
			backend := &lazies{t: t, fake: &fake{before: func(context.Context, string, *store.Call) error {
				return down()
			}}}
			_, r := openOn(t, backend, policy, runtime.WithObserver(watch(&got)))
			lease, err := r.Acquire(t.Context(), user{"1"}, cost{TPM: 100}, runtime.LazySettle(true))
			check(t, err, "")
			check(t, lease.Settle(t.Context(), cost{TPM: 40}), "")
			equal(t, "left for later", len(backend.later), 0)
			equal(t, "reports", len(got), 1)
		}
	})
}
