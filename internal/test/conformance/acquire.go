package conformance

import (
	"strings"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// firstAcquire: what was never used is full.
func firstAcquire(w *world) {
	w.nothing(alice)
	lease := w.admitted(alice, 3, 100)
	w.left(lease, 7, 50)
	if got := lease.Cost(); got != cost(3, 100) || lease.Degraded() {
		w.Errorf("the lease stands for %+v, degraded %t", got, lease.Degraded())
	}
	for _, b := range w.peek(alice).Buckets {
		if !b.Exists {
			w.Errorf("%s has no bucket", b.Entity)
		}
	}
	w.nothing(limits.User{ID: "bob", Project: limits.Project{ID: "other"}})
}

// denial: all limits that refuse are named, nearest bucket first and in schema order, and nothing is charged.
func denial(w *world) {
	w.admitted(alice, 9, 149)
	w.admitted(project, 5, 250)
	denied := w.denied(alice, 2, 51)
	var who []string
	for _, r := range denied.Refusals {
		who = append(who, r.Entity+" "+r.Limit)
	}
	const want = "user-alice rpm, user-alice tpm, project-p rpm, project-p tpm"
	if got := strings.Join(who, ", "); got != want {
		w.Errorf("refused by %s\nwant       %s", got, want)
	}
	if denied.Entity != "user-alice" || denied.Limit != "tpm" || denied.Requested != 51 ||
		denied.Available != 1 {
		w.Errorf("%v", &denied)
	}
	for range 3 { // the second is from memory, where a store has one
		w.denied(alice, 2, 51)
	}
	w.admitted(alice, 1, 1)
}

// costZero: a limit that a call takes nothing of does not refuse it, be it in debt.
func costZero(w *world) {
	w.settle(w.admitted(alice, 1, 100), 1, 300)
	w.admitted(alice, 1, 0)
	w.denied(alice, 1, 1)
}

// retryAfter: at the instant that a denial names there are the tokens, and not a millisecond before.
func retryAfter(w *world) {
	w.admitted(alice, 10, 150)
	for _, c := range []limits.GPT4Cost{cost(1, 0), cost(7, 0), cost(10, 0), cost(1, 1), cost(1, 90),
		cost(1, 150)} {
		w.store.Advance(17 * time.Millisecond) // whenever one asks
		wait := w.denied(alice, c.RPM, c.TPM).RetryAfter
		w.store.Advance(wait - time.Millisecond)
		if early := w.denied(alice, c.RPM, c.TPM); early.RetryAfter != time.Millisecond {
			w.Errorf("1 ms early: %v", &early)
		}
		w.store.Advance(time.Millisecond)
		lease := w.admitted(alice, c.RPM, c.TPM)
		w.settle(lease, 10, 150) // debt, or as empty as before
		w.store.Advance(w.denied(alice, 10, 1).RetryAfter)
		w.admitted(alice, 10, 0)
	}
}

// aboveBurst: waiting does not help, whichever bucket of the chain is too small.
func aboveBurst(w *world) {
	for _, c := range []limits.GPT4Cost{cost(11, 0), cost(1, 151), cost(16, 401)} {
		_, err := w.acquire(alice, c)
		failed[*store.CostTooLargeError](w, "alice", err)
	}
	_, err := w.acquire(project, cost(1, 401))
	if got := errtext.Of(err); got != "exceeds burst gpt-4 project-p tpm 401/400" {
		w.Errorf("got %s", got)
	}
	w.nothing(alice)
	w.admitted(alice, 10, 150)
	_, err = w.acquire(alice, cost(11, 1)) // with a denial beside it
	failed[*store.CostTooLargeError](w, "drained", err)
}

// invalidInput: it is met before anything is written.
func invalidInput(w *world) {
	for _, test := range []struct {
		who  limits.GPT4Entity
		c    limits.GPT4Cost
		want string
	}{
		{alice, cost(1, -1), `invalid gpt-4 cost tpm "-1"`},
		{alice, cost(1, 1<<60), `invalid gpt-4 cost tpm "1152921504606846976"`},
		{limits.User{Project: project}, cost(1, 1), `invalid gpt-4 id user`},
		{limits.User{ID: "a#b", Project: project}, cost(1, 1), `invalid gpt-4 id user "a#b"`},
		{limits.User{ID: "alice"}, cost(1, 1), `invalid gpt-4 id project`},
		{limits.Project{ID: "\xff"}, cost(1, 1), `invalid gpt-4 id project "\xff"`},
		{limits.Project{ID: "\x1b"}, cost(1, 1), `invalid gpt-4 id project "\x1b"`},
		{limits.Project{ID: "1\u202e"}, cost(1, 1), `invalid gpt-4 id project "1\u202e"`},
	} {
		_, err := w.GPT4.Acquire(w.Context(), test.who, test.c)
		if got := errtext.Of(err); got != test.want {
			w.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
	_, err := w.GPT4.Acquire(w.Context(), alice, cost(1, 1), runtime.Budget(0))
	failed[*store.InvalidError](w, "a budget of 0", err)
	w.nothing(alice)
	lease := w.admitted(alice, 1, 10)
	failed[*store.InvalidError](w, "a negative settle", lease.Settle(w.Context(), cost(1, -1)))
	w.settle(lease, 1, 5) // it was left as it was
}

// perCall: a 0 means what limits.yaml says, in settles too.
func perCall(w *world) {
	lease := w.admitted(alice, 0, 10)
	w.left(lease, 9, 140)
	if got := lease.Cost(); got != cost(1, 10) {
		w.Errorf("the lease stands for %+v", got)
	}
	w.settle(lease, 0, 20)
	w.left(lease, 9, 130)
}

// peek: it changes nothing, and sees what Acquire would.
func peek(w *world) {
	w.nothing(alice)
	w.nothing(alice)
	w.admitted(alice, 4, 70)
	w.store.Advance(1500 * time.Millisecond)
	snap := w.peek(alice)
	if snap.Available != cost(7, 83) || w.peek(alice).Available != snap.Available {
		w.Errorf("available: %+v", snap.Available)
	}
	if b := snap.Buckets[1]; b.Entity != "project-p" || b.Capacity != cost(15, 400) ||
		b.Full > 22833*time.Millisecond || b.Full < 20*time.Second {
		w.Errorf("project: %+v", b)
	}
	w.admitted(alice, 7, 70)
	w.settle(w.admitted(bob, 1, 1), 5, 1000)
	if in := w.peek(bob).Available; in != cost(0, 0) {
		w.Errorf("in debt %+v are available", in)
	}
}

// twoProcesses: what one takes the other has not, whatever it remembers.
func twoProcesses(w *world) {
	other := w.process()
	both := func(rpm, tpm int64) error {
		w.Helper()
		_, err := w.acquireIn(other, alice, cost(rpm, tpm))
		return err
	}
	w.admitted(alice, 4, 50)
	if err := both(4, 50); err != nil {
		w.Errorf("%v", err)
	}
	failed[*store.DeniedError](w, "the other", both(3, 1))
	w.denied(alice, 3, 1)
	w.admitted(alice, 2, 1)
	failed[*store.DeniedError](w, "the other", both(1, 1))
	w.peek(alice)
}

// check: a store that is set up serves.
func check(w *world) {
	if err := w.process(runtime.WithClock(w.store.Host)).Check(w.Context()); err != nil {
		w.Errorf("%v", err)
	}
	w.admitted(alice, 1, 1)
	if err := w.Close(w.Context()); err != nil {
		w.Errorf("close: %v", err)
	}
}

// setBack: a clock that steps back refills nothing, then or when it comes to the same instant again. How much
// of the last refill a bucket has while it is back is the store's: what nobody claimed may be out of sight
// until then.
func setBack(w *world) {
	w.admitted(alice, 9, 150)
	w.store.Advance(3 * time.Second)
	lease := w.admitted(alice, 1, 1)
	w.store.Advance(-10 * time.Second)
	_, err := w.GPT4.Acquire(w.Context(), alice, cost(4, 1))
	failed[*store.DeniedError](w, "more than there was", err)
	if _, err := w.GPT4.Acquire(w.Context(), alice, cost(1, 1)); err != nil {
		failed[*store.DeniedError](w, "less than there was", err)
	} else {
		for _, s := range w.portions(alice, cost(1, 1)) {
			s.take(s.cost, w.store.Decided())
		}
	}
	if err := lease.Settle(w.Context(), cost(1, 2)); err != nil {
		w.Fatalf("settle: %v", err)
	}
	lease.follow(milli(cost(1, 2)), w.store.Decided())
	w.store.Advance(10 * time.Second)
	w.peek(alice)
	w.store.Advance(w.denied(alice, 5, 20).RetryAfter)
	w.admitted(alice, 5, 20)
	w.denied(alice, 5, 20)
}
