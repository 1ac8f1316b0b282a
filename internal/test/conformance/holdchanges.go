package conformance

import (
	"slices"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// heldOverride: a higher capacity has the difference at once. After a lower one, calls that run go on, and
// new ones wait until there is room.
func heldOverride(w *world) {
	lease, second := w.admitted(alice, 6, 40), w.admitted(alice, 2, 10)
	for _, capacity := range []int64{20, 4, 20, 4} {
		w.set(w.Config.GPT4.Entity(alice), limits.GPT4Limits{
			RPM: &runtime.Rate{Capacity: capacity}, TPM: &runtime.Rate{Capacity: 10 * capacity},
		})
		numbers := []bucket.Limit{bucket.InFlight(capacity), w.schema.user[1]}
		numbers[1].Capacity, numbers[1].Burst = 10*capacity*bucket.Milli, 10*capacity*bucket.Milli
		w.inForce("user-alice", numbers...)
		if capacity == 20 {
			w.release(w.admitted(alice, 12, 150))
			w.denied(alice, 13, 0)
		}
		w.denied(alice, min(capacity, max(1, capacity-8+1)), 1)
		w.pass(2 * time.Minute)
	}
	w.old(lease, lease.Settle(w.Context(), cost(1, 20)), 20)
	w.left(w.admitted(alice, 2, 5), 0, 5)
	second.Keep(w.Context())
	w.old(second, nil, 10)
	w.set(w.Config.GPT4.Entity(alice), limits.GPT4Limits{})
	w.inForce("user-alice", w.schema.user...)
	w.left(w.admitted(alice, 8, 0), 0, 115)
	w.peek(project)
}

// heldReset: all slots are free at once. Leases from before are lost within two minutes, and give nothing
// back. Slots that are taken from then on come back all the same.
func heldReset(w *world) {
	running, early, late := w.admitted(alice, 5, 50), w.admitted(alice, 3, 20), w.admitted(alice, 2, 10)
	ctx := running.Context(w.Context())
	w.denied(alice, 1, 1)
	for _, who := range []limits.User{alice, bob} { // who has no bucket
		w.want(w.Config.GPT4.Reset(w.Context(), who))
		w.filled("user-"+who.ID, w.schema.user...)
	}
	w.Limiter = w.process()
	w.spy.seen()
	w.peek(alice)
	again := w.admitted(alice, 6, 40)
	w.settle(early, 1, 5)
	w.peek(alice)
	w.until(running.firstEnd() - 3000)
	w.loses(ctx, running)
	w.release(running)
	w.keep(late)
	w.peek(alice)
	w.denied(alice, 5, 1)
	w.restart()
	w.until(again.nearestEnd() - 1)
	w.denied(alice, 5, 1)
	w.until(again.nearestEnd())
	w.left(w.admitted(alice, 10, 150), 0, 0)
	w.admitted(bob, 10, 150)
	w.peek(project)
}

// heldResets: each further reset leaves the count of holds right.
func heldResets(w *world) {
	for i := range 3 {
		w.admitted(alice, 10, 10)
		w.want(w.Config.GPT4.Reset(w.Context(), alice))
		w.filled("user-alice", w.schema.user...)
		w.Limiter = w.process()
		w.spy.seen()
		w.peek(alice)
		w.store.Advance(time.Duration(i) * 10 * time.Second)
	}
	last := w.admitted(alice, 10, 150)
	w.restart()
	w.until(last.nearestEnd() - 1)
	w.denied(alice, 1, 150)
	w.until(last.nearestEnd())
	w.left(w.admitted(alice, 10, 150), 0, 0)
}

// heldExpiry: a bucket outlives its holds, and one that is gone has all of its slots.
func heldExpiry(w *world) {
	w.admitted(alice, 10, 0)
	w.restart()
	w.pass(time.Minute)
	if !w.peek(alice).Buckets[0].Exists {
		w.Errorf("the bucket is gone too early")
	}
	w.pass(2 * time.Hour)
	w.pass(w.store.KeepIdle)
	w.restart()
	clear(w.buckets)
	w.nothing(alice)
	w.admitted(alice, 10, 150)
	w.denied(alice, 1, 1)
}

// heldErase: with an entity its holds are gone. A lease from before gives nothing back.
func heldErase(w *world) {
	lease, released := w.admitted(alice, 4, 50), w.admitted(alice, 3, 20)
	if _, err := w.Entities().Erase(w.Context(), alice); err != nil {
		w.Fatalf("erase: %v", err)
	}
	key := [2]string{w.schema.resource(), "user-alice"}
	for i := range names {
		w.buckets[key].endAll(i)
	}
	erased := w.buckets[key]
	delete(w.buckets, key)
	w.Limiter = w.process()
	w.spy.seen()
	w.peek(alice)
	erased.ends[1] = 0
	for _, h := range []*held{lease, released} {
		h.Release(w.Context())
		h.follow(make([]int64, len(names)), w.store.Decided())
	}
	w.Limiter = w.process()
	w.spy.seen()
	w.peek(alice)
	w.peek(project)
	w.left(w.admitted(alice, 10, 150), 0, 0)
	w.denied(alice, 1, 1)
}

// revised puts a later revision in force.
func (w *world) revised(s schema) {
	w.Helper()
	s.revision = w.schema.revision + 1
	w.schema = s
	w.Limiter = w.process()
	w.spy.seen()
}

// reshaped has the model go by w's schema for an entity, from a call now on. Limits that are new count holds
// from the epoch after the next two on.
func (w *world) reshaped(entity string, numbers []bucket.Limit, added ...int) {
	b := w.bucket(entity)
	b.reshape(numbers)
	for _, i := range added {
		b.ahead[i] = bucket.Epoch(w.store.Decided()) + 1 + bucket.NewRing
	}
}

// old follows the end of a lease at so many tpm, by a process of an earlier revision. A new process has to
// see what that has left.
func (w *world) old(h *held, err error, tpm int64) {
	w.Helper()
	w.want(err)
	h.follow(milli(cost(1, tpm)), w.store.Decided())
	w.Limiter = w.process()
	w.spy.seen()
	w.peek(alice)
	w.peek(project)
}

// onCrashAdded: reservations come back from a revision on that says so. Earlier calls are settled as
// before.
func onCrashAdded(w *world) {
	before, kept := w.admitted(alice, 2, 40), w.admitted(alice, 1, 20)
	next := flights
	w.revised(next)
	w.reshaped("user-alice", next.user, 1)
	w.reshaped("project-p", next.project, 1)
	after := w.admitted(alice, 3, 50)
	w.left(after, 4, 40)
	w.old(before, before.Settle(w.Context(), cost(1, 10)), 10)
	kept.Keep(w.Context())
	w.old(kept, nil, 20)
	w.restart()
	w.pass(5 * time.Minute)
	w.peek(alice)
	w.left(w.admitted(alice, 10, 120), 0, 0)
	w.settle(w.admitted(bob, 1, 50), 1, 20)
	w.peek(project)
}

// slotsAdded: a limit in flight that a revision adds is full, and counts its holds.
func slotsAdded(w *world) {
	before := w.admitted(alice, 2, 100)
	next := flights
	next.windows.project, next.project = divided.windows.project, slices.Clone(next.project)
	next.project[1] = divided.project[1]
	w.revised(next)
	w.reshaped("project-p", next.project, 0)
	w.bucket("user-alice").windows = calendars(next.windows.user)
	w.reshaped("user-alice", next.user, 1)
	after := w.admitted(alice, 3, 50)
	w.left(after, 5, 100)
	w.want(before.Settle(w.Context(), cost(1, 60)))
	for i, actual := range [][]int64{{2 * bucket.Milli, 0}, {0, 60 * bucket.Milli}} { // of the limits it had
		s := &before.portions[i]
		s.cost[1-i] = 0
		s.settle(actual, w.store.Decided())
	}
	before.ended = true
	w.Limiter = w.process()
	w.spy.seen()
	w.peek(alice)
	w.peek(project)
	w.pass(6 * time.Minute)
	w.denied(alice, 8, 1)
	w.restart()
	w.pass(2 * time.Minute)
	w.left(w.admitted(alice, 10, 150), 0, 0)
	w.left(w.admitted(project, 990, 190), 0, 0)
}

// heldRevision: another capacity of a later limits.yaml leaves what is held as it is.
func heldRevision(w *world) {
	lease := w.admitted(alice, 6, 40)
	for _, capacity := range []int64{20, 4, 8} {
		next := w.schema
		next.user = []bucket.Limit{bucket.InFlight(capacity), next.user[1]}
		w.revised(next)
		w.reshaped("user-alice", next.user)
		w.denied(alice, min(capacity, max(1, capacity-6+1)), 1)
		w.pass(2 * time.Minute)
	}
	w.left(w.admitted(alice, 2, 10), 0, 100)
	lease.Keep(w.Context())
	w.old(lease, nil, 40)
	w.left(w.admitted(alice, 6, 10), 0, 90)
	_, err := w.acquire(alice, cost(9, 0))
	failed[*store.CostTooLargeError](w, "more than all", err)
	w.peek(project)
}
