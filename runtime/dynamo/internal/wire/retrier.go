package wire

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sluice-go/sluice/runtime/store"
)

// Retrier makes calls again that had no answer: all but those that charge, which have rules of their own. Whoever uses it
// says so that repeating is safe. It is safe for concurrent use.
type Retrier struct {
	Table    string
	Attempts int
	Budget   *Budget // nil where calls are too few to need one: an operator's
	After    func(time.Duration) <-chan time.Time
	Jitter   func() float64 // in [0, 1)
}

// OperatorAttempts is how often a call is tried that a person waits for: up to five seconds, in which DynamoDB makes room
// for what it throttles.
const OperatorAttempts = 10

// NewRetrier is for calls outside a session, which have no clock but the system's.
func NewRetrier(table string) Retrier {
	return Retrier{Table: table, Attempts: OperatorAttempts, After: time.After, Jitter: rand.Float64} //nolint:forbidigo // no Env, no Clock
}

// Do does it until it was answered, within ctx. A refused condition is an answer, and returned as DynamoDB has it; any
// other error is a *store.SetupError, a *store.UnavailableError, or ctx's where that was cancelled.
func (p *Retrier) Do(ctx context.Context, do func() error) error {
	var cause error // of the last try that failed for another reason than ctx
	for try := 1; ; try++ {
		err := do()
		o, _ := Classify(err)
		if err == nil || o == Refused {
			if p.Budget != nil {
				p.Budget.Answered(Applied)
			}
			return err
		}
		err = CallError(p.Table, err)
		unavailable, ok := errors.AsType[*store.UnavailableError](err)
		if !ok {
			return err
		}
		unavailable.Attempts, unavailable.Throttled = try, o == Throttled
		if ctx.Err() == nil {
			cause = unavailable.Err
			if try == p.Attempts || p.Budget != nil && !p.Budget.Take(ctx) {
				return unavailable
			}
		}
		if !p.Pause(ctx, try) {
			return p.ended(ctx, unavailable, cause)
		}
	}
}

// Pause sleeps before the next try, with full jitter: up to 32 ms after the first and 1 s in the end. It reports whether
// ctx lasted.
func (p *Retrier) Pause(ctx context.Context, try int) bool {
	most := float64(Backoff(32*time.Millisecond, try))
	select {
	case <-p.After(time.Duration(p.Jitter() * most)):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// ended returns what to tell a caller whose context is over: its own cancellation as it is, and a deadline with what kept
// the call from being answered in time.
func (p *Retrier) ended(ctx context.Context, last *store.UnavailableError, cause error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("sluice: table %s: %w", p.Table, context.Canceled)
	}
	last.Err = context.DeadlineExceeded
	if cause != nil {
		last.Err = fmt.Errorf("%w, after %w", context.DeadlineExceeded, cause)
	}
	return last
}

// Backoff is how long the sleep before the next try may be: first, doubled with each try up to 32 times. The jitter is full.
func Backoff(first time.Duration, tries int) time.Duration {
	return first << max(0, min(tries-1, 5))
}
