package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluice-go/sluice/runtime/store"
)

// ask calls step for call, bounded by budget, unless the breaker is open.
func (c *core) ask(
	ctx context.Context, call *request, step func(context.Context, *request) error, budget time.Duration,
) error {
	b := c.fallback.breaker
	pass, ok := b.Enter()
	if !ok {
		last := b.Cause()
		if down, ok := outage(last); ok {
			last = down.Err
		}
		return &UnavailableError{
			Resource: call.chains[0].spec.Resource, Err: fmt.Errorf("%w; last: %w", ErrBreakerOpen, last),
		}
	}
	var answered bool // neither answered nor failed if the store panics
	var failure error
	defer func() {
		b.Leave(pass, answered, failure)
		if b.IsOpen() != c.fallback.reported.Load() {
			c.reportBreaker(ctx)
		}
	}()
	call.Deadline = deadline(c.env.Clock, call.Called, budget)
	err := step(ctx, call)
	answered, failure = judge(ctx, call, err)
	return err
}

// judge returns what err, the result of call, shows about the store: an answer, a failure, or neither. These
// show neither:
//   - The caller left before the store answered. If its deadline passed during a second attempt, that is a
//     failure: the first attempt got no answer.
//   - store.ErrNotSent: nothing was sent, since this process was busy.
//   - The call only looked up parents, which may have come from memory.
//   - Errors that need no reply, such as a cost above a burst that is remembered.
func judge(ctx context.Context, call *request, err error) (answered bool, failure error) {
	down, ok := outage(err)
	switch {
	case !ok:
		_, setup := errors.AsType[*SetupError](err)
		return call.asked && (setup || decided(err)), nil
	case down.Throttled:
		return true, nil
	case errors.Is(err, store.ErrNotSent):
		return false, nil
	case ctx.Err() == nil, errors.Is(ctx.Err(), context.DeadlineExceeded) && down.Attempts > 1:
		return false, down
	}
	return false, nil
}

// unreported reports whether the breaker is open, and whether that has changed since the last report. If so,
// the caller has to report it. A breaker that opened and closed again in between has not changed.
func (f *fallback) unreported() (open, changed bool) {
	open = f.breaker.IsOpen()
	return open, f.reported.CompareAndSwap(!open, open)
}

// reportBreaker calls the observer and the log if the breaker has opened or closed, and again if it does so
// meanwhile.
func (c *core) reportBreaker(ctx context.Context) {
	f := c.fallback
	for open, changed := f.unreported(); changed; open, changed = f.unreported() {
		level, what := slog.LevelInfo, "sluice: circuit breaker closed: the store answers again"
		var attrs []slog.Attr
		var err error
		if open {
			err = f.breaker.Cause()
			level = slog.LevelWarn
			what = "sluice: circuit breaker opened: a second after each failure, up to four calls probe the store"
			attrs = append(attrs, slog.Any("error", err))
		}
		if c.env.Observer.Breaker != nil {
			c.env.Observer.Breaker(open, err)
		}
		c.env.Logger.LogAttrs(ctx, level, what, attrs...)
	}
}
