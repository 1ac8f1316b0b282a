package conformance

import (
	"context"
	"errors"
	"slices"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// heldShadow: a call that shadow mode lets through takes no slot, and its end gives none back.
func heldShadow(w *world) {
	w.shadow = true
	lease := w.admitted(alice, 8, 100)
	over, err := w.acquire(alice, cost(3, 10))
	denied := as[*store.DeniedError](w, "in shadow", err)
	if denied.Limit != names[0] || denied.RetryAfter != bucket.FullRetry {
		w.Errorf("%+v", denied)
	}
	w.pass(3 * time.Minute)
	w.peek(alice)
	w.settle(over, 1, 20)
	w.peek(alice)
	w.settle(lease, 1, 50)
	w.left(w.admitted(alice, 10, 100), 0, 0)
	w.shadow = false
	w.denied(alice, 1, 0)
	w.peek(project)
}

// heldLocal: while the store is down, a process counts its own slots, after those that it saw last.
func heldLocal(w *world) {
	logged, degraded := broken(w, store.Local)
	before := w.admitted(alice, 6, 100)
	w.store.Break()
	lease, err := w.GPT4.Acquire(w.Context(), alice, cost(3, 10))
	if err != nil || !lease.Degraded() || lease.Remaining() != cost(1, 40) {
		w.Fatalf("%+v are left, %v", lease.Remaining(), err)
	}
	_, err = w.GPT4.Acquire(w.Context(), alice, cost(2, 10))
	if denied := as[*store.DeniedError](w, "in an outage", err); denied.RetryAfter != bucket.FullRetry {
		w.Errorf("%+v", denied)
	}
	w.want(lease.Settle(w.Context(), cost(1, 25)))
	lease, err = w.GPT4.Acquire(w.Context(), alice, cost(4, 25))
	if err != nil || lease.Remaining() != cost(0, 0) {
		w.Errorf("%+v are left after the settle, %v", lease.Remaining(), err)
	}
	if n := degraded(); n != 2 || logged.count() == 0 {
		w.Errorf("the observer got %d degraded calls, and the log of none", n)
	}
	w.store.Repair()
	lease.Keep(w.Context()) // whose slots the store does not know
	w.restart()
	w.peek(alice) // no record
	w.until(before.firstEnd())
	w.left(w.admitted(alice, 10, 150), 0, 0)
}

// heldDeny: nothing is admitted, and slots that are held come back all the same.
func heldDeny(w *world) {
	broken(w, store.Deny)
	before := w.admitted(alice, 6, 100)
	w.store.Break()
	_, err := w.GPT4.Acquire(w.Context(), alice, cost(1, 1))
	failed[*store.UnavailableError](w, "acquire", err)
	w.store.Repair()
	w.restart()
	w.peek(alice)
	w.until(before.firstEnd())
	w.left(w.admitted(alice, 10, 150), 0, 0)
}

// heldAllow: calls go on without a slot, and so have none to lose or to give back.
func heldAllow(w *world) {
	w.admitted(alice, 9, 100)
	broken(w, store.Allow) // had no answer yet
	w.store.Break()
	for range 3 {
		lease, err := w.GPT4.Acquire(w.Context(), alice, cost(2, 10)) // more than there is
		w.want(err)
		ctx := lease.Context(w.Context())
		w.want(lease.Settle(w.Context(), cost(1, 30)))
		if !lease.Degraded() || ctx.Err() != nil {
			w.Errorf("degraded %t, context %v", lease.Degraded(), ctx.Err())
		}
	}
	w.store.Repair()
	w.Limiter = w.process()
	w.denied(alice, 2, 1)
	w.peek(alice)
}

// waiting is a Wait of alice for a slot.
type waiting struct {
	lease *limits.GPT4Lease
	err   error
}

// begin has l wait for a slot, and returns once that has to wait.
func (w *world) begin(l *limits.Limiter) <-chan waiting {
	w.Helper()
	for len(w.processes[l].asked) > 0 {
		<-w.processes[l].asked // of an earlier wait
	}
	done := make(chan waiting, 1)
	go func() {
		lease, err := l.GPT4.Wait(w.Context(), alice, cost(1, 10), runtime.MaxWait(time.Hour))
		done <- waiting{lease, err}
	}()
	for await(w, "a wait", w.processes[l].asked) > time.Second { // that is of another goroutine
	}
	return done
}

// served holds the outcome of a wait, and follows.
func (w *world) served(l *limits.Limiter, got waiting) *held {
	w.Helper()
	w.want(got.err)
	portions := w.portions(alice, cost(1, 10))
	w.judged("wait", portions, nil, false)
	return w.newHeld(l, got.lease, portions)
}

// waitForOwn: a call waits for a slot in order, and gets one of its own process at once.
func waitForOwn(w *world) {
	first, second := w.admitted(alice, 5, 10), w.admitted(alice, 5, 10)
	for i, end := range []func(){
		func() { first.Keep(w.Context()) },
		func() { w.want(second.Settle(w.Context(), cost(1, 5))) },
	} {
		began, done := w.store.Decided(), w.begin(w.Limiter)
		end()
		ended := []*held{first, second}[i]
		ended.follow([][]int64{milli(cost(5, 10)), milli(cost(1, 5))}[i], w.store.Decided())
		lease := w.served(w.Limiter, await(w, "a slot", done))
		if now := w.store.Decided(); now != began {
			w.Errorf("it was served after %d ms", now-began)
		}
		w.left(lease, 4, []int64{120, 115}[i])
		w.admitted(alice, 4, 0)
		w.denied(alice, 1, 1)
	}
	w.peek(project)
}

// waitForOthers: a call gets a slot that another process gives back within a second, and likewise one of a
// process that died.
func waitForOthers(w *world) {
	for _, dies := range []bool{false, true} {
		other := w.process()
		all := w.taken(other, alice, 10, 10)
		w.Limiter = w.process()
		done := w.begin(w.Limiter)
		free := w.store.Decided() + 5500
		if dies {
			w.kill(other)
			free = all.firstEnd()
		}
		got, pause := waiting{}, 50*time.Millisecond // the first pause
		for waits := true; waits; {
			left := time.UnixMilli(free).Sub(w.store.Clock.Now())
			if !dies && !all.ended && pause > left {
				w.store.Advance(left)
				w.keep(all)
				pause -= left
			}
			w.store.Advance(pause)
			got, pause, waits = w.look(w.Limiter, done)
		}
		lease := w.served(w.Limiter, got)
		if late := w.store.Decided() - free; late < 0 || late > 1000 {
			w.Errorf("it was served %d ms after the slot was free", late)
		}
		w.keep(lease)
		w.peek(alice)
	}
}

// look ends the pause of a wait. It returns the outcome of the wait, or the next pause if it still waits.
func (w *world) look(l *limits.Limiter, done <-chan waiting) (got waiting, pause time.Duration, waits bool) {
	w.Helper()
	w.processes[l].end(false)
	late := time.NewTimer(longest)
	defer late.Stop()
	for {
		select {
		case got = <-done:
			return got, 0, false
		case pause = <-w.processes[l].asked:
			if pause <= time.Second { // else it is of the goroutine that extends
				return got, pause, true
			}
		case <-late.C:
			w.Fatalf("a wait neither ends nor goes on")
		}
	}
}

// lost: a process that could not extend a lease ends its context, three seconds before others may have its
// slots. It takes no more for it.
func lost(w *world) {
	events := make(chan store.Event, 10)
	note := func(_ context.Context, e store.Event) { events <- e }
	w.Limiter = w.process(runtime.WithObserver(&store.Observer{LeaseLost: note}))
	lease, short := w.admitted(alice, 4, 40), w.admitted(alice, 2, 10)
	ctx, cancel := context.WithCancel(w.Context())
	own, ended := lease.Context(ctx), short.Context(ctx)
	w.keep(short)
	if err := context.Cause(ended); !errors.Is(err, runtime.ErrSettled) {
		w.Errorf("the context of a kept lease ends by %v", err)
	}
	thaw, end := w.frozen(w.Limiter), lease.firstEnd()
	w.until(end - 3000)
	thaw()
	w.loses(own, lease)
	if e := await(w, "an event", events); e.Entity != "user-alice" || e.Operation != store.OperationExtend {
		w.Errorf("told %+v", e)
	}
	if err := lease.More(w.Context(), cost(1, 1)); !errors.Is(err, runtime.ErrLeaseLost) {
		w.Errorf("more of a lost lease: %v", err)
	}
	w.denied(alice, 7, 1)
	w.until(end - 1)
	w.denied(alice, 7, 1)
	w.until(end)
	w.left(w.admitted(alice, 10, 0), 0, 140)
	w.settle(lease, 1, 30)
	w.left(lease, 0, 110)
	cancel()
	w.peek(project)
}

// outlasted: an outage in which holds could not be extended loses their leases. The slots come back.
func outlasted(w *world) {
	late := w.process(runtime.WithSettleTimeout(time.Second)) // by the system's clock
	w.Limiter = late
	lease := w.admitted(alice, 4, 40)
	own, end := lease.Context(w.Context()), lease.firstEnd()
	w.until(end - latest - 1)
	w.store.Break()
	w.store.Advance(time.Millisecond)
	w.processes[late].end(true)
	for range lease.portions {
		await(w, "an extension", w.spy.extended)
	}
	w.processes[late].end(false)
	w.store.Advance(latest*time.Millisecond - 3*time.Second)
	w.loses(own, lease)
	failed[*store.InvalidError](w, "a negative settle", lease.Settle(w.Context(), cost(1, -1)))
	for len(w.spy.extended) > 0 { // of which nothing was sent
		<-w.spy.extended
	}
	w.store.Repair()
	w.Limiter = w.process()
	w.denied(alice, 7, 1)
	w.until(end)
	w.left(w.admitted(alice, 10, 0), 0, 150)
	w.settle(lease, 1, 30)
	w.left(lease, 0, 120)
	w.peek(project)
}

// closeHeld: Close ends all open leases, and gives their slots back.
func closeHeld(w *world) {
	other := w.process()
	first, second := w.taken(other, alice, 4, 40), w.taken(other, bob, 6, 10)
	ctx := first.Context(w.Context())
	w.want(other.Close(w.Context()))
	if err := context.Cause(ctx); !errors.Is(err, runtime.ErrLeaseLost) {
		w.Errorf("its context ends by %v, want ErrLeaseLost", err)
	}
	for _, h := range []*held{first, second} {
		h.follow(h.portions[0].cost, w.store.Decided())
	}
	w.peek(alice)
	w.peek(bob)
	if err := first.Settle(w.Context(), cost(1, 1)); !errors.Is(err, runtime.ErrSettled) {
		w.Errorf("a settle after Close: %v", err)
	}
	w.left(w.admitted(alice, 10, 110), 0, 0)
}

// heldLeft: peeks, look-ups and leases say what is free, and nobody knows when a slot will be.
func heldLeft(w *world) {
	lease := w.admitted(alice, 4, 100)
	check := func(what string, all []runtime.Balance, rpm, tpm int64) {
		w.Helper()
		want := []int64{rpm, tpm}
		if len(all) != 4 || !slices.Equal([]int64{all[0].Available, all[1].Available}, want) ||
			all[0].Params != w.schema.user[0] || !all[0].Resets.IsZero() {
			w.Errorf("%s: %+v, want %d", what, all, want)
		}
	}
	check("lease", lease.Balances(), 6, 50)
	w.denied(alice, 7, 1)
	check("look-up", w.GPT4.Lookup(alice), 6, 50)
	if snap := w.peek(alice); snap.Available != cost(6, 50) || snap.Buckets[0].Capacity != cost(10, 150) {
		w.Errorf("peek: %+v", snap)
	}
	w.settle(lease, 1, 20)
	check("settled lease", lease.Balances(), 10, 130)
	dead := w.admitted(alice, 10, 30)
	w.restart()
	w.until(dead.firstEnd())
	if snap := w.peek(alice); snap.Available != cost(10, 130) {
		w.Errorf("peek: %+v", snap)
	}
}
