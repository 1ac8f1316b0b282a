package conformance

import (
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// The schemas of behaviours with holds. Of them, rpm counts calls in flight, and tpm has windows.
var (
	flights = days.inFlight(10, 1000)
	crew    = dated.inFlight(10, 12) // whose project refuses
	divided = daysApart.inFlight(10, 0)
	// without what on_crash says
	fixed = flights.fixed()
)

// fixed returns s with reservations that do not come back after a crash.
func (s schema) fixed() schema {
	s.holds = slotsHeld
	return s
}

// inFlight returns s with so many slots of rpm, and with a tpm whose reservations come back after a crash.
func (s schema) inFlight(user, project int64) schema {
	s.holds = bothHeld
	s.user, s.project = []bucket.Limit{bucket.InFlight(user), s.user[1]}, []bucket.Limit{{}, s.project[1]}
	if project > 0 {
		s.project[0] = bucket.InFlight(project)
	}
	return s
}

// slotsReturn: a call takes a slot, or as many as it asks for, and its end gives them back, whatever it
// settles to. Usage counts each call, but for one that is released.
func slotsReturn(w *world) {
	settled, kept, released := w.admitted(alice, 3, 50), w.admitted(alice, 0, 30), w.admitted(alice, 5, 20)
	w.left(released, 1, 50)
	w.settle(settled, 9, 40)
	w.left(settled, 4, 60)
	w.keep(kept)
	w.left(kept, 5, 60)
	w.release(released)
	w.left(released, 10, 80)
	w.settle(w.admitted(alice, 10, 0), 0, 0)
	w.peek(alice)
	w.peek(project)
}

// slotsDenied: a call beyond the slots is told to try again in a second, and one that never fits is told so.
func slotsDenied(w *world) {
	w.admitted(alice, 7, 10)
	lease := w.admitted(alice, 3, 10)
	for range 3 { // from memory, too
		if denied := w.denied(alice, 0, 1); denied.RetryAfter != time.Second || !denied.Resets.IsZero() ||
			denied.Limit != names[0] || denied.Available != 0 {
			w.Errorf("%+v", denied)
		}
	}
	both := w.denied(alice, 1, 131)
	if both.Limit != names[1] || len(both.Refusals) != 2 {
		w.Errorf("%+v, want both limits, and the window's retry after", both)
	}
	_, err := w.acquire(alice, cost(11, 1))
	failed[*store.CostTooLargeError](w, "more than there are slots", err)
	w.keep(lease)
	w.denied(alice, 4, 1)
	w.admitted(alice, 3, 1)
	w.peek(project)
}

// slotsOfTheDead: what a killed process held comes back at the end of its epoch, one to two minutes later,
// and not a millisecond before.
func slotsOfTheDead(w *world) {
	for _, early := range []time.Duration{0, 10 * time.Second, time.Minute - time.Millisecond} {
		w.until(bucket.EpochEnd(bucket.Epoch(w.store.Decided())))
		w.pass(early)
		began := w.store.Decided()
		dead := w.process()
		if _, err := w.acquireIn(dead, alice, cost(10, 30)); err != nil {
			w.Fatalf("%v", err)
		}
		w.kill(dead)
		w.Limiter = w.process()
		w.denied(alice, 1, 1)
		end := bucket.EpochEnd(bucket.Epoch(began) + 1)
		if took := end - began; took <= time.Minute.Milliseconds() || took > 2*time.Minute.Milliseconds() {
			w.Errorf("it takes %d ms", took)
		}
		w.until(end - 1)
		w.denied(alice, 1, 1)
		w.until(end)
		lease := w.admitted(alice, 10, 1)
		w.denied(alice, 1, 1)
		w.settle(lease, 0, 0)
		w.peek(project)
	}
}

// slotsExtended: a living process holds its slots for as long as the call takes. That costs a write for each
// bucket a minute, however many leases it has.
func slotsExtended(w *world) {
	other := w.process()
	first, second := w.admitted(alice, 4, 10), w.admitted(alice, 3, 20)
	third, err := w.acquireIn(other, alice, cost(3, 20))
	if err != nil {
		w.Fatalf("%v", err)
	}
	before := w.extended
	for range 10 {
		w.pass(time.Minute)
		w.denied(alice, 1, 1)
		w.peek(alice)
	}
	if n := w.extended - before; n != 36 { // of two processes and two buckets, from a minute and a half on
		w.Errorf("%d writes in ten minutes, want 36", n)
	}
	w.settle(first, 0, 5)
	w.kill(other)
	w.pass(2 * time.Minute)
	w.left(w.admitted(alice, 2, 0), 5, 125)
	w.release(second)
	w.peek(alice)
	if third.Cost() != cost(3, 20) {
		w.Errorf("the dead lease stands for %+v", third.Cost())
	}
	w.peek(project)
}

// shortCalls: a call of less than half a minute costs no extension.
func shortCalls(w *world) {
	for range 5 {
		lease := w.admitted(alice, 10, 10)
		w.pass(29 * time.Second)
		w.settle(lease, 0, 10)
	}
	if w.extended != 0 {
		w.Errorf("%d writes have extended holds", w.extended)
	}
	w.peek(project)
}

// heldBehaviours are the behaviours of limits that count holds.
func heldBehaviours() []behaviour {
	all := []behaviour{
		{"slots return", flights, slotsReturn},
		{"slots return, without on_crash", fixed, slotsReturn},
		{"slots denied", flights, slotsDenied},
		{"slots of a dead process", flights, slotsOfTheDead},
		{"slots of a dead process, without on_crash", fixed, slotsOfTheDead},
		{"slots extended", flights, slotsExtended},
		{"short calls", flights, shortCalls},
		{"reservations of a dead process", flights, reservations},
		{"settle of what is held", flights, settleHeld},
		{"settle of what is held, compensated", flights.with(store.CascadeCompensated), settleHeld},
		{"settle after the window", flights, settleAfterWindow},
		{"settle of a lost lease", flights, settleLost},
		{"keep of a lost lease", flights, keepLost},
		{"more that is held", flights, moreHeld},
		{"more that is held, compensated", flights.with(store.CascadeCompensated), moreHeld},
		{"more that ends", flights, moreEnds},
		{"more in the next window", flights, moreInNext},
		{"chains with slots", crew, chained},
		{"chains with slots, compensated", crew.with(store.CascadeCompensated), chained},
		{"slots without a cascade", crew.with(store.CascadeNone), unchained},
		{"slots of kinds that differ", divided, apartHeld},
		{"slots of kinds that differ, compensated", divided.with(store.CascadeCompensated), apartHeld},
		{"slots of two processes", flights, heldByTwo},
		{"lazy settle of what is held", flights, lazyHeld},
		{"claims of what is held", crew, claimsHeld},
		{"override slots", flights, heldOverride},
		{"reset slots", flights, heldReset},
		{"reset slots again", flights, heldResets},
		{"expiry of holds", flights, heldExpiry},
		{"erase what is held", flights, heldErase},
		{"on_crash added", fixed, onCrashAdded},
		{"slots added", divided, slotsAdded},
		{"slots of another revision", flights, heldRevision},
		{"slots in shadow", flights, heldShadow},
		{"slots in an outage: local", flights, heldLocal},
		{"slots in an outage: deny", flights, heldDeny},
		{"slots in an outage: allow", flights, heldAllow},
		{"wait for a slot", flights, waitForOwn},
		{"wait for a slot of others", flights, waitForOthers},
		{"lost leases", flights, lost},
		{"lost by an outage", flights, outlasted},
		{"close with open leases", flights, closeHeld},
		{"what is left of slots", flights, heldLeft},
	}
	for i := range all {
		all[i].run = withHolds(all[i].run)
	}
	return all
}
