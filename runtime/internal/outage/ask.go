package outage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/sluice-go/sluice/runtime/store"
)

// Ask calls step, which asks the store for call, unless the breaker is open. It fails with step's error.
func (f *Fallback) Ask(ctx context.Context, call *Request, step func(context.Context) error) error {
	b := f.Breaker
	pass, ok := b.Enter()
	if !ok {
		last := b.Cause()
		if down, ok := Of(last); ok {
			last = down.Err
		}
		return &store.UnavailableError{Resource: call.resource(), Err: fmt.Errorf("%w; last: %w", f.open, last)}
	}
	var answered bool // neither answered nor failed if the store panics
	var failure error
	defer func() {
		b.Leave(pass, answered, failure)
		if b.IsOpen() != f.reported.Load() {
			f.report(ctx)
		}
	}()
	err := step(ctx)
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
func judge(ctx context.Context, call *Request, err error) (answered bool, failure error) {
	down, ok := Of(err)
	switch {
	case !ok:
		_, setup := errors.AsType[*store.SetupError](err)
		return call.Asked && (setup || Decided(err)), nil
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
func (f *Fallback) unreported() (open, changed bool) {
	open = f.Breaker.IsOpen()
	return open, f.reported.CompareAndSwap(!open, open)
}

// report calls the observer and the log if the breaker has opened or closed, and again if it does so
// meanwhile.
func (f *Fallback) report(ctx context.Context) {
	for open, changed := f.unreported(); changed; open, changed = f.unreported() {
		level, what := slog.LevelInfo, "sluice: circuit breaker closed: the store answers again"
		var attrs []slog.Attr
		var err error
		if open {
			err = f.Breaker.Cause()
			level = slog.LevelWarn
			what = "sluice: circuit breaker opened: a second after each failure, up to four calls probe the store"
			attrs = append(attrs, slog.Any("error", err))
		}
		if f.env.Observer.Breaker != nil {
			f.env.Observer.Breaker(open, err)
		}
		f.env.Logger.LogAttrs(ctx, level, what, attrs...)
	}
}
