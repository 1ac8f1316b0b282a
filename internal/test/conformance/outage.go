package conformance

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// warnings is a log that keeps what is worth a warning.
type warnings struct {
	mu  sync.Mutex
	all []string
}

// Enabled implements slog.Handler.
func (*warnings) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

// Handle implements slog.Handler.
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, r.Message)
	return nil
}

// WithAttrs implements slog.Handler.
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler { return w }

// WithGroup implements slog.Handler.
func (w *warnings) WithGroup(string) slog.Handler { return w }

// count returns how many warnings there were, and forgets them.
func (w *warnings) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.all)
	w.all = nil
	return n
}

// broken is w's process during an outage: opened before, with policy, its warnings and how many calls it was
// told are degraded.
func broken(w *world, policy store.Policy) (logged *warnings, degraded func() int) {
	w.Helper()
	logged = &warnings{}
	var mu sync.Mutex
	n := 0
	w.Limiter = w.process(runtime.WithLogger(slog.New(logged)),
		runtime.WithCallDefaults(runtime.OnUnavailable(policy)),
		runtime.WithObserver(&store.Observer{Degraded: func(_ context.Context, _ store.Event) {
			mu.Lock()
			defer mu.Unlock()
			n++
		}}))
	return logged, func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

// unavailableAllow: calls go on, and the store has no record of them. Within two seconds of an answer they
// are decided in the process.
func unavailableAllow(w *world) {
	w.admitted(alice, 9, 100)
	logged, degraded := broken(w, store.Allow) // had no answer yet
	w.store.Break()
	for range 3 {
		lease, err := w.GPT4.Acquire(w.Context(), alice, cost(2, 10)) // more than there is
		if err != nil {
			w.Fatalf("%v", err)
		}
		if !lease.Degraded() {
			w.Errorf("the lease is not degraded")
		}
		if err := lease.Settle(w.Context(), cost(1, 30)); err != nil {
			w.Errorf("settle: %v", err)
		}
	}
	if n := degraded(); n != 3 || logged.count() == 0 {
		w.Errorf("the observer got %d degraded calls, and the log of none", n)
	}
	w.store.Repair()
	w.Limiter = w.process() // whose breaker is closed
	w.peek(alice)
	w.denied(alice, 2, 1)
}

// unavailableDeny: calls fail.
func unavailableDeny(w *world) {
	_, degraded := broken(w, store.Deny)
	w.store.Break()
	_, err := w.GPT4.Acquire(w.Context(), alice, cost(1, 1))
	failed[*store.UnavailableError](w, "acquire", err)
	_, err = w.GPT4.Peek(w.Context(), alice)
	failed[*store.UnavailableError](w, "peek", err)
	failed[*store.UnavailableError](w, "check", w.Check(w.Context()))
	if n := degraded(); n != 0 {
		w.Errorf("%d calls are degraded", n)
	}
	w.store.Repair()
	w.nothing(alice)
	w.admitted(alice, 1, 1)
}

// unavailableLocal: calls are decided in the process, from what it saw last.
func unavailableLocal(w *world) {
	logged, degraded := broken(w, store.Local)
	w.admitted(alice, 6, 100)
	w.store.Break()
	lease, err := w.GPT4.Acquire(w.Context(), alice, cost(3, 10))
	if err != nil || !lease.Degraded() || lease.Remaining().RPM != 1 ||
		lease.Remaining().TPM != 40 {
		w.Fatalf("%+v are left, degraded %t, %v", lease.Remaining(), lease.Degraded(), err)
	}
	_, err = w.GPT4.Acquire(w.Context(), alice, cost(2, 10))
	failed[*store.DeniedError](w, "more than there is", err)
	lease.Release(w.Context())
	if lease, err = w.GPT4.Acquire(w.Context(), alice, cost(4, 10)); err != nil || !lease.Degraded() {
		w.Errorf("after the release: %v", err)
	}
	if n := degraded(); n != 2 || logged.count() == 0 {
		w.Errorf("the observer got %d degraded calls, and the log of none", n)
	}
	w.store.Repair()
	w.Limiter = w.process()
	w.peek(alice) // no record
}

// unavailableSettle: what cannot be written is an error; the lease stands as charged, and is spent.
func unavailableSettle(w *world) {
	// It is over before it has begun: no outage is waited out.
	w.Limiter = w.process(runtime.WithSettleTimeout(1))
	lease := w.admitted(alice, 2, 100)
	w.store.Break()
	failed[*store.UnavailableError](w, "settle", lease.Settle(w.Context(), cost(1, 10)))
	w.store.Repair()
	if err := lease.Settle(w.Context(), cost(1, 10)); !errors.Is(err, runtime.ErrSettled) {
		w.Errorf("once more: %v", err)
	}
	w.peek(alice)
}

// breaker: a store that does not answer is left alone, until it replies to anything.
func breaker(w *world) {
	var opened []bool
	l := w.process(runtime.WithObserver(&store.Observer{Breaker: func(open bool,
		err error) {
		opened = append(opened, open && err != nil)
	}}))
	w.store.Break()
	for range 5 {
		_, err := l.GPT4.Acquire(w.Context(), alice, cost(1, 1))
		if down := as[*store.UnavailableError](w, "acquire", err); errors.Is(down, runtime.ErrBreakerOpen) {
			w.Errorf("it has opened early: %v", err)
		}
	}
	asked := w.spy.calls()
	_, err := l.GPT4.Acquire(w.Context(), alice, cost(1, 1))
	failed[*store.UnavailableError](w, "the next", err)
	if !errors.Is(err, runtime.ErrBreakerOpen) || w.spy.calls() != asked {
		w.Errorf("the store was asked once more: %v", err)
	}
	if len(opened) != 1 || !opened[0] {
		w.Errorf("the observer got %v", opened)
	}
	w.store.Repair()
	if _, err := l.GPT4.Acquire(w.Context(), alice, cost(1, 1), runtime.OnUnavailable(store.Allow)); err != nil {
		w.Errorf("the policy decides: %v", err)
	}
	w.nothing(alice)
	if _, err := l.GPT4.Peek(w.Context(), alice); err != nil {
		w.Fatalf("peek: %v", err)
	}
	w.Limiter = l // whose breaker the reply has closed
	w.admitted(alice, 1, 1)
}
