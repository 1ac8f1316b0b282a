package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

// breaker keeps an outage from adding a time-out to every call: after some failures in a row it refuses calls at once, and
// lets one through now and then to see whether the store answers again. It goes by the system's clock, as deadlines do.
type breaker struct {
	gate *gobreaker.TwoStepCircuitBreaker[struct{}]
	last atomic.Pointer[UnavailableError] // the newest failure
	turn atomic.Int32                     // what nobody has been told yet
}

// What turn says; the zero value says nothing.
const (
	opened = iota + 1
	closed
)

const (
	breakerFailures = 5           // in a row, to open it
	breakerPause    = time.Second // until it lets the next call through
)

// errNeutral tells the breaker that a call says nothing of the store.
var errNeutral = errors.New("neither a failure nor an answer")

func newBreaker() *breaker {
	b := &breaker{}
	b.gate = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     breakerPause,
		ReadyToTrip: func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= breakerFailures },
		IsExcluded:  func(err error) bool { return errors.Is(err, errNeutral) },
		// It is called under the gate's lock, so observers are told later. A probe that fails is no news.
		OnStateChange: func(_ string, from, to gobreaker.State) {
			switch {
			case from == gobreaker.StateClosed:
				b.turn.Store(opened)
			case to == gobreaker.StateClosed:
				b.turn.Store(closed)
			}
		},
	})
	return b
}

// ask has step ask the store for call within budget, unless the breaker is open.
func (c *core) ask(
	ctx context.Context, call *Call, step func(context.Context, *Call) error, budget time.Duration,
) error {
	b := c.fallback.breaker
	done, err := b.gate.Allow()
	if err != nil {
		return &UnavailableError{
			Resource: call.Parts[0].spec.Resource, Err: fmt.Errorf("%w; last: %w", ErrBreakerOpen, b.last.Load().Err),
		}
	}
	says := errNeutral // of a store that panics
	defer func() {
		done(says)
		c.tellTurn(ctx)
	}()
	bounded, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	err = step(bounded, call)
	says = verdict(ctx, call, err)
	if down, ok := errors.AsType[*UnavailableError](says); ok {
		b.last.Store(down)
	}
	return err
}

// verdict returns what err, with which call has ended, says of the store: a failure, an answer (nil), or nothing
// (errNeutral). Throttling is that of single buckets, which must not shut out the others; a caller that left has not
// waited for the answer, unless its time was up during a second attempt, of which the first had none; and who only looked
// up parents may have found them in memory.
func verdict(ctx context.Context, call *Call, err error) error {
	down, ok := outage(err)
	switch {
	case ok && !down.Throttled && (ctx.Err() == nil || down.Attempts > 1 && errors.Is(ctx.Err(), context.DeadlineExceeded)):
		return down
	case ok, !call.asked, ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return errNeutral
	}
	return nil
}

// tellTurn tells the observer and the log if the breaker has opened or closed.
func (c *core) tellTurn(ctx context.Context) {
	switch b := c.fallback.breaker; b.turn.Swap(0) {
	case opened:
		err := b.last.Load()
		if c.env.Observer.Breaker != nil {
			c.env.Observer.Breaker(true, err)
		}
		c.env.Logger.LogAttrs(ctx, slog.LevelWarn, "sluice: circuit breaker opened: the store is asked once a second, by one call",
			slog.Any("error", err))
	case closed:
		if c.env.Observer.Breaker != nil {
			c.env.Observer.Breaker(false, nil)
		}
		c.env.Logger.LogAttrs(ctx, slog.LevelInfo, "sluice: circuit breaker closed: the store answers again")
	}
}
