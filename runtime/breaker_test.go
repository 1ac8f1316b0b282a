package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// outage is a resource that denies what the store cannot decide, on a store that is broken at will.
type outage struct {
	t     *testing.T
	store *outages
	r     *resource
}

func newOutage(t *testing.T, opts ...runtime.Option) *outage {
	t.Helper()
	store := &outages{fake: &fake{}}
	_, r := openOn(t, store, runtime.Deny, opts...)
	return &outage{t, store, r}
}

// ask reports whether the store was asked, n times with answer err, or without.
func (o *outage) ask(what string, n int, err error, asked bool) {
	o.t.Helper()
	o.store.fail(err)
	for i := range n {
		before := o.store.count()
		_, got := o.r.Acquire(o.t.Context(), user{"1"}, cost{})
		equal(o.t, fmt.Sprintf("%s, call %d: asked", what, i+1), o.store.count() > before, asked)
		if refused := errors.Is(got, runtime.ErrBreakerOpen); refused == asked {
			o.t.Errorf("%s, call %d: %v", what, i+1, got)
		}
	}
}

// TestBreaker: a dead store opens it after five calls. It lets a probe through a second later, and closes
// once that is answered.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns []string
		option, lines := logged()
		o := newOutage(t, option, runtime.WithObserver(&runtime.Observer{
			Breaker: func(open bool, err error) { turns = append(turns, fmt.Sprint(open, " ", errtext.Of(err))) },
		}))
		o.ask("closed", 5, down(), true)
		start := time.Now()
		o.ask("open", 3, down(), false)
		_, err := o.r.Acquire(t.Context(), user{"1"}, cost{})
		check(t, err, "unavailable gpt-4: circuit breaker is open; last: connection refused")
		if u, ok := errors.AsType[*runtime.UnavailableError](err); !ok || u.Throttled || u.Attempts != 0 {
			t.Errorf("%+v", err)
		}
		equal(t, "took", time.Since(start), 0)
		elapse(time.Second - 1)
		o.ask("within a second", 1, down(), false)
		elapse(1)
		o.ask("probe", 1, down(), true)
		o.ask("open again", 2, nil, false)
		elapse(time.Second)
		o.ask("probe, answered", 1, nil, true)
		o.ask("closed again", 4, down(), true)
		o.ask("answer", 1, nil, true)
		o.ask("from the start", 4, down(), true)

		const failure = "unavailable gpt-4 2: connection refused"
		if diff := cmp.Diff([]string{"true " + failure, "false "}, turns); diff != "" {
			t.Errorf("reported (-want +got):\n%s", diff)
		}
		want := []string{
			`level=WARN msg="sluice: circuit breaker opened: a second after each failure, up to four ` +
				`calls probe the store" error="` + failure + `"`,
			`level=INFO msg="sluice: circuit breaker closed: the store answers again"`,
		}
		if diff := cmp.Diff(want, lines()); diff != "" {
			t.Errorf("logged (-want +got):\n%s", diff)
		}
	})
}

// TestBreakerCounts: which ends of a call are failures, which are answers, and which are neither.
func TestBreakerCounts(t *testing.T) {
	throttled := down()
	throttled.Throttled = true
	notSent := &runtime.UnavailableError{Err: fmt.Errorf("%w: %w", store.ErrNotSent, context.DeadlineExceeded)}
	for _, test := range []struct {
		name     string
		err      error
		leaves   bool // its caller
		answer   bool // else neutral
		failures bool
	}{
		{name: "admitted", answer: true},
		{name: "admitted to one who has left", leaves: true, answer: true},
		{name: "denied", err: &runtime.DeniedError{}, answer: true},
		{name: "above the burst", err: &runtime.CostTooLargeError{}}, // maybe from memory
		{name: "invalid", err: &runtime.InvalidError{}},
		{name: "contended", err: &runtime.ContendedError{}, answer: true},
		{name: "setup", err: &runtime.SetupError{What: "no table"}, answer: true},
		{name: "setup for want of an answer", err: &runtime.SetupError{What: "no region", Err: down()},
			answer: true},
		{name: "down", err: down(), failures: true},
		{name: "throttled", err: throttled, answer: true},
		{name: "throttled, and its caller has left", err: throttled, leaves: true, answer: true},
		{name: "not sent", err: notSent},
		{name: "down, and its caller has left", err: down(), leaves: true},
		{name: "caller's own error", err: context.Canceled, leaves: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOutage(t)
				one := func() {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					o.store.hook(func(context.Context, string, *store.Call) error {
						if test.leaves {
							cancel()
						}
						return test.err
					})
					calls := o.store.count()
					_, _ = o.r.Acquire(ctx, user{"1"}, cost{})
					equal(t, "asked", o.store.count() > calls, true)
				}
				o.ask("four", 4, down(), true)
				one()
				o.store.fail(down())
				_, err := o.r.Acquire(t.Context(), user{"1"}, cost{})
				equal(t, "opened by the fifth failure alone", errors.Is(err, runtime.ErrBreakerOpen), test.failures)
				o.ask("four in a row, five but for answers", 3, down(), test.answer)
				if test.answer {
					o.ask("fifth", 1, down(), true)
				}
				o.ask("open", 1, nil, false)

				// As a probe: an answer closes, a failure opens anew, and anything else leaves it to the next call.
				elapse(time.Second + 1)
				one()
				o.ask("after the probe", 1, down(), !test.failures)
				o.ask("and one more", 1, down(), test.answer)
			})
		})
	}
}

