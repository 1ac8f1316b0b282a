package runtime_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestMore: what joins a lease is in its cost, its settle and its release. A 0 is 0, beside a per_call of 1.
func TestMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		var events []string
		_, r := open(t, backend, runtime.WithObserver(&runtime.Observer{
			Acquired: func(_ context.Context, e runtime.Event) { events = append(events, e.Operation+" "+e.Entity) },
			Denied:   func(_ context.Context, e runtime.Event) { events = append(events, "denied "+e.Limit) },
		}))
		lease := acquire(t, r, user{"1"}, cost{TPM: 1000})
		check(t, lease.More(t.Context(), cost{TPM: 500}), "")
		equal(t, "cost", lease.Cost(), cost{1, 1500})
		equal(t, "left", lease.Remaining(), cost{59, 4500})
		check(t, lease.More(t.Context(), cost{TPM: 4501}), "denied gpt-4 user-1 tpm 4500/4501 10ms")
		check(t, lease.More(t.Context(), cost{TPM: 6001}), "exceeds burst gpt-4 user-1 tpm 6001/6000")
		check(t, lease.More(t.Context(), cost{}), "invalid gpt-4 cost")
		check(t, lease.More(t.Context(), cost{RPM: 1, TPM: -1}), `invalid gpt-4 cost tpm "-1"`)
		equal(t, "cost after refusals", lease.Cost(), cost{1, 1500})
		check(t, lease.Settle(t.Context(), cost{TPM: 1600}), "")
		equal(t, "settled", backend.level("user-1"), cost{59, 4400})
		check(t, lease.More(t.Context(), cost{TPM: 1}), runtime.ErrSettled.Error())

		given := acquire(t, r, user{"2"}, cost{TPM: 10})
		check(t, given.More(t.Context(), cost{RPM: 2}), "")
		given.Release(t.Context())
		equal(t, "released", backend.level("user-2"), cost{60, 6000})
		equal(t, "events", len(events), 5)
		equal(t, "of more", events[1], "acquire user-1")
		equal(t, "of a denial", events[2], "denied tpm")

		kept := acquire(t, r, user{"3"}, cost{TPM: 10})
		check(t, kept.More(t.Context(), cost{TPM: 5}), "")
		kept.Keep(t.Context())
		equal(t, "kept", backend.level("user-3"), cost{59, 5985})
	})
}

// TestMoreIsServedInTurn: a settle waits for the More under way, and settles both.
func TestMoreIsServedInTurn(t *testing.T) {
	for name, end := range map[string]func(context.Context, *runtime.Lease[cost]){
		"settle":  func(ctx context.Context, l *runtime.Lease[cost]) { _ = l.Settle(ctx, cost{TPM: 100}) },
		"release": func(ctx context.Context, l *runtime.Lease[cost]) { l.Release(ctx) },
		"keep":    func(ctx context.Context, l *runtime.Lease[cost]) { l.Keep(ctx) },
	} {
		synctest.Test(t, func(t *testing.T) {
			backend := &fake{}
			_, r := open(t, backend)
			lease := acquire(t, r, user{"1"}, cost{TPM: 1000})
			opened := make(chan struct{})
			backend.hook(func(_ context.Context, op string, _ *store.Call) error {
				if op == "acquire" {
					<-opened
				}
				return nil
			})
			added := make(chan error, 1)
			go func() { added <- lease.More(t.Context(), cost{TPM: 500}) }()
			synctest.Wait()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				end(t.Context(), lease)
			}()
			close(opened)
			check(t, <-added, "")
			<-ended
			want := map[string]cost{"settle": {59, 5900}, "release": {60, 6000}, "keep": {59, 4500}}[name]
			equal(t, name, backend.level("user-1"), want)
		})
	}
}

