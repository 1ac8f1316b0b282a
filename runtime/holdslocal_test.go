package runtime_test

import (
	"errors"
	goruntime "runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// openSlotsOn is openSlots on a store that may be down.
func openSlotsOn(t *testing.T, backend *outages, policy runtime.Policy) (*runtime.Limiter, *resource) {
	t.Helper()
	def := slots()
	def.spec.OnUnavailable = policy
	b := runtime.NewBuilder(backend, quiet())
	r := runtime.Bind[entity](b, def, toVector, fromVector)
	lim, err := b.Limiter()
	check(t, err, "")
	return lim, r
}

// slotsHere returns the free slots of user 1 in this process, -1 if it has no bucket.
func slotsHere(lim *runtime.Limiter) int64 {
	img := runtime.LocalImage(lim, "jobs", "user-1")
	if img == nil {
		return -1
	}
	return bucket.Available(img.Balances[0], img.Refilled, time.Now().UnixMilli()) / bucket.Milli
}

// TestLocalSlots: in an outage a process counts its own slots, from the last image on. Slots that others
// hold in that come back when they would be over. A slot ends with its lease, however that ends.
func TestLocalSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &outages{fake: &fake{}}
		lim, r := openSlotsOn(t, backend, runtime.Local)
		before := acquire(t, r, user{"1"}, cost{RPM: 17})
		backend.fail(down())
		var leases []*runtime.Lease[cost]
		for range 3 {
			leases = append(leases, acquire(t, r, user{"1"}, cost{}))
		}
		_, err := r.Acquire(t.Context(), user{"1"}, cost{})
		check(t, err, "denied jobs user-1 parallel 0/1 1s")
		equal(t, "degraded", leases[0].Degraded(), true)
		ctx := leases[0].Context(t.Context())
		check(t, leases[0].Settle(t.Context(), cost{RPM: 5}), "")
		equal(t, "its context", ctx.Err() != nil, true)
		equal(t, "settled", slotsHere(lim), 1)
		leases[1].Release(t.Context())
		equal(t, "released", slotsHere(lim), 2)
		check(t, leases[2].More(t.Context(), cost{RPM: 2}), "")
		equal(t, "more", slotsHere(lim), 0)
		leases[2].Keep(t.Context())
		equal(t, "kept", slotsHere(lim), 3)
		elapse(2 * time.Minute)
		equal(t, "once others' holds are over", slotsHere(lim), 20)
		before.Keep(t.Context())
	})
}

// TestLocalSlotsAfterAnOutage: slots that leases of the outage still have do not count in the store, but in
// the process at the next outage.
func TestLocalSlotsAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &outages{fake: &fake{}}
		lim, r := openSlotsOn(t, backend, runtime.Local)
		backend.fail(down())
		open := acquire(t, r, user{"1"}, cost{RPM: 5})
		backend.fail(nil)
		other := acquire(t, r, user{"1"}, cost{RPM: 3})
		equal(t, "stored", backend.free("user-1"), 17)
		equal(t, "here", slotsHere(lim), 12)
		// The store's lease takes nothing here, and More of it gives its slots back here at once.
		backend.fail(down())
		check(t, other.More(t.Context(), cost{RPM: 2}), "")
		equal(t, "cost", other.Cost(), cost{RPM: 3})
		equal(t, "here after more", slotsHere(lim), 12)
		backend.fail(nil)
		open.Keep(t.Context())
		equal(t, "here once it has ended", slotsHere(lim), 17)
		other.Keep(t.Context())
		acquire(t, r, user{"1"}, cost{}).Keep(t.Context())
		equal(t, "here at last", slotsHere(lim), -1)
	})
}

// TestLocalSlotsOfDroppedLeases: a lease of this process that is collected gives its slot back, too.
func TestLocalSlotsOfDroppedLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &outages{fake: &fake{}}
		lim, r := openSlotsOn(t, backend, runtime.Local)
		backend.fail(down())
		for range 20 {
			acquire(t, r, user{"1"}, cost{})
		}
		for range 1000 {
			goruntime.GC()
			elapse(5 * time.Second)
			if synctest.Wait(); slotsHere(lim) == 20 {
				break
			}
		}
		equal(t, "free", slotsHere(lim), 20)
		equal(t, "calls of the store beside acquires", backend.count()-backend.of("acquire"), 0)
		check(t, lim.Close(t.Context()), "")
	})
}

// TestSlotsByAllow: without an answer Allow admits without a slot, and so there is nothing to lose.
func TestSlotsByAllow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &outages{fake: &fake{}}
		lim, r := openSlotsOn(t, backend, runtime.Allow)
		backend.fail(down())
		for range 30 {
			lease := acquire(t, r, user{"1"}, cost{})
			equal(t, "context", lease.Context(t.Context()), t.Context())
			defer lease.Keep(t.Context())
		}
		equal(t, "here", slotsHere(lim), -1)
		elapse(10 * time.Minute)
		equal(t, "extensions", backend.of("extend"), 0)
	})
}

// TestSlotsInShadow: a call that would be refused takes no slot, and one that is admitted takes one.
func TestSlotsInShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		_, r := openSlots(t, backend, runtime.WithCallDefaults(runtime.Shadow(true)))
		most := acquire(t, r, user{"1"}, cost{RPM: 20})
		over := acquire(t, r, user{"1"}, cost{})
		check(t, over.Shadowed(), "denied jobs user-1 parallel 0/1 1s")
		equal(t, "context", over.Context(t.Context()), t.Context())
		calls := backend.count()
		over.Keep(t.Context())
		equal(t, "calls", backend.count(), calls)
		most.Keep(t.Context())
		equal(t, "free", backend.free("user-1"), 20)
	})
}

// TestSlotsLeft: what is left of slots is a count, which nobody knows when it will be full.
func TestSlotsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r := openSlots(t, &fake{})
		lease := acquire(t, r, user{"1"}, cost{RPM: 3, TPM: 100})
		defer lease.Keep(t.Context())
		equal(t, "remaining", lease.Remaining(), cost{17, 5900})
		snap, err := r.Peek(t.Context(), user{"1"})
		check(t, err, "")
		equal(t, "available", snap.Available, cost{17, 5900})
		equal(t, "capacity", snap.Buckets[0].Capacity, cost{20, 6000})
		equal(t, "full, of the other limit", snap.Buckets[0].Full, time.Second)
		b := lease.Balances()[0]
		equal(t, "balance", b, runtime.Balance{Resource: "jobs", Entity: "user-1", Limit: "parallel",
			Params: bucket.InFlight(20), Available: 17})
		if _, err := r.Acquire(t.Context(), user{"1"}, cost{RPM: 18}); err == nil {
			t.Error("admitted")
		} else if denied, ok := errors.AsType[*runtime.DeniedError](err); !ok || !denied.Resets.IsZero() {
			t.Errorf("%v, want a denial without the end of a window", err)
		}
	})
}
