package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// pacer is a clock that a waiter advances.
type pacer struct {
	store.Clock
	advance func(time.Duration)
}

// After implements store.Clock.
func (p *pacer) After(d time.Duration) <-chan time.Time {
	p.advance(d)
	over := make(chan time.Time)
	close(over)
	return over
}

// wait: it is served when the tokens are there, first come first served.
func wait(w *world) {
	w.admitted(alice, 10, 0)
	before := w.store.Decided()
	l := w.process(runtime.WithClock(&pacer{Clock: w.store.Clock, advance: w.store.Advance}))
	lease, err := l.GPT4.Wait(w.Context(), alice, cost(3, 10))
	if err != nil {
		w.Fatalf("%v", err)
	}
	waited := w.store.Decided() - before
	if waited != 3000 {
		w.Errorf("it was served after %d ms, want 3000", waited)
	}
	for _, s := range w.portions(alice, cost(3, 10)) {
		s.take(s.cost, w.store.Decided())
	}
	w.spy.seen()
	w.denied(alice, 1, 1)
	lease.Release(w.Context())
}

// waitTooLong: who would wait beyond the end is told at once.
func waitTooLong(w *world) {
	w.admitted(alice, 10, 0)
	_, err := w.GPT4.Wait(w.Context(), alice, cost(3, 10), runtime.MaxWait(time.Second))
	if denied := as[*store.DeniedError](w, "MaxWait", err); !errors.Is(denied, context.DeadlineExceeded) {
		w.Errorf("got %v, want a deadline", denied)
	}
	w.peek(alice)
}
