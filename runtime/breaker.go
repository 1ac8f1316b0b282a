package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/sluice-go/sluice/runtime/store"
)

// breaker keeps an outage from adding a time-out to every call. After breakerFailures failures in a row it
// refuses calls at once, and lets one through per breakerPause to see whether the store answers again. It
// uses the system's clock, as deadlines do.
type breaker struct {
	gate     *gobreaker.TwoStepCircuitBreaker[struct{}]
	last     atomic.Pointer[UnavailableError] // the newest failure
	open     atomic.Bool                      // as the gate has it
	reported atomic.Bool                      // the value of open that the observer and the log have

	// calm lets all calls through without asking the gate. It is set while the gate is closed and has counted no
	// failure since the last answer: then another answer changes nothing. It is nil otherwise, and a new pass
	// each time it is set.
	calm atomic.Pointer[pass]
	mu   sync.Mutex // held while the gate gets the outcome of a call, which happens nowhere else
}

// pass is the gate's permission to ask the store, and the function that gives the gate the outcome. Calm
// calls have one pass in common; the gate counts each outcome.
type pass struct{ done func(error) }

const (
	breakerFailures = 5           // in a row, to open it
	breakerPause    = time.Second // until it lets the next call through
)

// errNeutral is the outcome of a call that shows neither that the store answers nor that it fails.
var errNeutral = errors.New("neither a failure nor an answer")

func newBreaker() *breaker {
	b := &breaker{}
	b.gate = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     breakerPause,
		ReadyToTrip: func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= breakerFailures },
		IsExcluded:  func(err error) bool { return errors.Is(err, errNeutral) },
		// It is called under the gate's lock, so observers are called later. A probe that fails changes nothing.
		OnStateChange: func(_ string, from, to gobreaker.State) {
			switch {
			case from == gobreaker.StateClosed:
				b.open.Store(true)
			case to == gobreaker.StateClosed:
				b.open.Store(false)
			}
		},
	})
	b.calmDown()
	return b
}

// enter lets a call through, or returns why not.
func (b *breaker) enter() (*pass, error) {
	if p := b.calm.Load(); p != nil {
		return p, nil
	}
	done, err := b.gate.Allow()
	if err != nil {
		return nil, err
	}
	return &pass{done}, nil
}

// leave records the outcome of the call that p let through: a failure, an answer (nil), or errNeutral.
func (b *breaker) leave(p *pass, outcome error) {
	neutral := errors.Is(outcome, errNeutral)
	if (outcome == nil || neutral) && b.calm.Load() == p {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if outcome != nil && !neutral {
		b.calm.Store(nil) // before the gate counts it: from then on every answer has to reach the gate
	}
	p.done(outcome)
	b.calmDown()
}

// calmDown sets calm if the gate is closed and counts no failures. The caller holds mu, or is the only one to
// know b.
func (b *breaker) calmDown() {
	closed := b.gate.State() == gobreaker.StateClosed
	if b.calm.Load() != nil || !closed || b.gate.Counts().ConsecutiveFailures > 0 {
		return
	}
	if done, err := b.gate.Allow(); err == nil { // it is closed, and only a holder of mu can open it
		b.calm.Store(&pass{done})
	}
}

// ask calls step for call, bounded by budget, unless the breaker is open.
func (c *core) ask(
	ctx context.Context, call *request, step func(context.Context, *request) error, budget time.Duration,
) error {
	b := c.fallback.breaker
	entry, err := b.enter()
	if err != nil {
		return &UnavailableError{
			Resource: call.chains[0].spec.Resource, Err: fmt.Errorf("%w; last: %w", ErrBreakerOpen, b.last.Load().Err),
		}
	}
	outcome := errNeutral // if the store panics
	defer func() {
		b.leave(entry, outcome)
		if b.open.Load() != b.reported.Load() {
			c.reportBreaker(ctx)
		}
	}()
	call.Deadline = deadline(c.env.Clock, call.Called, budget)
	err = step(ctx, call)
	outcome = outcomeOf(ctx, call, err)
	if down, ok := errors.AsType[*UnavailableError](outcome); ok {
		b.last.Store(down)
	}
	return err
}

// outcomeOf returns what err, the result of call, shows about the store: a failure, an answer (nil), or
// neither (errNeutral). These errors show neither:
//   - Throttling: it concerns single buckets, and must not block the others.
//   - The caller left before the store answered. If its deadline passed during a second attempt, that is a
//     failure: the first attempt got no answer.
//   - store.ErrNotSent: nothing was sent.
//   - The call only looked up parents, which may have come from memory.
func outcomeOf(ctx context.Context, call *request, err error) error {
	down, ok := outage(err)
	late := errors.Is(ctx.Err(), context.DeadlineExceeded)
	switch {
	case errors.Is(err, store.ErrNotSent):
		return errNeutral
	case ok && !down.Throttled && (ctx.Err() == nil || late && down.Attempts > 1):
		return down
	case ok, !call.asked, ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return errNeutral
	}
	return nil
}

// unreported reports whether the breaker is open, and whether that has changed since the last report. If so,
// the caller has to report it. A breaker that opened and closed again in between has not changed.
func (b *breaker) unreported() (open, changed bool) {
	open = b.open.Load()
	return open, b.reported.CompareAndSwap(!open, open)
}

// reportBreaker calls the observer and the log if the breaker has opened or closed, and again if it does so
// meanwhile.
func (c *core) reportBreaker(ctx context.Context) {
	b := c.fallback.breaker
	for open, changed := b.unreported(); changed; open, changed = b.unreported() {
		level, what := slog.LevelInfo, "sluice: circuit breaker closed: the store answers again"
		var attrs []slog.Attr
		var err error
		if open {
			err = b.last.Load()
			level = slog.LevelWarn
			what = "sluice: circuit breaker opened: the store is asked once a second, by one call"
			attrs = append(attrs, slog.Any("error", err))
		}
		if c.env.Observer.Breaker != nil {
			c.env.Observer.Breaker(open, err)
		}
		c.env.Logger.LogAttrs(ctx, level, what, attrs...)
	}
}
