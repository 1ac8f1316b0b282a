package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// windowShadow: what shadow mode lets through opens no window and takes from none, before a boundary or after
// it.
func windowShadow(w *world) {
	w.shadow = true
	w.settle(w.admitted(alice, 1, 100), 1, 120)
	over, err := w.acquire(alice, cost(1, 31))
	w.endsAt(*as[*store.DeniedError](w, "in shadow", err), "2027-01-16T00:30:00+01:00")
	_, err = w.acquire(alice, cost(1, 151))
	failed[*store.CostTooLargeError](w, "above the burst", err)
	w.reach("user-alice", 0)
	w.settle(over, 1, 50)
	w.peek(alice)
	w.left(w.admitted(alice, 1, 90), 9, 60)
	_, err = w.acquire(alice, cost(1, 61))
	w.endsAt(*as[*store.DeniedError](w, "in shadow", err), "2027-01-17T00:30:00+01:00")
	w.shadow = false
	w.denied(alice, 1, 61)
	w.admitted(alice, 1, 60)
	w.peek(project)
}

// windowApart: users have rpm that refills, and the project has tpm in days. A call is charged for both.
func windowApart(w *world) {
	lease := w.admitted(alice, 3, 100)
	w.left(lease, 7, 300)
	w.denied(alice, 1, 301)
	denied := w.denied(alice, 8, 301)
	if denied.Entity != "project-p" || denied.Limit != "tpm" || w.schema.cascade == store.CascadeAtomic &&
		len(denied.Refusals) != 2 {
		w.Errorf("%v", &denied)
	}
	w.reach("project-p", 0) // midnight in Tokyo
	w.settle(lease, 1, 150) // 50 of the new day
	w.peek(alice)
	w.left(w.admitted(bob, 1, 300), 9, 50)
	w.denied(alice, 1, 51)
	w.release(w.admitted(project, 0, 50))
	for _, b := range w.peek(alice).Buckets {
		if b.Capacity != cost(10, 0) && b.Capacity != cost(0, 400) {
			w.Errorf("peek: %+v", b)
		}
	}
	w.reach("project-p", -time.Millisecond)
	w.denied(project, 0, 51)
	w.reach("project-p", 0)
	w.admitted(project, 0, 400)
}

// windowLeft: balances say when they reset. They are exact after a call, and full from the boundary on.
func windowLeft(w *world) {
	lease := w.admitted(alice, 1, 100)
	w.balanced("lease", lease.Balances(), 9, 50)
	w.denied(alice, 1, 51)
	w.balanced("look-up", w.GPT4.Lookup(alice), 9, 50)
	if snap := w.peek(alice); snap.Available.TPM != 50 || snap.Buckets[1].Available.TPM != 9900 {
		w.Errorf("peek: %+v", snap)
	}
	w.settle(lease, 1, 130)
	w.balanced("settled lease", lease.Balances(), 9, 20)
	w.left(lease, 9, 20)
	late := w.admitted(alice, 1, 20)
	w.reach("user-alice", 0)
	if w.store.Remembers {
		w.balanced("look-up", w.GPT4.Lookup(alice), 10, 150)
	}
	if snap := w.peek(alice); snap.Available.TPM != 150 || snap.Buckets[0].Burst.TPM != 150 {
		w.Errorf("peek: %+v", snap)
	}
	w.settle(late, 1, 30)
	w.left(late, 10, 140)
	w.balanced("late lease", late.Balances(), 10, 140)
}

// balanced holds balances of alice's chain against the model, and hers against numbers.
func (w *world) balanced(what string, all []runtime.Balance, rpm, tpm int64) {
	w.Helper()
	now := w.store.Clock.Now().UnixMilli()
	if len(all) != 4 {
		w.Fatalf("%s: %d balances, want 4", what, len(all))
	}
	for i, b := range all[:2] {
		if want := []int64{rpm, tpm}[i]; b.Entity != "user-alice" || b.Available != want {
			w.Errorf("%s: %+v, want %d", what, b, want)
		}
	}
	for i, b := range all {
		if model := w.bucket(b.Entity); !w.judge.resets(b.Resets, model, i%2, now) {
			w.Errorf("%s: %s of %s resets at %v, want %v", what, b.Limit, b.Entity, b.Resets.UTC(),
				model.resets(i%2, now))
		}
	}
}

// windowWait: a wait without an end does not wait for a boundary that is over a minute away. One with an end
// behind the boundary is served at it.
func windowWait(w *world) {
	w.admitted(alice, 1, 150)
	asked := w.spy.calls()
	_, err := w.GPT4.Wait(w.Context(), alice, cost(1, 10))
	denied := as[*store.DeniedError](w, "without an end", err)
	w.endsAt(*denied, "2027-01-16T00:30:00+01:00")
	if errors.Is(err, context.DeadlineExceeded) || w.spy.calls() > asked+1 {
		w.Errorf("without an end: %v, after %d calls", err, w.spy.calls()-asked)
	}
	_, err = w.GPT4.Wait(w.Context(), alice, cost(1, 10), runtime.MaxWait(time.Hour))
	if denied := as[*store.DeniedError](w, "MaxWait", err); !errors.Is(denied, context.DeadlineExceeded) {
		w.Errorf("got %v, want a deadline", denied)
	}
	l := w.process(runtime.WithClock(&pacer{Clock: w.store.Clock, advance: w.store.Advance}))
	for _, test := range []struct {
		early time.Duration
		opts  []runtime.CallOption
	}{{50 * time.Second, nil}, {3 * time.Minute, []runtime.CallOption{runtime.MaxWait(time.Hour)}}} {
		w.reach("user-alice", -test.early) // within a minute, a wait needs no end
		ends := w.end("user-alice")
		lease, err := l.GPT4.Wait(w.Context(), alice, cost(1, 150), test.opts...)
		if err != nil {
			w.Fatalf("%v", err)
		}
		if got := time.UnixMilli(w.store.Decided()); !got.Equal(ends) {
			w.Errorf("it was served at %v, want %v", got.UTC(), ends)
		}
		for _, s := range w.portions(alice, cost(1, 150)) {
			s.take(s.cost, w.store.Decided())
		}
		lease.Keep(w.Context())
	}
	w.spy.seen()
	w.denied(alice, 1, 1)
}

