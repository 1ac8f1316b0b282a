package conformance

import (
	"slices"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// windowReturns: a window has its tokens once. All are back at its end, and not a millisecond before.
func windowReturns(w *world) {
	w.left(w.admitted(alice, 1, 100), 9, 50)
	w.store.Advance(5 * time.Hour)
	w.left(w.admitted(alice, 1, 50), 9, 0)
	denied := w.denied(alice, 1, 1)
	w.endsAt(denied, "2027-01-16T00:30:00+01:00")
	w.reach("user-alice", -time.Millisecond)
	early := w.denied(alice, 1, 150)
	if early.RetryAfter != time.Millisecond {
		w.Errorf("1 ms early: %v", &early)
	}
	w.endsAt(early, "2027-01-16T00:30:00+01:00")
	w.reach("user-alice", 0)
	w.left(w.admitted(alice, 1, 150), 9, 0)
	w.endsAt(w.denied(alice, 1, 1), "2027-01-17T00:30:00+01:00")
	w.peek(project)
	w.store.Advance(60 * time.Hour) // windows that nobody uses
	w.left(w.admitted(alice, 1, 1), 9, 149)
	w.endsAt(w.denied(alice, 1, 150), "2027-01-19T00:30:00+01:00")
	w.peek(project)
}

// windowUnused: a call that takes nothing of the limit opens no window, nor do a peek and a give-back.
func windowUnused(w *world) {
	w.admitted(alice, 3, 0)
	w.release(w.admitted(bob, 1, 0))
	w.peek(alice)
	w.store.Advance(time.Hour)
	lease := w.admitted(alice, 1, 10)
	w.reach("user-alice", time.Minute)
	w.settle(w.admitted(alice, 2, 0), 4, 0)
	w.settle(lease, 2, 5)
	w.peek(alice)
	w.store.Advance(30 * time.Hour)
	w.admitted(alice, 1, 0)
	w.peek(alice)
	w.admitted(alice, 1, 100)
	w.denied(alice, 1, 51)
	w.peek(project)
}

// windowFirstUse: a window begins with the first call that takes something, and has its length.
func windowFirstUse(w *world) {
	w.admitted(alice, 1, 0)
	w.store.Advance(41 * time.Minute)
	w.admitted(alice, 1, 150)
	w.endsAt(w.denied(alice, 1, 1), "2027-01-15T13:41:00Z")
	w.reach("user-alice", -time.Millisecond)
	w.denied(alice, 1, 1)
	w.reach("user-alice", 3*time.Hour+7*time.Millisecond)
	w.left(w.admitted(alice, 1, 100), 9, 50)
	w.endsAt(w.denied(alice, 1, 51), "2027-01-15T21:41:00.007Z")
	w.peek(project)
}

// windowSettle: less than the estimate comes back to the window that was charged, more is taken from the one
// that is open then.
func windowSettle(w *world) {
	lease := w.admitted(alice, 1, 100)
	w.store.Advance(time.Hour)
	w.settle(lease, 1, 30)
	w.left(lease, 10, 120)
	down, idle, up := w.admitted(alice, 1, 40), w.admitted(alice, 1, 20), w.admitted(alice, 1, 10)
	w.reach("user-alice", time.Millisecond)
	w.settle(idle, 1, 5) // before a window is open
	w.peek(alice)
	w.settle(up, 1, 35) // this opens one
	w.peek(alice)
	w.settle(down, 1, 10)
	w.left(down, 10, 125)
	next := w.admitted(alice, 1, 100)
	w.denied(alice, 1, 26)
	w.settle(next, 1, 70)
	w.left(next, 9, 55)
	w.peek(project)
}

// windowDebt: what was used beyond the tokens is owed until the window ends.
func windowDebt(w *world) {
	w.settle(w.admitted(alice, 1, 100), 1, 350)
	denied := w.denied(alice, 1, 1)
	if denied.Available != 0 || denied.Limit != "tpm" {
		w.Errorf("%v", &denied)
	}
	w.admitted(alice, 1, 0)
	w.reach("user-alice", -time.Millisecond)
	w.denied(alice, 1, 1)
	w.reach("user-alice", 0)
	w.admitted(alice, 1, 50)
	w.peek(project)
}

// windowRelease: all comes back, unless the window is over.
func windowRelease(w *world) {
	lease, kept := w.admitted(alice, 1, 60), w.admitted(alice, 1, 90)
	w.release(lease)
	w.left(lease, 9, 60)
	w.reach("user-alice", -time.Second)
	late := w.admitted(alice, 1, 60)
	w.reach("user-alice", 0)
	w.admitted(alice, 1, 120)
	w.release(late)
	w.release(kept)
	w.left(w.admitted(alice, 1, 30), 9, 0)
	w.denied(alice, 1, 1)
	w.peek(project)
}

// windowMore: each part of a lease comes back to the window that it was taken from, the newest first. More
// than all of them is taken from the open window.
func windowMore(w *world) {
	var held []*held
	actual := []int64{150, 130, 110, 70, 60, 30, 0} // of 70 and 60 more: above, between and below
	for i := range actual {
		held = append(held, w.admitted(numbered(i), 1, 70))
	}
	before := w.admitted(numbered(99), 1, 70)
	w.reach("project-p", 0)
	for _, lease := range held {
		if err := w.more(lease, cost(0, 60)); err != nil {
			w.Fatalf("more: %v", err)
		}
	}
	denied := as[*store.DeniedError](w, "more than is left", w.more(held[0], cost(0, 91)))
	w.endsAt(*denied, "2027-03-01T00:00:00Z")
	for i, lease := range held {
		w.settle(lease, 1, actual[i])
		w.peek(numbered(i))
	}
	if err := w.more(before, cost(0, 20)); err != nil {
		w.Fatalf("more: %v", err)
	}
	w.release(before)
	w.peek(numbered(99))
	w.admitted(numbered(99), 1, 150)
	w.peek(project)
}

// windowLazy: a settle that is left for later gives back to its own window, and takes from the open one.
func windowLazy(w *world) {
	lazily := func(before bool, actual limits.GPT4Cost) {
		w.Helper()
		lazy := w.process()
		held, err := w.acquireIn(lazy, alice, cost(1, 50), runtime.LazySettle(true))
		if err != nil {
			w.Fatalf("%v", err)
		}
		if !before {
			w.reach("user-alice", time.Second)
		}
		if err := held.Settle(w.Context(), actual); err != nil {
			w.Fatalf("%v", err)
		}
		if err := lazy.Close(w.Context()); err != nil {
			w.Fatalf("close: %v", err)
		}
		held.follow(milli(actual), w.store.Decided())
		w.Limiter = w.process()
		w.spy.seen()
		w.peek(alice)
	}
	lazily(true, cost(1, 20))
	lazily(true, cost(1, 80))
	lazily(false, cost(1, 20))
	lazily(false, cost(2, 90))
	w.denied(alice, 1, 111)
	w.peek(project)
}

// windowSetBack: a clock that steps back over a boundary opens no window once more, then or when it comes to
// the same instant again.
func windowSetBack(w *world) {
	lease := w.admitted(alice, 1, 150)
	w.reach("user-alice", 5*time.Second)
	w.admitted(alice, 1, 100)
	w.store.Advance(-10 * time.Second)
	w.left(w.admitted(alice, 1, 20), 8, 30)
	w.denied(alice, 1, 31)
	w.settle(lease, 1, 100)
	w.store.Advance(10 * time.Second)
	w.denied(alice, 1, 31)
	w.admitted(alice, 1, 30)
	w.endsAt(w.denied(alice, 1, 1), "2027-01-17T00:30:00+01:00")
	w.peek(project)
}

// windowReset: a reset bucket has all of its window, and takes nothing back from before.
func windowReset(w *world) {
	lease := w.admitted(alice, 1, 100)
	w.settle(w.admitted(alice, 1, 10), 1, 120)
	w.denied(alice, 1, 1)
	for _, who := range []limits.User{alice, bob} { // who has no bucket
		if err := w.Config.GPT4.Reset(w.Context(), who); err != nil {
			w.Fatalf("reset: %v", err)
		}
		w.filled("user-"+who.ID, w.schema.user...)
	}
	w.Limiter = w.process()
	w.spy.seen()
	w.peek(alice)
	w.left(w.admitted(alice, 1, 40), 9, 110)
	w.settle(lease, 1, 10)
	w.peek(alice)
	w.peek(project)
	w.denied(alice, 1, 111)
	w.reach("user-alice", -time.Millisecond)
	w.denied(alice, 1, 111)
	w.reach("user-alice", 0)
	w.admitted(alice, 1, 150)
	w.endsAt(w.denied(alice, 1, 1), "2027-01-17T00:30:00+01:00")
	w.admitted(bob, 1, 150)
}

// windowOverride: a raised limit has the difference at once, and a lowered one may be below 0. Usage stays,
// however often that happens.
func windowOverride(w *world) {
	lease := w.admitted(alice, 1, 100)
	for _, capacity := range []int64{250, 60, 250, 60} {
		l := limits.GPT4Limits{TPM: &runtime.Rate{Capacity: capacity}}
		w.set(w.Config.GPT4.Entity(alice), l)
		numbers := slices.Clone(w.schema.user)
		numbers[1].Capacity, numbers[1].Burst = capacity*bucket.Milli, capacity*bucket.Milli
		w.inForce("user-alice", numbers...)
		w.admitted(alice, 1, 0)
		w.denied(alice, 1, max(1, capacity-100+1))
	}
	w.settle(lease, 1, 30)
	w.Limiter = w.process() // which has not seen it before
	w.left(w.admitted(alice, 1, 20), 4, 10)
	w.reach("user-alice", 0)
	w.left(w.admitted(alice, 1, 20), 9, 40)
	w.set(w.Config.GPT4.Entity(alice), limits.GPT4Limits{})
	w.inForce("user-alice", w.schema.user...)
	w.left(w.admitted(alice, 1, 20), 8, 110)
	w.peek(project)
}

// windowRevision: numbers of a later limits.yaml change what is left by the difference.
func windowRevision(w *world) {
	lease := w.admitted(alice, 1, 100)
	for i, capacity := range []int64{250, 60, 250} {
		numbers := slices.Clone(w.schema.user)
		numbers[1].Capacity, numbers[1].Burst = capacity*bucket.Milli, capacity*bucket.Milli
		w.schema.user, w.schema.revision = numbers, int64(i+1)
		w.Limiter = w.process()
		w.inForce("user-alice", numbers...)
		w.admitted(alice, 1, 0)
		w.peek(alice)
	}
	if err := lease.Settle(w.Context(), cost(1, 30)); err != nil { // by the process of before
		w.Fatalf("settle: %v", err)
	}
	lease.follow(milli(cost(1, 30)), w.store.Decided())
	w.Limiter = w.process()
	w.spy.seen()
	w.left(w.admitted(alice, 1, 100), 5, 120)
	w.denied(alice, 1, 121)
	w.reach("user-alice", 0)
	w.left(w.admitted(alice, 1, 200), 9, 50)
	w.peek(project)
}

// alike returns the behaviours that limits with windows have in common with those that refill.
func alike() []behaviour {
	return slices.Concat(
		again(dated, "in windows", "first acquire", "denial of cost zero", "cost above the burst",
			"invalid input", "per call", "two processes", "check", "cascade", "compensated cascade", "no cascade",
			"one user, two projects", "parents looked up", "several resources", "claims that meet", "settle",
			"more", "more, compensated", "settle twice", "lazy settle", "wait",
			"cascade in shadow", "compensated cascade in shadow", "several resources in shadow",
			"claims that meet in shadow", "leases of shadow mode", "claims beside some in shadow",
			"calls beside some in shadow", "unavailable in shadow", "unavailable: allow", "unavailable: deny",
			"unavailable: local", "unavailable: settle", "breaker"),
		again(days, "in windows", "override an entity", "override conflicts", "override noticed", "refill",
			"reset"),
		again(months, "by months", "denial", "denial in shadow"),
		again(sessions, "by first use", "cascade", "settle", "more", "lazy settle", "unavailable: local"))
}

// boundaries are the behaviours of windows that end.
var boundaries = []behaviour{
	{"windows return", days, windowReturns},
	{"windows unused", days, windowUnused},
	{"windows unused, by first use", sessions, windowUnused},
	{"windows by first use", sessions, windowFirstUse},
	{"settle across windows", days, windowSettle},
	{"settle across windows, by first use", sessions, windowSettle},
	{"settle across windows, compensated", days.with(store.CascadeCompensated), windowSettle},
	{"debt in a window", days, windowDebt},
	{"release across windows", days, windowRelease},
	{"more across windows", quotas, windowMore},
	{"more across windows, compensated", quotas.with(store.CascadeCompensated), windowMore},
	{"lazy settle across windows", days, windowLazy},
	{"clock set back to another window", days, windowSetBack},
	{"reset a window", days, windowReset},
	{"override a window", days, windowOverride},
	{"window of another revision", days, windowRevision},
	{"month and month", months, windowMonths},
	{"month and month, compensated", months.with(store.CascadeCompensated), windowMonths},
	{"several resources with months", months, windowAll},
	{"windows of weeks and days", weeks, windowDays},
	{"windows and gaps", gap, windowGap},
	{"calendars of entities", owned, windowOwned},
	{"calendar changed", owned, windowMoves},
	{"calendar kept", owned, windowKeeps},
	{"month that becomes a day", quotas, windowShorter},
	{"windows in shadow", days, windowShadow},
	{"windows of kinds that differ", daysApart, windowApart},
	{"windows of kinds that differ, compensated", daysApart.with(store.CascadeCompensated), windowApart},
	{"what is left of a window", days, windowLeft},
	{"wait for a window", days, windowWait},
	{"crowd at a boundary", crowdedBy, windowCrowd},
	{"windows in an outage", days, windowOutage},
	{"events of windows", days, windowEvents},
}
