package conformance

import (
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// taken is admitted in another process.
func (w *world) taken(l *limits.Limiter, who limits.GPT4Entity, rpm, tpm int64) *held {
	w.Helper()
	h, err := w.acquireIn(l, who, cost(rpm, tpm))
	if err != nil {
		w.Fatalf("%v: %v", w.chain(who), err)
	}
	return h
}

// restart kills all processes and begins another one, which remembers nothing.
func (w *world) restart() {
	w.Helper()
	for l := range w.processes {
		w.kill(l)
	}
	w.Limiter = w.process()
	w.spy.seen()
}

// firstEnd is when the first hold of a lease is over, in ms.
func (h *held) firstEnd() (at int64) {
	for _, one := range h.all() {
		if end := bucket.EpochEnd(one.epoch); at == 0 || end < at {
			at = end
		}
	}
	return at
}

// nearestEnd is when nothing is held any more of a lease's nearest bucket, in ms.
func (h *held) nearestEnd() (at int64) {
	for _, c := range h.portions[0].charges {
		for _, one := range c.holds {
			if one != nil {
				at = max(at, bucket.EpochEnd(one.epoch))
			}
		}
	}
	return at
}

// reservations: what a killed process had reserved comes back with its slots, and what it had settled stays.
// Usage has both.
func reservations(w *world) {
	w.settle(w.admitted(alice, 1, 50), 1, 30)
	w.settle(w.admitted(alice, 1, 10), 1, 25)
	lease := w.admitted(alice, 2, 60)
	w.admitted(alice, 1, 20)
	w.restart()
	w.denied(alice, 1, 16)
	w.until(lease.firstEnd() - 1)
	w.denied(alice, 8, 15)
	w.denied(alice, 1, 16)
	w.until(lease.firstEnd())
	w.denied(alice, 1, 96)
	w.left(w.admitted(alice, 10, 95), 0, 0)
	w.peek(project)
}

// settleHeld: what was reserved becomes what was used, above it and below it, however late.
func settleHeld(w *world) {
	down, up, same := w.admitted(alice, 1, 50), w.admitted(alice, 1, 20), w.admitted(alice, 1, 10)
	w.settle(down, 1, 20)
	w.left(down, 8, 100)
	w.pass(3 * time.Minute)
	w.settle(up, 1, 70)
	w.left(up, 9, 50)
	w.settle(same, 1, 10)
	w.left(same, 10, 50)
	w.settle(w.admitted(alice, 1, 50), 1, 80)
	w.denied(alice, 1, 1)
	w.pass(5 * time.Minute)
	w.peek(alice)
	w.peek(project)
}

// settleAfterWindow: slots come back from a call that outlasts its window, and nothing of what it reserved.
func settleAfterWindow(w *world) {
	first := w.admitted(alice, 1, 1)
	w.keep(first)
	w.store.Advance(w.end("user-alice").Sub(w.store.Clock.Now()) - 20*time.Second)
	down, up, dead := w.admitted(alice, 2, 60), w.admitted(alice, 2, 40), w.process()
	w.taken(dead, alice, 1, 30)
	w.kill(dead)
	w.pass(40 * time.Second)
	w.peek(alice)
	w.left(w.admitted(alice, 1, 10), 4, 140) // it opens the next window
	w.settle(down, 1, 20)
	w.pass(2 * time.Minute) // the dead one's slots come back, what it reserved does not
	w.left(w.admitted(alice, 0, 10), 6, 130)
	w.settle(up, 1, 55)
	w.left(up, 8, 115)
	w.peek(alice)
	w.peek(project)
}

// settleLost: a process that was frozen for long has lost its slots to others, and gives none back. It is
// charged for the tokens that it used.
func settleLost(w *world) {
	late := w.Limiter
	slots, below, above, given := w.admitted(alice, 4, 0), w.admitted(alice, 2, 40), w.admitted(alice, 2, 30),
		w.admitted(alice, 2, 20)
	thaw := w.frozen(late)
	w.Limiter = w.process()
	w.pass(2 * time.Minute)
	lease := w.admitted(alice, 8, 10)
	w.peek(alice)
	thaw()
	for _, h := range []*held{slots, below, above, given} {
		w.loses(h.Context(w.Context()), h)
	}
	w.keep(slots)
	w.settle(below, 1, 25)
	w.settle(above, 1, 45)
	w.release(given)
	w.peek(alice)
	w.left(w.admitted(alice, 2, 0), 0, 70)
	w.denied(alice, 1, 1)
	w.keep(lease)
	w.peek(alice)
	w.peek(project)
}

// keepLost: what is kept of a lost lease is charged as it was.
func keepLost(w *world) {
	late := w.Limiter
	kept := w.admitted(alice, 4, 40)
	thaw := w.frozen(late)
	w.Limiter = w.process()
	w.pass(2 * time.Minute)
	w.left(w.admitted(alice, 10, 10), 0, 140)
	thaw()
	w.loses(kept.Context(w.Context()), kept)
	w.keep(kept)
	w.Limiter = w.process()
	w.spy.seen()
	w.left(w.admitted(bob, 1, 1), 9, 149)
	w.denied(alice, 1, 101)
	w.peek(alice)
}

// moreHeld: More takes no slot unless it asks for one, and is held in its own epoch.
func moreHeld(w *world) {
	lease := w.admitted(alice, 1, 20)
	w.pass(20 * time.Second)
	w.want(w.more(lease, cost(0, 30)))
	w.left(lease, 9, 100)
	w.pass(60 * time.Second)
	w.want(w.more(lease, cost(2, 40)))
	w.left(lease, 7, 60)
	failed[*store.DeniedError](w, "more than is left", w.more(lease, cost(0, 61)))
	failed[*store.DeniedError](w, "more slots than are left", w.more(lease, cost(8, 0)))
	ends := lease.firstEnd()
	w.restart()
	w.until(ends)
	w.peek(alice)
	w.left(w.admitted(alice, 8, 0), 0, 110)
	w.pass(time.Minute)
	w.left(w.admitted(alice, 2, 150), 0, 0)
	w.peek(project)
}

// moreEnds: all calls of a lease come back with it, the newest first.
func moreEnds(w *world) {
	settled, released := w.admitted(alice, 1, 20), w.admitted(bob, 1, 20)
	for range 3 {
		w.want(w.more(settled, cost(1, 30)))
		w.want(w.more(released, cost(0, 30)))
		w.pass(time.Minute)
	}
	w.settle(settled, 1, 45)
	w.left(settled, 10, 105)
	w.release(released)
	w.left(released, 10, 150)
	w.peek(project)
}

// moreInNext: a lease with parts in two windows gets back what it took of the open one.
func moreInNext(w *world) {
	w.keep(w.admitted(alice, 1, 1))
	w.store.Advance(w.end("user-alice").Sub(w.store.Clock.Now()) - 20*time.Second)
	lease, dead := w.admitted(alice, 1, 60), w.process()
	w.pass(30 * time.Second)
	w.want(w.more(lease, cost(1, 70)))
	w.left(lease, 8, 80)
	w.pass(5 * time.Minute)
	w.taken(dead, alice, 1, 30)
	w.kill(dead)
	w.settle(lease, 1, 100)
	w.left(lease, 9, 80)
	w.pass(2 * time.Minute)
	w.peek(alice)
	w.left(w.admitted(alice, 10, 110), 0, 0)
	w.peek(project)
}

// want holds that a call is admitted.
func (w *world) want(err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("%v", err)
	}
}