// TestBreakerLetsFourProbe: half-open under a crowd of 1,000, at most four calls are under way at once. The
// others do not wait for them, and one answer is enough for all.
func TestBreakerLetsFourProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutage(t)
		o.ask("five", 5, down(), true)
		elapse(time.Second)
		answer := make(chan error)
		var underWay, most, asked atomic.Int32
		o.store.hook(func(context.Context, string, *store.Call) error {
			asked.Add(1)
			most.Store(max(most.Load(), underWay.Add(1)))
			defer underWay.Add(-1)
			return <-answer
		})
		start := time.Now()
		refused, ended := atomic.Int32{}, make(chan struct{}, 1000)
		crowd := func() {
			for range cap(ended) {
				go func() {
					_, err := o.r.Acquire(t.Context(), user{"1"}, cost{})
					if errors.Is(err, runtime.ErrBreakerOpen) {
						refused.Add(1)
					}
					ended <- struct{}{}
				}()
			}
			synctest.Wait()
		}
		crowd()
		equal(t, "refused", refused.Load(), 996)
		equal(t, "under way", underWay.Load(), 4)
		for range 4 {
			answer <- down()
			synctest.Wait()
		}
		for range cap(ended) {
			<-ended
		}
		elapse(time.Second - 1)
		crowd()
		equal(t, "refused within a second", refused.Load(), 1996)
		for range cap(ended) {
			<-ended
		}
		elapse(1)
		crowd()
		equal(t, "took", time.Since(start), time.Second)
		equal(t, "most under way", most.Load(), 4)
		answer <- nil
		synctest.Wait()
		asked.Store(0)
		for range cap(ended) - 3 {
			<-ended
		}
		crowd()
		equal(t, "asked after the answer", asked.Load(), 1000)
		close(answer)
		for range cap(ended) + 3 {
			<-ended
		}
	})
}

// TestBreakerSurvivesAPanic of the store's, in a probe too.
func TestBreakerSurvivesAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutage(t)
		o.ask("five", 5, down(), true)
		elapse(time.Second)
		o.store.hook(func(context.Context, string, *store.Call) error { panic("store") })
		for range 5 { // more than there are probes at a time
			func() {
				defer func() { equal(t, "panic", recover(), any("store")) }()
				_, _ = o.r.Acquire(t.Context(), user{"1"}, cost{})
			}()
		}
		o.ask("next", 1, nil, true)
	})
}

// TestBreakerIsForAcquires: peeks and settles go through when it is open, and do not open it.
func TestBreakerIsForAcquires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutage(t)
		var leases []*runtime.Lease[cost]
		for range 11 {
			leases = append(leases, acquire(t, o.r, user{"1"}, cost{TPM: 100}))
		}
		o.store.hook(func(context.Context, string, *store.Call) error { return down() })
		for _, lease := range leases[1:] {
			if _, err := o.r.Peek(t.Context(), user{"1"}); err == nil {
				t.Error("peek succeeded")
			}
			if err := lease.Settle(t.Context(), cost{}); err == nil {
				t.Error("settle succeeded")
			}
		}
		o.ask("closed still", 5, down(), true)
		o.ask("open", 1, nil, false)
		_, err := o.r.Peek(t.Context(), user{"1"})
		check(t, err, "")
		check(t, leases[0].Settle(t.Context(), cost{TPM: 50}), "")
		o.ask("open still", 1, nil, false)
	})
}

// TestBreakerMeetsThePolicy: without a time-out, and from the last image.
func TestBreakerMeetsThePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutage(t)
		o.ask("five", 5, down(), true)
		o.store.put(2*time.Second, 10, 100)
		start, calls := time.Now(), o.store.count()
		allowed, err := o.r.Acquire(t.Context(), user{"1"}, cost{TPM: 6000}, runtime.OnUnavailable(runtime.Allow))
		check(t, err, "")
		equal(t, "allowed: left", allowed.Remaining(), cost{12, 300})
		local, err := o.r.Acquire(t.Context(), user{"1"}, cost{TPM: 200}, runtime.OnUnavailable(runtime.Local))
		check(t, err, "")
		equal(t, "local: left", local.Remaining(), cost{11, 100})
		_, err = o.r.Acquire(t.Context(), user{"1"}, cost{TPM: 200}, runtime.OnUnavailable(runtime.Local))
		check(t, err, "denied gpt-4 user-1 tpm 100/200 1s")
		equal(t, "took", time.Since(start), 0)
		equal(t, "calls to the store", o.store.count(), calls)
	})
}

