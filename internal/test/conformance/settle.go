package conformance

import (
	"errors"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// settle: the difference is charged, or given back, of each limit by itself and in each bucket.
func settle(w *world) {
	down := w.admitted(alice, 3, 100)
	w.settle(down, 1, 20)
	w.left(down, 9, 130)
	up := w.admitted(alice, 1, 20)
	w.settle(up, 4, 60)
	w.left(up, 5, 70)
	mixed := w.admitted(alice, 3, 10)
	w.settle(mixed, 1, 50)
	w.left(mixed, 4, 20)
	same := w.admitted(alice, 1, 10)
	w.settle(same, 1, 10)
	w.peek(alice)
	w.peek(project)
}

// debt: what was used beyond the estimate is owed, and refilled first.
func debt(w *world) {
	lease := w.admitted(alice, 1, 100)
	w.settle(lease, 1, 350)
	w.left(lease, 9, 0)
	if denied := w.denied(alice, 1, 1); denied.Available != 0 || denied.RetryAfter > 100500*time.Millisecond {
		w.Errorf("%v", &denied)
	}
	w.store.Advance(w.denied(alice, 1, 1).RetryAfter)
	w.admitted(alice, 1, 1)
	w.denied(alice, 1, 1)
	w.peek(project)
}

// settleAboveBurst: more than a bucket can hold may have been used, and no more than that is given back.
func settleAboveBurst(w *world) {
	lease := w.admitted(alice, 1, 100)
	w.settle(lease, 1, 1000) // the burst is 150, the project's 400
	w.denied(alice, 1, 1)
	w.denied(project, 1, 1)
	w.store.Advance(500 * time.Second)
	lease = w.admitted(alice, 5, 150)
	w.store.Advance(100 * time.Second) // it is full
	w.settle(lease, 1, 10)
	w.left(lease, 10, 150)
	w.admitted(alice, 10, 150)
	w.denied(alice, 1, 1)
}

// release: all comes back, to all buckets, and no more than was there.
func release(w *world) {
	lease := w.admitted(alice, 6, 150)
	w.denied(alice, 5, 1)
	w.release(lease)
	w.left(lease, 10, 150)
	w.admitted(alice, 10, 150)
	w.peek(project)
	lease = w.admitted(bob, 5, 100)
	w.store.Advance(time.Minute)
	w.release(lease)
	w.left(lease, 10, 150)
}

// more: what joins a lease is settled and given back with it. A 0 is 0, and a refusal changes nothing.
func more(w *world) {
	lease := w.admitted(alice, 2, 50)
	if err := w.more(lease, cost(0, 60)); err != nil {
		w.Fatalf("more: %v", err)
	}
	w.left(lease, 8, 40)
	denied := as[*store.DeniedError](w, "more than is left", w.more(lease, cost(0, 41)))
	if denied.Limit != "tpm" || denied.Requested != 41 || denied.Available != 40 {
		w.Errorf("%v", denied)
	}
	tooLarge := as[*store.CostTooLargeError](w, "more than the burst", w.more(lease, cost(0, 151)))
	if tooLarge.Limit != "tpm" || tooLarge.Requested != 151 {
		w.Errorf("%v", tooLarge)
	}
	w.settle(lease, 1, 30)
	w.left(lease, 9, 120)
	if err := lease.More(w.Context(), cost(0, 1)); !errors.Is(err, runtime.ErrSettled) {
		w.Errorf("more after the settle: %v", err)
	}
	given := w.admitted(bob, 1, 10)
	if err := w.more(given, cost(1, 0)); err != nil {
		w.Fatalf("more: %v", err)
	}
	w.release(given)
	w.left(given, 10, 150)
	w.peek(alice)
	w.peek(project)
}

// settleTwice: a lease is closed once.
func settleTwice(w *world) {
	lease := w.admitted(alice, 3, 100)
	w.settle(lease, 1, 50)
	if err := lease.Settle(w.Context(), cost(1, 1)); !errors.Is(err, runtime.ErrSettled) {
		w.Errorf("a second settle: %v", err)
	}
	lease.Release(w.Context())
	w.left(lease, 9, 100)
	w.peek(alice)
	lease = w.admitted(alice, 3, 50)
	w.release(lease)
	lease.Release(w.Context())
	if err := lease.Settle(w.Context(), cost(1, 1)); !errors.Is(err, runtime.ErrSettled) {
		w.Errorf("a settle after a release: %v", err)
	}
	w.peek(alice)
}

// lazySettle: a settle that is left for later is written by Close at the latest, and counts once.
func lazySettle(w *world) {
	lazy := w.process()
	for _, actual := range []limits.GPT4Cost{cost(1, 20), cost(2, 80)} {
		held, err := w.acquireIn(lazy, alice, cost(3, 50), runtime.LazySettle(true))
		if err != nil {
			w.Fatalf("%v", err)
		}
		if err := held.Settle(w.Context(), actual); err != nil {
			w.Fatalf("%v", err)
		}
		if err := lazy.Close(w.Context()); err != nil {
			w.Fatalf("close: %v", err)
		}
		held.follow(milli(actual), w.store.Decided())
		lazy = w.process()
		w.peek(alice)
	}
	held, err := w.acquireIn(lazy, alice, cost(3, 50), runtime.LazySettle(true))
	if err != nil {
		w.Fatalf("%v", err)
	}
	held.Release(w.Context())
	if err := lazy.Close(w.Context()); err != nil {
		w.Fatalf("close: %v", err)
	}
	held.follow(make([]int64, len(names)), w.store.Decided())
	w.peek(alice)
	w.peek(project)
}

// expiry: a bucket that was not used for long is forgotten, and comes back full.
func expiry(w *world) {
	w.admitted(alice, 10, 150)
	stays := max(2*75*time.Second, w.store.KeepIdle) // it is full after 75 s
	w.store.Advance(stays - time.Second)
	w.Limiter = w.process()
	if !w.peek(alice).Buckets[0].Exists {
		w.Errorf("the bucket is gone too early")
	}
	w.admitted(alice, 10, 150)
	w.store.Advance(stays + 30*time.Second)
	w.Limiter = w.process()
	if b := w.peek(alice).Buckets[0]; b.Exists {
		w.Errorf("%+v is still there", b)
	}
	w.admitted(alice, 10, 150)
	w.denied(alice, 1, 1)
}

// expiryInDebt: what is owed is not forgotten.
func expiryInDebt(w *world) {
	w.settle(w.admitted(alice, 1, 100), 1, 2000)
	w.store.Advance(15 * time.Minute)
	w.Limiter = w.process()
	w.denied(alice, 1, 1)
	w.peek(project)
	w.store.Advance(2*time.Hour + w.store.KeepIdle)
	w.nothing(alice)
	w.admitted(alice, 10, 150)
}

// giveBackToExpired: a bucket that is gone is full, and stays so; what is charged to it comes off that.
func giveBackToExpired(w *world) {
	down, back, up := w.admitted(alice, 1, 50), w.admitted(alice, 1, 50), w.admitted(alice, 1, 50)
	w.store.Advance(time.Hour)
	w.settle(down, 1, 10)
	w.peek(alice)
	w.release(back)
	w.peek(alice)
	w.settle(up, 2, 150)
	w.left(up, 9, 50)
	w.peek(alice)
	w.peek(project)
}
