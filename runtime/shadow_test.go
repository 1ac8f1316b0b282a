package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestShadow: a call that a limit refuses goes through and is reported, with its limit. A mistake fails as
// ever.
func TestShadow(t *testing.T) {
	denied := &runtime.DeniedError{Resource: "gpt-4", Entity: "user-1", Limit: "tpm",
		Refusals: []runtime.Refusal{
			{Resource: "gpt-4", Entity: "user-1", Limit: "tpm", RetryAfter: time.Second},
		}}
	abandoned, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		name     string
		err      error // the store's
		admitted bool
		limit    string
		degraded bool
	}{
		{"denied", denied, true, "tpm", false},
		{"above the burst", &runtime.CostTooLargeError{Resource: "gpt-4", Entity: "user-1", Limit: "rpm"}, true,
			"rpm", false},
		{"contended", &runtime.ContendedError{Resource: "gpt-4", Entity: "user-1", Attempts: 8}, true, "", false},
		{"unavailable", down(), true, "", true},
		{"unavailable for want of rights", &runtime.UnavailableError{Resource: "gpt-4",
			Err: &runtime.SetupError{What: "no rights"}}, false, "", false},
		{"invalid", &runtime.InvalidError{Resource: "gpt-4", Field: "entity", Reason: "is not known"}, false, "",
			false},
		{"setup", &runtime.SetupError{What: "no table"}, false, "", false},
		{"gone", abandoned.Err(), false, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []report
				backend := &outages{fake: &fake{}}
				_, r := openOn(t, backend, runtime.Deny, quiet(), runtime.WithObserver(watch(&got)))
				backend.fail(test.err)
				for verb, f := range map[string]func(context.Context, entity, cost,
					...runtime.CallOption) (*runtime.Lease[cost], error){
					"acquire": r.Acquire, "wait": r.Wait,
				} {
					got = nil
					began := time.Now()
					lease, err := f(t.Context(), user{"1"}, cost{TPM: 5}, runtime.Shadow(true))
					if !test.admitted {
						if !errors.Is(err, test.err) || lease != nil || got[0].Which != "failed" {
							t.Errorf("%s: %v, %v; the observer got %v", verb, lease, err, got)
						}
						continue
					}
					check(t, err, "")
					equal(t, "slept", time.Since(began), 0)
					if !errors.Is(lease.Shadowed(), test.err) || lease.Degraded() != test.degraded ||
						lease.Cost() != (cost{1, 5}) {
						t.Errorf("%s: %v, degraded %t, %v", verb, lease.Shadowed(), lease.Degraded(), lease.Cost())
					}
					calls := backend.count()
					check(t, lease.Settle(t.Context(), cost{TPM: -1}),
						`invalid gpt-4 cost tpm "-1"`)
					check(t, lease.Settle(t.Context(), cost{TPM: 7}), "")
					lease.Release(t.Context())
					equal(t, "a second settle", lease.Settle(t.Context(), cost{}), runtime.ErrSettled)
					equal(t, "calls to the store", backend.count(), calls)
					event := runtime.Event{Resource: "gpt-4", Kind: "user", Entity: "user-1", Limit: test.limit,
						Shadow: true, Local: test.degraded}
					settled := event
					settled.Limit = ""
					failed := runtime.Event{Operation: store.OperationSettle, Resource: "gpt-4", Kind: "user",
						Entity: "user-1"}
					if verb == "wait" {
						event.Operation = store.OperationWait
					}
					want := []report{
						{"shadowed", event, errtext.Of(test.err)},
						{"failed", failed, `invalid gpt-4 cost tpm "-1"`},
						{"settled", settled, ""},
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s: observer (-want +got):\n%s", verb, diff)
					}
				}
			})
		})
	}
}

// TestShadowCharges: what is admitted, as ever; of what is denied nothing, whatever becomes of the lease.
func TestShadowCharges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []report
		store := &fake{}
		_, r := open(t, store, runtime.WithCallDefaults(runtime.Shadow(true)), runtime.WithObserver(watch(&got)))
		lease := acquire(t, r, user{"1"}, cost{TPM: 5000})
		equal(t, "shadowed", lease.Shadowed(), nil)
		check(t, lease.Settle(t.Context(), cost{TPM: 5500}), "")
		over := acquire(t, r, user{"1"}, cost{TPM: 600})
		check(t, over.Shadowed(), "denied gpt-4 user-1 tpm 500/600 1s")
		equal(t, "remaining", over.Remaining(), cost{59, 500})
		equal(t, "balances", len(over.Balances()), 2)
		over.Release(t.Context())
		equal(t, "level", store.level("user-1"), cost{59, 500})
		check(t, r.Do(t.Context(), user{"1"}, cost{TPM: 600},
			func(ctx context.Context, lease *runtime.Lease[cost]) error {
				check(t, lease.Shadowed(), "denied gpt-4 user-1 tpm 500/600 1s")
				return lease.Settle(ctx, cost{TPM: 10_000})
			}), "")
		equal(t, "level", store.level("user-1"), cost{59, 500})
		never := acquire(t, r, user{"1"}, cost{TPM: 6001})
		equal(t, "balances that nobody knows", len(never.Balances()), 0)
		equal(t, "what nobody knows to remain", never.Remaining(), cost{})
		if acquire(t, r, user{"1"}, cost{TPM: 500}).Shadowed() != nil || store.level("user-1").TPM != 0 {
			t.Error("what was admitted had been charged")
		}
		var none *runtime.Lease[cost]
		equal(t, "shadowed by no lease", none.Shadowed(), nil)
		var events []string
		for _, one := range got {
			events = append(events, fmt.Sprint(one.Which, " ", one.Event.Limit))
		}
		want := []string{"acquired ", "settled ", "shadowed tpm", "released ", "shadowed tpm", "settled ",
			"shadowed tpm", "acquired "}
		if diff := cmp.Diff(want, events); diff != "" {
			t.Errorf("observer (-want +got):\n%s", diff)
		}
	})
}