// TestMoreInAnOutage: what no store recorded does not join a lease of the store, whose settle charges it.
func TestMoreInAnOutage(t *testing.T) {
	for _, test := range []struct {
		policy runtime.Policy
		here   cost // what the bucket of this process holds then
	}{
		{runtime.Local, cost{59, 4500}},
		{runtime.Deny, cost{}},
	} {
		synctest.Test(t, func(t *testing.T) {
			backend := &outages{fake: &fake{}}
			lim, r := openOn(t, backend, test.policy)
			lease := acquire(t, r, user{"1"}, cost{TPM: 1000})
			backend.fail(down())
			err := lease.More(t.Context(), cost{TPM: 500})
			if test.policy == runtime.Deny {
				var unavailable *runtime.UnavailableError
				if !errors.As(err, &unavailable) || unavailable.Attempts != 2 {
					t.Errorf("deny: %v", err)
				}
			} else {
				check(t, err, "")
			}
			equal(t, "cost", lease.Cost(), cost{1, 1000})
			equal(t, "here", here(lim, "user-1"), test.here)
			backend.fail(nil)
			check(t, lease.Settle(t.Context(), cost{TPM: 1500}), "")
			equal(t, "settled", backend.level("user-1"), cost{59, 4500})
		})
	}
}

// TestMoreOfADegradedLease: a lease that took nothing takes nothing more. One of this process takes more of
// it, and is settled there.
func TestMoreOfADegradedLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &outages{fake: &fake{}}
		lim, r := openOn(t, backend, runtime.Local)
		backend.fail(down())
		local := acquire(t, r, user{"1"}, cost{TPM: 1000})
		allowed, err := r.Acquire(t.Context(), user{"2"}, cost{TPM: 1000}, runtime.OnUnavailable(runtime.Allow))
		check(t, err, "")
		backend.fail(nil)
		calls := backend.count()
		check(t, local.More(t.Context(), cost{TPM: 5001}), "denied gpt-4 user-1 tpm 5000/5001 10ms")
		check(t, local.More(t.Context(), cost{TPM: 5000}), "")
		equal(t, "local: cost", local.Cost(), cost{1, 6000})
		check(t, local.Settle(t.Context(), cost{TPM: 100}), "")
		equal(t, "local: settled", here(lim, "user-1"), cost{59, 5900})
		check(t, allowed.More(t.Context(), cost{TPM: 5001}), "")
		equal(t, "allowed: cost", allowed.Cost(), cost{1, 1000})
		equal(t, "calls to the store", backend.count(), calls)
	})
}

// TestMoreOfABucketStartedAgain: after an answer of the store the bucket of this process starts again without
// the charge of a lease. The lease's settle gives back what More took of the new one, and no more.
func TestMoreOfABucketStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &outages{fake: &fake{}}
		lim, r := openOn(t, backend, runtime.Local)
		backend.fail(down())
		lease := acquire(t, r, user{"1"}, cost{TPM: 1000})
		elapse(time.Minute) // the charge is refilled
		backend.fail(nil)
		acquire(t, r, user{"1"}, cost{TPM: 1})
		backend.fail(down())
		acquire(t, r, user{"1"}, cost{TPM: 2000})
		check(t, lease.More(t.Context(), cost{TPM: 500}), "")
		equal(t, "taken", here(lim, "user-1"), cost{58, 3499})
		check(t, lease.Settle(t.Context(), cost{RPM: 1, TPM: 100}), "") // 1400 less than the lease stands for
		equal(t, "settled", here(lim, "user-1"), cost{58, 3999})
	})
}