// windowCrowd: callers of several processes that come at a boundary are admitted for what there is, once.
func windowCrowd(w *world) {
	const callers, each = 64, 5
	processes := make([]*limits.Limiter, 8)
	for i := range processes {
		processes[i] = w.process()
	}
	w.admitted(alice, 500_000, 150) // as for other crowds, no bucket of rpm is full again
	for range 2 {
		w.reach("user-alice", 0)
		var admitted atomic.Int64
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				_, err := processes[i%len(processes)].GPT4.Acquire(w.Context(), alice, cost(1, each))
				for errors.As(err, new(*store.ContendedError)) {
					_, err = processes[i%len(processes)].GPT4.Acquire(w.Context(), alice, cost(1, each))
				}
				if err == nil {
					admitted.Add(1)
				} else if _, denied := errors.AsType[*store.DeniedError](err); !denied {
					w.Errorf("%v", err)
				}
			})
		}
		wg.Wait()
		if n := admitted.Load() * each; n != 150 {
			w.Errorf("%d tokens are admitted at the boundary, want 150", n)
		}
		for _, s := range w.portions(alice, cost(admitted.Load(), admitted.Load()*each)) {
			s.take(s.cost, w.store.Decided())
		}
		w.Limiter = w.process()
		w.spy.seen()
		w.peek(alice)
		w.denied(alice, 1, each)
	}
}

// windowOutage: while the store is down, a process goes by the window that it saw last, and opens the next.
func windowOutage(w *world) {
	logged, _ := broken(w, store.Local)
	w.admitted(alice, 1, 100)
	w.store.Break()
	lease, err := w.GPT4.Acquire(w.Context(), alice, cost(1, 30))
	if err != nil || !lease.Degraded() || lease.Remaining().TPM != 20 {
		w.Fatalf("%+v are left, %v", lease.Remaining(), err)
	}
	_, err = w.GPT4.Acquire(w.Context(), alice, cost(1, 21))
	w.endsAt(*as[*store.DeniedError](w, "in an outage", err), "2027-01-16T00:30:00+01:00")
	late, err := w.GPT4.Acquire(w.Context(), alice, cost(1, 20))
	if err != nil {
		w.Fatalf("%v", err)
	}
	w.reach("user-alice", 0)
	next, err := w.GPT4.Acquire(w.Context(), alice, cost(1, 140))
	if err != nil || next.Remaining().TPM != 10 || logged.count() == 0 {
		w.Fatalf("in the next window %+v are left, %v", next.Remaining(), err)
	}
	err = errors.Join(lease.Settle(w.Context(), cost(1, 0)), late.Settle(w.Context(), cost(1, 25)))
	if err != nil {
		w.Errorf("settle: %v", err)
	}
	_, err = w.GPT4.Acquire(w.Context(), alice, cost(1, 6)) // nothing came back, and 5 were taken
	w.endsAt(*as[*store.DeniedError](w, "in an outage", err), "2027-01-17T00:30:00+01:00")
	if _, err := w.GPT4.Acquire(w.Context(), alice, cost(1, 5)); err != nil {
		w.Errorf("%v", err)
	}
	w.store.Repair()
	w.Limiter = w.process()
	w.spy.seen()
	w.peek(alice) // no record
	w.admitted(alice, 1, 150)
}

// windowEvents: an observer is told which limit refuses, and of settles across a boundary as of others.
func windowEvents(w *world) {
	var mu sync.Mutex
	var said []string
	note := func(what string) func(context.Context, store.Event) {
		return func(_ context.Context, e store.Event) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, fmt.Sprintf("%s %s %s %s %s", what, e.Operation, e.Kind, e.LimitKind, e.Limit))
			if denied, ok := errors.AsType[*store.DeniedError](e.Err); ok && denied.Resets.IsZero() {
				w.Errorf("%s: %v does not say when it resets", what, e.Err)
			}
		}
	}
	w.Limiter = w.process(runtime.WithObserver(&store.Observer{
		Acquired: note("acquired"), Denied: note("denied"), Settled: note("settled"), Released: note("released"),
		Failed: note("failed"),
	}))
	lease, released := w.admitted(alice, 1, 100), w.admitted(alice, 1, 20)
	w.denied(alice, 1, 31)
	w.reach("user-alice", 0)
	w.settle(lease, 1, 120)
	w.release(released)
	w.admitted(project, 1, 10_000-120)
	w.denied(alice, 1, 10)
	want := []string{
		"acquired acquire user  ", "acquired acquire user  ", "denied acquire user user tpm",
		"settled settle user  ",
		"released release user  ", "acquired acquire project  ", "denied acquire user project tpm",
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(said, want) {
		w.Errorf("told %q\nwant %q", said, want)
	}
}