// TestShadowOf: by the schema, a resource's With, a call; and where nobody says so, not.
func TestShadowOf(t *testing.T) {
	def := gpt4()
	def.spec.Shadow = true
	for _, test := range []struct {
		name string
		def  definition
		with []runtime.CallOption
		call []runtime.CallOption
		want bool
	}{
		{"nobody", gpt4(), nil, nil, false},
		{"the schema", def, nil, nil, true},
		{"With", gpt4(), []runtime.CallOption{runtime.Shadow(true)}, nil, true},
		{"the call", gpt4(), nil, []runtime.CallOption{runtime.Shadow(true)}, true},
		{"not by With", def, []runtime.CallOption{runtime.Shadow(false)}, nil, false},
		{"not by the call", def, []runtime.CallOption{runtime.Shadow(true)},
			[]runtime.CallOption{runtime.Shadow(false)}, false},
	} {
		_, r := openAs(t, &fake{}, test.def)
		lease, err := r.With(test.with...).Acquire(t.Context(), user{"1"}, cost{TPM: 6001}, test.call...)
		if admitted := err == nil && lease.Shadowed() != nil; admitted != test.want || admitted == (lease == nil) {
			t.Errorf("%s: %v, %v", test.name, lease, err)
		}
	}
}

// TestShadowWait: it says what it would have waited for, and whether it would have had the time, and is done.
func TestShadowWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{}
		lim, r := open(t, store, runtime.WithCallDefaults(runtime.Shadow(true)))
		store.put(0, 60, 0)
		began := time.Now()
		short, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		for _, test := range []struct {
			ctx  context.Context
			opts []runtime.CallOption
			late bool
		}{
			{t.Context(), nil, false}, {t.Context(), []runtime.CallOption{runtime.MaxWait(11 * time.Second)}, false},
			{t.Context(), []runtime.CallOption{runtime.MaxWait(10 * time.Second)}, true}, {short, nil, true},
		} {
			lease, err := r.Wait(test.ctx, user{"1"}, cost{TPM: 1000}, test.opts...)
			check(t, err, "")
			denied, _ := errors.AsType[*runtime.DeniedError](lease.Shadowed())
			if denied == nil || denied.RetryAfter != 10*time.Second ||
				errors.Is(denied, context.DeadlineExceeded) != test.late {
				t.Errorf("%v, want late %t", lease.Shadowed(), test.late)
			}
		}
		equal(t, "slept", time.Since(began), 0)
		equal(t, "lines left", runtime.Waiting(lim), 0)
		lease, err := r.Wait(t.Context(), user{"1"}, cost{})
		check(t, err, "")
		equal(t, "shadowed", lease.Shadowed(), nil)
		equal(t, "level", store.level("user-1").RPM, 59)
	})
}

// TestShadowInAnOutage: whatever the policy, the call goes through, degraded; what Deny and Local would have
// refused is reported.
func TestShadowInAnOutage(t *testing.T) {
	for _, test := range []struct {
		policy  runtime.Policy
		tpm     int64
		which   string
		refused string
	}{
		{runtime.Allow, 6000, "degraded", ""},
		{runtime.Deny, 6000, "shadowed", errtext.Of(down())},
		{runtime.Local, 6000, "degraded", ""},
		{runtime.Local, 6001, "shadowed", "exceeds burst gpt-4 user-1 tpm 6001/6000"},
	} {
		var got []report
		store := &outages{fake: &fake{}}
		observer := watch(&got)
		observer.Degraded = observer.Acquired
		_, r := openOn(t, store, test.policy, quiet(), runtime.WithCallDefaults(runtime.Shadow(true)),
			runtime.WithObserver(observer))
		store.fail(down())
		lease := acquire(t, r, user{"1"}, cost{TPM: test.tpm})
		check(t, lease.Shadowed(), test.refused)
		if !lease.Degraded() || !got[0].Event.Local || (got[0].Which == "shadowed") != (test.which == "shadowed") {
			t.Errorf("%v: degraded %t, reported %+v", test.policy, lease.Degraded(), got)
		}
		check(t, lease.Settle(t.Context(), cost{TPM: 1}), "")
	}
}

// TestShadowFromMemory: a denial from the cache is reported as any other, and the store is not asked.
func TestShadowFromMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no token refills meanwhile
		backend := newMinds()
		var got []report
		b := runtime.NewBuilder(backend, quiet(), runtime.WithObserver(watch(&got)))
		r := runtime.Bind[entity](b, gpt4(), toVector, fromVector).With(runtime.Shadow(true))
		_, err := b.Limiter()
		check(t, err, "")
		acquire(t, r, user{"1"}, cost{TPM: 6000})
		denied := store.AddRefusal(nil, runtime.Refusal{Resource: "gpt-4", Entity: "user-1", Limit: "tpm",
			RetryAfter: time.Minute})
		backend.remember(denied)
		got = nil
		calls := backend.count()
		lease := acquire(t, r, user{"1"}, cost{TPM: 10})
		equal(t, "calls to the store", backend.count(), calls)
		equal(t, "shadowed", lease.Shadowed(), error(denied))
		equal(t, "remaining", lease.Remaining(), cost{59, 0})
		if len(got) != 1 || got[0].Which != "shadowed" || got[0].Event.Limit != "tpm" {
			t.Errorf("observer got %+v", got)
		}
		if _, err := r.Acquire(t.Context(), user{"a#b"}, cost{TPM: 10}); err == nil {
			t.Error("a bad id went through")
		}
	})
}