// TestMoreStartsFromTheLastImage: a bucket of this process that has ended starts again with what the store
// had when it last answered, and by the limits in force.
func TestMoreStartsFromTheLastImage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &outages{fake: &fake{}}
		lim, r := openOn(t, backend, runtime.Local)
		backend.fail(down())
		lease := acquire(t, r, user{"1"}, cost{TPM: 1000})
		elapse(time.Minute) // the charge is refilled
		backend.fail(nil)
		backend.put(0, 60, 500)
		acquire(t, r, user{"1"}, cost{TPM: 1})
		equal(t, "ended", runtime.LocalImage(lim, "gpt-4", "user-1") == nil, true)
		check(t, lease.More(t.Context(), cost{TPM: 500}), "denied gpt-4 user-1 tpm 499/500 10ms")
		check(t, lease.More(t.Context(), cost{TPM: 400}), "")
		equal(t, "taken", here(lim, "user-1"), cost{59, 99})
		lease.Release(t.Context())
		equal(t, "released", here(lim, "user-1"), cost{59, 499})

		backend.put(0, 60, 6000)
		backend.limits = []bucket.Limit{bucket.Per(60, time.Minute), bucket.Per(600, time.Minute)}
		lowered := func() *runtime.Lease[cost] {
			backend.fail(down())
			defer backend.fail(nil)
			return acquire(t, r, user{"2"}, cost{TPM: 1})
		}()
		elapse(time.Minute)
		acquire(t, r, user{"2"}, cost{TPM: 1})
		check(t, lowered.More(t.Context(), cost{TPM: 601}), "exceeds burst gpt-4 user-2 tpm 601/600")
	})
}

// TestMoreOfOneClaim: leases of claims that share a bucket of this process give back what More of one took of
// it once it began anew, and no more.
func TestMoreOfOneClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &outages{fake: &fake{}}
		lim, r := openOn(t, backend, runtime.Local)
		backend.fail(down())
		one, two := r.Claim(user{"1"}, cost{TPM: 1000}), r.Claim(user{"1"}, cost{TPM: 2000})
		check(t, lim.AcquireAll(t.Context(), one, two), "")
		elapse(time.Minute)
		backend.fail(nil)
		acquire(t, r, user{"1"}, cost{TPM: 1})
		backend.fail(down())
		acquire(t, r, user{"1"}, cost{TPM: 3000})
		check(t, one.Lease().More(t.Context(), cost{TPM: 500}), "")
		equal(t, "taken", here(lim, "user-1"), cost{58, 2499})
		two.Lease().Release(t.Context())
		one.Lease().Release(t.Context())
		equal(t, "released", here(lim, "user-1"), cost{58, 2999})
	})
}

// TestMoreInShadow: a would-be refusal takes nothing and is reported, and the settle charges all.
func TestMoreInShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		var got []report
		_, r := open(t, backend, runtime.WithObserver(watch(&got)), runtime.WithCallDefaults(runtime.Shadow(true)))
		lease := acquire(t, r, user{"1"}, cost{TPM: 5000})
		check(t, lease.More(t.Context(), cost{TPM: 1001}), "")
		equal(t, "reported", got[len(got)-1].Which, "shadowed")
		equal(t, "cost", lease.Cost(), cost{1, 5000})
		check(t, lease.Settle(t.Context(), cost{TPM: 6001}), "")
		equal(t, "settled", backend.level("user-1"), cost{59, -1})

		elapse(time.Second)
		shadowed := acquire(t, r, user{"1"}, cost{TPM: 5000})
		check(t, shadowed.Shadowed(), "denied gpt-4 user-1 tpm 99/5000 49.01s")
		calls := backend.count()
		check(t, shadowed.More(t.Context(), cost{TPM: 1}), "")
		equal(t, "calls of a lease that took nothing", backend.count(), calls)
	})
}

// TestMoreOfMissingLimits: a limit that a bucket did not have either time is not settled.
func TestMoreOfMissingLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		_, r := open(t, backend)
		dropped := [][]bool{{false, true}, nil}
		settled := []bool{}
		backend.hook(func(_ context.Context, op string, call *store.Call) error {
			b := &call.Parts[0].Buckets[0]
			switch op {
			case "acquire":
				b.Dropped, dropped = dropped[0], dropped[1:]
			case "settle":
				settled = b.Dropped
			}
			return nil
		})
		lease := acquire(t, r, user{"1"}, cost{TPM: 1000})
		check(t, lease.More(t.Context(), cost{RPM: 1, TPM: 500}), "")
		check(t, lease.Settle(t.Context(), cost{TPM: 100}), "")
		equal(t, "limits", len(settled), 2)
		equal(t, "rpm", settled[0], false)
		equal(t, "tpm", settled[1], true)
	})
}