// byID is a user whose project the store has to say.
type byID struct{ ID string }

func (u byID) Chain(dst []store.Link) []store.Link {
	return append(dst, store.Link{Kind: 0, ID: u.ID, Lookup: true})
}
func (byID) gpt4() {}

// families are outages that also say who an entity's parent is.
type families struct {
	*outages

	err   error // of look-ups
	reads bool  // look-ups are read, not from memory
}

func (f *families) Open(env *store.Env, defs ...store.Definition) (store.Session, error) {
	_, err := f.outages.Open(env, defs...)
	return f, err
}

func (f *families) Member(_ context.Context, entity string) (store.Member, bool, error) {
	if f.reads && f.err == nil {
		f.env.Answered()
	}
	return store.Member{Entity: entity, Parent: "project-9", Cascade: true}, f.err == nil, f.err
}

func openFamilies(t *testing.T, f *families, policy runtime.Policy) *resource {
	t.Helper()
	def := gpt4()
	def.spec.OnUnavailable = policy
	def.spec.Kinds[0].Parent, def.spec.Kinds[1].Parent = 1, store.NoParent
	b := runtime.NewBuilder(f, runtime.WithLogger(slog.New(slog.DiscardHandler)))
	r := runtime.Bind[entity](b, def, toVector, fromVector)
	if _, err := b.Limiter(); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestLookUpsAreNoAnswer: what was found in memory says nothing of a store that is down.
func TestLookUpsAreNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &families{outages: &outages{fake: &fake{}}}
		r := openFamilies(t, f, runtime.Deny)
		f.fail(down())
		for n := range 6 {
			_, err := r.Wait(t.Context(), byID{"1"}, cost{}) // looks up first, and then charges
			equal(t, fmt.Sprintf("call %d: refused by the breaker", n), errors.Is(err, runtime.ErrBreakerOpen), n == 5)
		}
		elapse(time.Second + 1)
		_, err := r.Wait(t.Context(), byID{"1"}, cost{})
		equal(t, "probe: refused by the breaker", errors.Is(err, runtime.ErrBreakerOpen), false)
		_, err = r.Acquire(t.Context(), user{"1"}, cost{})
		equal(t, "after it: refused by the breaker", errors.Is(err, runtime.ErrBreakerOpen), true)
	})
}

// TestReadsAreAnswers: a store that answers look-ups is alive, whatever becomes of charges. Its breaker stays
// closed, and Allow decides as Local.
func TestReadsAreAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, reads := range []bool{true, false} {
			f := &families{outages: &outages{fake: &fake{}}, reads: reads}
			r := openFamilies(t, f, runtime.Deny)
			f.fail(down())
			for range 10 {
				_, err := r.Acquire(t.Context(), byID{"1"}, cost{})
				if errors.Is(err, runtime.ErrBreakerOpen) && reads {
					t.Error("it is open")
				}
			}
			lease, err := r.Acquire(t.Context(), byID{"1"}, cost{}, runtime.OnUnavailable(runtime.Allow))
			check(t, err, "")
			equal(t, fmt.Sprintf("read %t: unrecorded", reads), runtime.Unrecorded(lease), !reads)
		}
	})
}

// TestLookUpsMeetThePolicy: with the part of the chain that is known.
func TestLookUpsMeetThePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &families{outages: &outages{fake: &fake{}}, err: down()}
		r := openFamilies(t, f, runtime.Deny)
		f.put(0, 60, 100)
		for _, call := range []func(context.Context, entity, cost,
			...runtime.CallOption) (*runtime.Lease[cost], error){r.Acquire, r.Wait} {
			_, err := call(t.Context(), byID{"1"}, cost{TPM: 1})
			check(t, err, "unavailable gpt-4 2: looking up the parent of user-1: connection refused")
			lease, err := call(t.Context(), byID{"1"}, cost{TPM: 6000}, runtime.OnUnavailable(runtime.Allow))
			check(t, err, "")
			equal(t, "degraded", lease.Degraded(), true)
		}
		start := time.Now()
		lease, err := r.Wait(t.Context(), byID{"1"}, cost{TPM: 300}, runtime.OnUnavailable(runtime.Local))
		check(t, err, "")
		equal(t, "waited by the last image", time.Since(start), 2*time.Second)
		equal(t, "left", lease.Remaining(), cost{59, 0})
		equal(t, "acquires of the store", f.of("acquire"), 0)
	})
}
