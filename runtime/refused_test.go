package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// minds is a fake that remembers a denial.
type minds struct {
	*outages

	denied *runtime.DeniedError
	asked  []string // for what
}

func (m *minds) Open(env *store.Env, defs ...store.Definition) (store.Session, error) {
	_, err := m.fake.Open(env, defs...)
	return m, err
}

func (m *minds) Refused(
	def store.Definition, chain []store.Link, cost []int64, now int64,
) *runtime.DeniedError {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, fmt.Sprint(def.Spec().Resource, chain, cost, now))
	return m.denied
}

// remember has it remember denied from now on.
func (m *minds) remember(denied *runtime.DeniedError) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.denied = denied
}

func newMinds() *minds { return &minds{outages: &outages{fake: &fake{}}} }

// TestRefused: what the store is asked from memory, and that a call it cannot decide goes on as any other.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		abandoned, cancel := context.WithCancel(t.Context())
		cancel()
		now := time.Now().UnixMilli()
		chain := typed("1", "2", "3", "4")
		for _, test := range []struct {
			name   string
			ctx    context.Context
			def    definition
			entity entity
			cost   cost
			opt    runtime.CallOption
			want   string // "": it is not asked
			err    string

			unknown bool // whatever it remembers
		}{
			{name: "one bucket", def: tree(none, ofUser, ofOrg), entity: chain, cost: cost{RPM: 2},
				want: fmt.Sprint("gpt-4[{0 1 false}] [2000 0] ", now)},
			{name: "per_call", def: gpt4(), entity: user{"1"}, want: fmt.Sprint("gpt-4[{0 1 false}] [1000 0] ", now)},
			{name: "a chain", def: tree(together, ofUser, ofProject), entity: chain, cost: cost{RPM: 2},
				want: fmt.Sprint("gpt-4[{0 1 false} {2 3 false}] [2000 0] ", now)},
			{name: "a bad id that nobody needs", def: tree(together, ofUser, ofProject),
				entity: typed("1", "#", "3", ""), cost: cost{TPM: 2},
				want: fmt.Sprint("gpt-4[{0 1 false} {2 3 false}] [0 2000] ", now)},
			{name: "a look-up", def: tree(together, ofUser, ofProject), entity: lookedUp(ofUser, "1"),
				cost: cost{TPM: 2}},
			{name: "a look-up that nobody needs", def: tree(together, ofUser), entity: lookedUp(ofUser, "1"),
				cost: cost{TPM: 2},
				want: fmt.Sprint("gpt-4[{0 1 true}] [0 2000] ", now)},
			{name: "no entity", def: gpt4(), err: "invalid gpt-4 entity"},
			{name: "a bad id, of which nothing is remembered", def: tree(together, ofUser, ofProject),
				entity: typed("1", "", "a#b", ""), cost: cost{RPM: 1},
				want: fmt.Sprint("gpt-4[{0 1 false} {2 a#b false}] [1000 0] ", now), unknown: true,
				err: `invalid gpt-4 id project "a#b"`},
			{name: "a bad cost", def: gpt4(), entity: user{"1"}, cost: cost{TPM: -1},
				err: `invalid gpt-4 cost tpm "-1"`},
			{name: "no cost", def: gpt4(), entity: project{"1"},
				err: "invalid gpt-4 cost"},
			{name: "a bad option", def: gpt4(), entity: user{"1"}, opt: runtime.Budget(0),
				err: `invalid gpt-4 option "Budget(0s)"`},
			{name: "a caller that has gone", ctx: abandoned, def: gpt4(), entity: user{"1"},
				err: "context canceled gpt-4 user-1"},
		} {
			store := newMinds()
			store.known = family()
			b := runtime.NewBuilder(store, quiet())
			r := runtime.Bind[entity](b, test.def, toVector, fromVector)
			_, err := b.Limiter()
			check(t, err, "")
			ctx := test.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			_, err = r.Acquire(ctx, test.entity, test.cost, test.opt)
			var want []string
			if test.want != "" {
				want = []string{test.want}
			}
			if diff := cmp.Diff(want, store.asked); diff != "" {
				t.Errorf("%s: asked (-want +got):\n%s", test.name, diff)
			}
			if got := errtext.Of(err); got != test.err {
				t.Errorf("%s: %s, want %s", test.name, got, test.err)
			}
			if test.want != "" && !test.unknown { // and then it is denied
				calls := store.count()
				denied := &runtime.DeniedError{Resource: "gpt-4"}
				store.remember(denied)
				_, err = r.Acquire(ctx, test.entity, test.cost)
				got, _ := errors.AsType[*runtime.DeniedError](err)
				equal(t, test.name+": denial", got, denied)
				equal(t, test.name+": calls to the store", store.count(), calls)
			}
		}
	})
}

// refusal is a denial of user 1 for want of tpm.
func refusal(after time.Duration) *runtime.DeniedError {
	return &runtime.DeniedError{
		Resource: "gpt-4", Entity: "user-1", Limit: "tpm", Requested: 100, RetryAfter: after,
		Refusals: []runtime.Refusal{{Resource: "gpt-4", Entity: "user-1", Limit: "tpm", Requested: 100,
			RetryAfter: after}},
	}
}

func TestRefusedIsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []report
		store := newMinds()
		store.remember(refusal(time.Second))
		_, r := openOn(t, store, 0, runtime.WithObserver(watch(&got)))
		_, err := r.Acquire(t.Context(), member{"1", "2"}, cost{TPM: 100})
		const text = "denied gpt-4 user-1 tpm 0/100 1s"
		check(t, err, text)
		want := []report{{"denied", runtime.Event{Resource: "gpt-4", Kind: "user", Entity: "user-1", Limit: "tpm"},
			text}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("reported (-want +got):\n%s", diff)
		}
	})
}

// TestWaitIsRefused: a Wait goes by such a denial as by any other, does not change it, and shows what it
// comes from to those behind.
func TestWaitIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMinds()
		lim, r := openOn(t, store, 0)
		store.put(0, 60, 0)
		w := &waits{t: t, lim: lim, r: r, start: time.Now(), ended: make(chan outcome, 100)}
		shared, untouched := refusal(time.Second), refusal(time.Second)
		store.remember(shared)
		w.join(within(t, time.Second), "a", 100)
		w.next("a", 0, "denied gpt-4 user-1 tpm 0/100 1s deadline")
		w.gaveUp("tpm", time.Second)
		if errors.Is(shared, context.DeadlineExceeded) || !reflect.DeepEqual(shared, untouched) {
			t.Errorf("the store's denial is now: %v", shared)
		}

		w.join(t.Context(), "b", 100)
		w.join(within(t, time.Second), "c", 100) // knows b's image, and so that it has no time
		w.next("c", 0, "denied gpt-4 user-1 tpm 0/100 2s deadline")
		equal(t, "calls to the store", store.count(), 0)
		store.remember(nil)
		w.next("b", time.Second, "")
		equal(t, "calls to the store, served", store.count(), 1)
		want := fmt.Sprint("gpt-4[{0 1 false}] [1000 100000] ", w.start.UnixMilli())
		equal(t, "asked", store.asked[0], want)
	})
}

// TestWaitThatLooksUpIsRefused once it knows its chain.
func TestWaitThatLooksUpIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMinds()
		store.known = family()
		store.remember(refusal(time.Minute))
		b := runtime.NewBuilder(store, quiet())
		r := runtime.Bind[entity](b, tree(together, ofUser, ofProject), toVector, fromVector)
		_, err := b.Limiter()
		check(t, err, "")
		_, err = r.Wait(t.Context(), lookedUp(ofUser, "1"), cost{TPM: 100}, runtime.MaxWait(time.Second))
		check(t, err, "denied gpt-4 user-1 tpm 0/100 1m0s deadline")
		want := []string{fmt.Sprint("gpt-4[{0 1 false} {2 3 false}] [0 100000] ", time.Now().UnixMilli())}
		if diff := cmp.Diff(want, store.asked); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
	})
}

// TestDeadline: the budget bounds Acquire by the system's clock, and look-ups by their context.
func TestDeadline(t *testing.T) {
	for name, clock := range map[string]runtime.Option{"system's clock": nil,
		"another": runtime.WithClock(ahead(time.Hour))} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var bounds []time.Duration // of each call: look-ups' from their context
				start := time.Now()
				note := func(deadline time.Time) { bounds = append(bounds, deadline.Sub(start)) }
				store := &deadlines{fake: &fake{known: family()}, note: note}
				b := runtime.NewBuilder(store, quiet(), clock)
				r := runtime.Bind[entity](b, tree(together, ofUser, ofProject), toVector, fromVector)
				lim, err := b.Limiter()
				check(t, err, "")
				_, err = r.Acquire(t.Context(), typed("1", "2", "3", "4"), cost{RPM: 1})
				check(t, err, "")
				elapse(time.Second)
				_, err = r.Acquire(t.Context(), lookedUp(ofTeam, "2"), cost{RPM: 1}, runtime.Budget(3*time.Second))
				check(t, err, "")
				check(t, lim.AcquireAll(t.Context(), r.Claim(typed("1", "2", "3", "4"), cost{RPM: 1})), "")
				_, err = r.Wait(t.Context(), typed("1", "2", "3", "4"), cost{RPM: 1}, runtime.MaxWait(time.Millisecond))
				check(t, err, "")
				want := []time.Duration{
					time.Second, 4 * time.Second, 4 * time.Second, 2 * time.Second, time.Second + time.Millisecond,
				}
				if diff := cmp.Diff(want, bounds); diff != "" {
					t.Errorf("bounds (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// deadlines is a fake that notes what bounds its calls, which their contexts do not.
type deadlines struct {
	*fake

	note func(time.Time)
}

func (d *deadlines) Open(env *store.Env, defs ...store.Definition) (store.Session, error) {
	_, err := d.fake.Open(env, defs...)
	return d, err
}

func (d *deadlines) Acquire(ctx context.Context, call *store.Call) error {
	if _, ok := ctx.Deadline(); ok {
		return errors.New("bounded twice")
	}
	d.note(call.Deadline)
	return d.fake.Acquire(ctx, call)
}

func (d *deadlines) Member(ctx context.Context, entity string) (store.Member, bool, error) {
	deadline, _ := ctx.Deadline()
	d.note(deadline)
	return d.fake.Member(ctx, entity)
}
