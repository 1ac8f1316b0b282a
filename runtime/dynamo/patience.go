package dynamo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sluice-go/sluice/runtime"
)

// patience makes calls again that had no answer: all but those that charge, which have rules of their own. Whoever uses it
// says so that repeating is safe. It is safe for concurrent use.
type patience struct {
	table  string
	tries  int
	budget *retryBudget // nil where calls are too few to need one: an operator's
	after  func(time.Duration) <-chan time.Time
	jitter func() float64 // in [0, 1)
}

// operatorTries is how often a call is tried that a person waits for: up to five seconds, in which DynamoDB makes room
// for what it throttles.
const operatorTries = 10

// newPatience is for calls outside a session, which have no clock but the system's.
func newPatience(table string) patience {
	return patience{table: table, tries: operatorTries, after: time.After, jitter: rand.Float64} //nolint:forbidigo // no Env, no Clock
}

// patience is for calls within the session.
func (s *session) patience(tries int) patience {
	return patience{table: s.table, tries: tries, after: s.env.Clock.After, jitter: s.jitter}
}

// call does it until it was answered, within ctx. A refused condition is an answer, and returned as DynamoDB has it; any
// other error is a *runtime.SetupError, a *runtime.UnavailableError, or ctx's where that was cancelled.
func (p *patience) call(ctx context.Context, do func() error) error {
	var cause error // of the last try that failed for another reason than ctx
	for try := 1; ; try++ {
		err := do()
		o, _ := classify(err)
		if err == nil || o == refused {
			if p.budget != nil {
				p.budget.answered(applied)
			}
			return err
		}
		err = checkError(p.table, err)
		unavailable, ok := errors.AsType[*runtime.UnavailableError](err)
		if !ok {
			return err
		}
		unavailable.Attempts, unavailable.Throttled = try, o == throttled
		if ctx.Err() == nil {
			cause = unavailable.Err
			if try == p.tries || p.budget != nil && !p.budget.take(ctx) {
				return unavailable
			}
		}
		if !p.pause(ctx, try) {
			return p.ended(ctx, unavailable, cause)
		}
	}
}

// pause sleeps before the next try, with full jitter: up to 32 ms after the first and 1 s in the end. It reports whether
// ctx lasted.
func (p *patience) pause(ctx context.Context, try int) bool {
	most := float64(longest(32*time.Millisecond, try))
	select {
	case <-p.after(time.Duration(p.jitter() * most)):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// ended returns what to tell a caller whose context is over: its own cancellation as it is, and a deadline with what kept
// the call from being answered in time.
func (p *patience) ended(ctx context.Context, last *runtime.UnavailableError, cause error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("sluice: table %s: %w", p.table, context.Canceled)
	}
	last.Err = context.DeadlineExceeded
	if cause != nil {
		last.Err = fmt.Errorf("%w, after %w", context.DeadlineExceeded, cause)
	}
	return last
}
