// Package conformance holds every store to the same behaviour, through the typed API that generate writes:
// named behaviours, random histories, and crowds. A store's own test opens it:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, func(t testing.TB) conformance.Store { … })
//	}
//
// One model determines what a call may do: a token bucket for each limit, in the integers of package bucket.
// It is charged at the instant at which the store has decided. Grants, denials, their limits, retry after and
// balances are compared with it after every call.
//
// A store that counts in floats agrees with the model to the millitoken and the millisecond if a limit yields
// whole millitokens in a millisecond. For other rates, such as 100 a minute, the model rounds each instant
// down and floats do not round. The two differ by less than a millitoken then, and never drift apart.
// Store.Slack, 1 for such stores, allows for that:
//
//   - A balance may be a millitoken off.
//   - A call whose cost is within a millitoken of the balance may be admitted or denied.
//   - Retry after may be off by the time that a millitoken takes, and a millisecond. A call after that wait
//     is admitted all the same.
//
// Limits with windows have the behaviours of boundaries, and most of those of limits that refill (alike). The
// model knows each window by its end, and a lease by the windows that it was charged to.
//
// Limits with holds have behaviours of their own, in which time passes by steps: each process extends what is
// due at an instant before the next step. The model knows each hold by its end, and knows no cells.
//
// Limits of money are charged by the usage of another schema, and compared with bills in whole numbers of
// pico-units.
//
// Plans have behaviours and a model of their own, with several processes: each goes by its own changes at
// once, and by those of others once its cache has expired.
//
// Prepaid limits are granted and spent by the calls of another schema, and compared with sums of both.
//
// Names of templates have behaviours and a model of their own, with a catalog that several processes edit.
//
// The model does not cover limit changes that a process has not noticed yet, nor the refill of the time
// before a change. With two fields to a limit, a store cannot know what was in force then.
package conformance

