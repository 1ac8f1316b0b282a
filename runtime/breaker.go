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

// breaker keeps an outage from adding a time-out to every call: after some failures in a row it refuses calls at once, and
// lets one through now and then to see whether the store answers again. It goes by the system's clock, as deadlines do.
type breaker struct {
	gate *gobreaker.TwoStepCircuitBreaker[struct{}]
	last atomic.Pointer[UnavailableError] // the newest failure
	open atomic.Bool                      // by its gate
	told atomic.Bool                      // open, as the observer and the log were told last

	// calm lets all calls through without asking the gate, while that is closed and has seen no failure since the last
	// answer: an answer changes nothing then. It is nil otherwise, and there is a new one each time.
	calm atomic.Pointer[pass]
	mu   sync.Mutex // held by who tells the gate how a call has ended, which nobody does otherwise
}

// pass is the gate's leave to ask the store, and how to tell it what came of that. Calm calls share one: told by several, the
// gate counts each.
type pass struct{ done func(error) }

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
				b.open.Store(true)
			case to == gobreaker.StateClosed:
				b.open.Store(false)
			}
		},
	})
	b.calmDown()
	return b
}

// enter lets a call through, or says why not.
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

// leave takes note of what the call that p let through says of the store: a failure, an answer (nil), or errNeutral.
func (b *breaker) leave(p *pass, says error) {
	neutral := errors.Is(says, errNeutral)
	if (says == nil || neutral) && b.calm.Load() == p {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if says != nil && !neutral {
		b.calm.Store(nil) // ahead of the gate, so that no answer is passed over once this counts
	}
	p.done(says)
	b.calmDown()
}

// calmDown starts to let calls through if the gate has nothing against any. The caller holds mu, or has b for itself.
func (b *breaker) calmDown() {
	if b.calm.Load() != nil || b.gate.State() != gobreaker.StateClosed || b.gate.Counts().ConsecutiveFailures > 0 {
		return
	}
	if done, err := b.gate.Allow(); err == nil { // it is closed, and only who holds mu can open it
		b.calm.Store(&pass{done})
	}
}

// ask has step ask the store for call within budget, unless the breaker is open.
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
	says := errNeutral // of a store that panics
	defer func() {
		b.leave(entry, says)
		if b.open.Load() != b.told.Load() {
			c.tellTurns(ctx)
		}
	}()
	call.Deadline = deadline(c.env.Clock, call.Called, budget)
	err = step(ctx, call)
	says = verdict(ctx, call, err)
	if down, ok := errors.AsType[*UnavailableError](says); ok {
		b.last.Store(down)
	}
	return err
}

// verdict returns what err, with which call has ended, says of the store: a failure, an answer (nil), or nothing
// (errNeutral). Throttling is that of single buckets, which must not shut out the others; a caller that left has not
// waited for the answer, unless its time was up during a second attempt, of which the first had none; of whose turn never came
// nothing was sent; and who only looked up parents may have found them in memory.
func verdict(ctx context.Context, call *request, err error) error {
	down, ok := outage(err)
	switch {
	case errors.Is(err, store.ErrNotSent):
		return errNeutral
	case ok && !down.Throttled && (ctx.Err() == nil || down.Attempts > 1 && errors.Is(ctx.Err(), context.DeadlineExceeded)):
		return down
	case ok, !call.asked, ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return errNeutral
	}
	return nil
}

// turned reports whether the breaker is open, and if nobody has been told so, as its caller is to do. Of a breaker that has turned
// back meanwhile there are no news.
func (b *breaker) turned() (open, news bool) {
	open = b.open.Load()
	return open, b.told.CompareAndSwap(!open, open)
}

// tellTurns tells the observer and the log if the breaker has opened or closed, and if it does so meanwhile.
func (c *core) tellTurns(ctx context.Context) {
	b := c.fallback.breaker
	for open, news := b.turned(); news; open, news = b.turned() {
		level, what, attrs := slog.LevelInfo, "sluice: circuit breaker closed: the store answers again", []slog.Attr(nil)
		var err error
		if open {
			err = b.last.Load()
			level, what = slog.LevelWarn, "sluice: circuit breaker opened: the store is asked once a second, by one call"
			attrs = append(attrs, slog.Any("error", err))
		}
		if c.env.Observer.Breaker != nil {
			c.env.Observer.Breaker(open, err)
		}
		c.env.Logger.LogAttrs(ctx, level, what, attrs...)
	}
}