// chained: a call takes a slot of each bucket of its chain, or of none.
func chained(w *world) {
	first, second := w.admitted(alice, 7, 60), w.admitted(bob, 5, 70)
	denied := w.denied(alice, 1, 1)
	if denied.Entity != "project-p" || denied.RetryAfter != bucket.FullRetry {
		w.Errorf("%+v", denied)
	}
	w.peek(alice) // which has got its slot back
	w.pass(3 * time.Minute)
	w.denied(bob, 2, 0)
	w.settle(first, 0, 10)
	w.left(w.admitted(bob, 4, 0), 1, 80)
	w.release(second)
	w.peek(bob)
	lease := w.admitted(project, 3, 100)
	w.restart()
	w.until(lease.firstEnd())
	w.left(w.admitted(alice, 10, 140), 0, 0)
	w.denied(project, 3, 1)
	w.left(w.admitted(project, 2, 100), 0, 150)
	w.peek(bob)
}

// unchained: without a cascade, the nearest bucket alone has slots.
func unchained(w *world) {
	lease := w.admitted(alice, 10, 150)
	w.denied(alice, 1, 1)
	w.left(w.admitted(project, 12, 400), 0, 0)
	w.admitted(bob, 10, 150)
	w.keep(lease)
	w.left(w.admitted(alice, 10, 0), 0, 0)
	w.peek(project)
}