import (
	"slices"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Store is a store under test, with nothing in it, and what a test can do to it.
type Store struct {
	store.Store

	Clock store.Clock // for Limiters; its After may end at once
	Host  store.Clock // of a process whose clock is right, for Check
	// lets time pass, in whole ms, and has what expires deleted; below 0 it sets the clock back. It is called
	// concurrently
	Advance func(time.Duration)
	// KeepIdle is how long an idle bucket is kept, even if it was full before; 0 if for no longer than that.
	KeepIdle time.Duration
	// Usage says that images have what was consumed of each limit.
	Usage bool
	// Server says that the store runs on a server of its own. Controls show that the suite notices a broken
	// store; each takes many calls, and they are left to engines in the process.
	Server bool

	// Decided returns when the store has decided on the last call that it was asked for, in ms of the clock that
	// Advance moves. Available returns what a balance of that call's image was worth then, in millitokens.
	Decided   func() int64
	Available func(b bucket.Balance, refilled int64) int64

	// Remembers says that a process decides by what it saw of a bucket up to a second ago, and may not know the
	// present balances. A refund by another process counts later, and images of several buckets are predicted
	// ones.
	Remembers bool

	// Rooted says that an entity has a bucket for each root that its chains end with, for the sake of a
	// cluster's slots. Tokens taken under one project remain under another. Claims are acquired together only if
	// their chains have the same root.
	Rooted bool
	// KeepsNumbers says that buckets have the numbers that they were last charged by. A program that does not
	// know an entity's plan leaves them.
	KeepsNumbers bool
	// Buckets returns how many buckets the store has; nil if it does not tell.
	Buckets func() int
	// Disturb makes the service drop state that it may lose without harm; nil if there is none.
	Disturb func()

	// millitokens that a balance may be off where a limit's rate is no whole number of them per ms
	Slack         int64
	Break, Repair func()

	variant bool // of a store that runs the suite too
}

// most returns how many random calls or histories the long form plays: all, or for a variant the usual
// number.
func (s *Store) most(all, usual int) int {
	if s.variant {
		return usual
	}
	return all
}

// Open makes a Store for a test.
type Open func(testing.TB) Store

// Run holds the stores that open makes to the whole suite, and the suite to stores that are broken: they have
// to be caught.
func Run(t *testing.T, open Open) {
	t.Helper()
	run(t, open, func(testing.TB) {})
}

// Again is Run for a variant of a store. In the usual form it leaves out controls and, on engines in the
// process, holds, money, crowds and histories: the reason says what test runs those of the store itself. In
// the long form, random parts play as much as they usually do for that store.
func Again(t *testing.T, open Open, reason string) {
	t.Helper()
	variant := func(t testing.TB) Store {
		t.Helper()
		s := open(t)
		s.variant = true
		return s
	}
	run(t, variant, func(t testing.TB) { t.Helper(); longform.Only(t, reason) })
}

// run calls rare in those parts that a variant seldom needs.
func run(t *testing.T, open Open, rare func(testing.TB)) {
	t.Helper()
	inProcess := func(t *testing.T) {
		t.Helper()
		if !open(t).Server {
			rare(t)
		}
	}
	for _, b := range slices.Concat(behaviours, alike()) {
		t.Run(b.name, func(t *testing.T) { b.run(newWorld(t, open(t), b.schema)) })
	}
	t.Run("windows", func(t *testing.T) {
		for _, b := range boundaries {
			t.Run(b.name, func(t *testing.T) { b.run(newWorld(t, open(t), b.schema)) })
		}
	})
	t.Run("holds", func(t *testing.T) {
		inProcess(t)
		for _, b := range heldBehaviours() {
			t.Run(b.name, func(t *testing.T) { b.run(newWorld(t, open(t), b.schema)) })
		}
	})
	t.Run("money", func(t *testing.T) {
		inProcess(t)
		runMoney(t, open)
	})
	t.Run("plans", func(t *testing.T) {
		inProcess(t)
		runPlans(t, open)
	})
	t.Run("credits", func(t *testing.T) {
		inProcess(t)
		runCredits(t, open)
	})
	t.Run("names", func(t *testing.T) {
		inProcess(t)
		runNames(t, open)
	})
	t.Run("histories", func(t *testing.T) {
		inProcess(t)
		runHistories(t, open(t))
	})
	t.Run("crowds", func(t *testing.T) {
		inProcess(t)
		runCrowds(t, open)
	})
	t.Run("controls", func(t *testing.T) {
		rare(t)
		longform.Control(t)
		if open(t).Server {
			t.Skip("the suite is the same on the engine in the process, where its controls are caught")
		}
		runControls(t, open)
		t.Run("money", func(t *testing.T) { runMoneyControls(t, open) })
		t.Run("plans", func(t *testing.T) { runPlanControls(t, open) })
		t.Run("credits", func(t *testing.T) { runCreditControls(t, open) })
		t.Run("names", func(t *testing.T) { runNameControls(t, open) })
	})
}

// FailOver holds a store to what it does when its service is replaced, by fail, with one that has nothing:
// what is missing is full, and nothing else is noticed.
func FailOver(t *testing.T, store Store, fail func()) {
	t.Helper()
	w := newWorld(t, store, plain)
	before := w.admitted(alice, 4, 100)
	w.admitted(alice, 6, 50)
	fail()
	clear(w.buckets)
	w.admitted(alice, 3, 20)
	before.portions = w.portions(alice, before.Cost())
	w.settle(before, 1, 50)
	w.left(before, 10, 150) // no more than it can hold
	w.admitted(alice, 10, 150)
	w.denied(alice, 1, 1)
	w.peek(project)
}

// behaviour is one that has a name.
type behaviour struct {
	name   string
	schema schema
	run    func(*world)
}

// behaviours are all that have a name.
var behaviours = []behaviour{
	{"first acquire", plain, firstAcquire},
	{"denial", plain, denial},
	{"denial of cost zero", plain, costZero},
	{"retry after", plain, retryAfter},
	{"retry after of odd rates", odd, retryAfter},
	{"cost above the burst", plain, aboveBurst},
	{"invalid input", plain, invalidInput},
	{"per call", plain, perCall},
	{"peek", plain, peek},
	{"two processes", plain, twoProcesses},
	{"check", plain, check},
	{"kinds that differ", apart, kindsApart},
	{"kinds that differ, compensated", apart.with(store.CascadeCompensated), kindsApart},
	{"kinds that differ, in an outage", apart, kindsLocal},
	{"cascade", plain, cascade},
	{"compensated cascade", compensated, cascade},
	{"no cascade", none, noCascade},
	{"one user, two projects", plain, twoProjects},
	{"parents looked up", plain, lookups},
	{"several resources", plain, several},
	{"claims that meet", plain, meeting},
	{"settle", plain, settle},
	{"settle into debt", plain, debt},
	{"settle beyond the burst", plain, settleAboveBurst},
	{"release", plain, release},
	{"more", plain, more},
	{"more, compensated", compensated, more},
	{"settle twice", plain, settleTwice},
	{"lazy settle", plain, lazySettle},
	{"expiry", plain, expiry},
	{"expiry in debt", plain, expiryInDebt},
	{"give back to what expired", plain, giveBackToExpired},
	{"clock set back", plain, setBack},
	{"clock set back, odd rates", odd, setBack},
	{"wait", plain, wait},
	{"wait too long", plain, waitTooLong},
	{"denial in shadow", plain, inShadow(denial)},
	{"retry after in shadow", plain, inShadow(retryAfter)},
	{"cost above the burst in shadow", plain, inShadow(aboveBurst)},
	{"invalid input in shadow", plain, inShadow(invalidInput)},
	{"cascade in shadow", plain, inShadow(cascade)},
	{"compensated cascade in shadow", compensated, inShadow(cascade)},
	{"several resources in shadow", plain, inShadow(several)},
	{"claims that meet in shadow", plain, inShadow(meeting)},
	{"leases of shadow mode", plain, shadowLeases},
	{"claims beside some in shadow", plain, shadowClaims},
	{"calls beside some in shadow", plain, shadowTogether},
	{"unavailable in shadow", plain, shadowOutage},
	{"override an entity", roomy, overrideEntity},
	{"override a kind", roomy, overrideKind},
	{"override precedence", roomy, overridePrecedence},
	{"override conflicts", roomy, overrideConflicts},
	{"override noticed", roomy, overrideNoticed},
	{"refill", roomy, overrideRefill},
	{"reset", roomy, resetEntity},
	{"unavailable: allow", plain, unavailableAllow},
	{"unavailable: deny", plain, unavailableDeny},
	{"unavailable: local", plain, unavailableLocal},
	{"unavailable: settle", plain, unavailableSettle},
	{"breaker", plain, breaker},
}