// apartHeld: users have slots, and the project has tokens of a day. A dead process's come back of each.
func apartHeld(w *world) {
	lease := w.admitted(alice, 3, 100)
	w.left(lease, 7, 300)
	w.denied(alice, 8, 301)
	w.settle(lease, 1, 250)
	w.left(lease, 10, 150)
	w.pass(3 * time.Minute)
	open := w.admitted(alice, 4, 50)
	w.pass(4 * time.Minute)
	w.denied(alice, 7, 1)
	w.denied(bob, 1, 101)
	w.want(w.more(open, cost(6, 100)))
	w.denied(alice, 1, 0)
	w.restart()
	w.pass(2 * time.Minute)
	w.left(w.admitted(alice, 10, 150), 0, 0)
	w.denied(project, 0, 1)
	w.peek(alice)
}

// heldByTwo: what one process holds the other has not, whatever it remembers.
func heldByTwo(w *world) {
	other := w.process()
	mine, theirs := w.admitted(alice, 6, 50), w.taken(other, alice, 4, 50)
	_, err := w.acquireIn(other, alice, cost(1, 1))
	failed[*store.DeniedError](w, "the other", err)
	w.pass(100 * time.Second)
	w.settle(theirs, 0, 80)
	w.store.Advance(1100 * time.Millisecond) // a process may deny by what it saw before
	w.left(w.admitted(alice, 4, 20), 0, 0)
	w.release(mine)
	w.store.Advance(1100 * time.Millisecond)
	w.taken(other, alice, 6, 50)
	w.denied(alice, 1, 1)
	w.kill(other)
	w.pass(2 * time.Minute)
	w.peek(alice)
	w.left(w.admitted(alice, 6, 50), 0, 0)
	w.peek(project)
}

// lazyHeld: a settle that is left for later gives slots back once it is written.
func lazyHeld(w *world) {
	for _, test := range []struct {
		late   time.Duration
		actual limits.GPT4Cost
	}{{0, cost(1, 20)}, {0, cost(1, 60)}, {5 * time.Minute, cost(1, 10)}} {
		lazy := w.process()
		held, err := w.acquireIn(lazy, alice, cost(3, 40), runtime.LazySettle(true))
		w.want(err)
		w.pass(test.late)
		w.want(held.Settle(w.Context(), test.actual))
		w.want(lazy.Close(w.Context()))
		held.follow(milli(test.actual), w.store.Decided())
		w.peek(alice)
	}
	lazy := w.process()
	kept, err := w.acquireIn(lazy, alice, cost(10, 40), runtime.LazySettle(true))
	w.want(err)
	kept.Keep(w.Context())
	w.want(lazy.Close(w.Context()))
	kept.follow(kept.portions[0].cost, w.store.Decided())
	w.peek(alice)
	w.left(w.admitted(alice, 10, 20), 0, 0)
	w.peek(project)
}

// claimsHeld: claims of several resources take slots together, or none, and each lease gives its own back.
func claimsHeld(w *world) {
	w.want(w.all(cost(4, 60), 5, alice, bob))
	failed[*store.DeniedError](w, "too much for the project", w.all(cost(3, 10), 1, alice, bob))
	failed[*store.DeniedError](w, "too much for the users", w.all(cost(7, 10), 0, alice))
	w.peek(alice)
	w.peek(bob)
	claimed := w.leases[len(w.leases)-1]
	w.pass(5 * time.Minute)
	w.denied(alice, 7, 1)
	for _, lease := range append(claimed.others, claimed.GPT4Lease) {
		lease.Keep(w.Context())
	}
	claimed.followAll(w.store.Decided())
	w.peek(alice)
	w.peek(bob)
	w.want(w.all(cost(6, 40), 15, alice, bob))
	w.peek(project)
	w.restart()
	w.pass(2 * time.Minute)
	w.left(w.admitted(alice, 10, 90), 0, 0)
	w.peek(project)
}

// followAll has the model keep all that a lease's portions took, each its own.
func (h *held) followAll(now int64) {
	h.ended = true
	for i := range h.portions {
		h.portions[i].settle(h.portions[i].cost, now)
	}
}
