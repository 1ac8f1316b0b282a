package wire

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/smithy-go/middleware"

	"github.com/sluice-go/sluice/runtime/store"
)

// Retrier repeats calls that had no answer. It is for calls that are safe to repeat, so not for those that
// charge: the engine repeats these by rules of its own. It is safe for concurrent use.
type Retrier struct {
	Table    string
	Attempts int
	Budget   *Budget                              // nil for an operator's calls, which are too few to need one
	After    func(time.Duration) <-chan time.Time // the clock's
	Jitter   func() float64                       // in [0, 1)
}

// OperatorAttempts is how often a call is tried that a person waits for. That takes up to five seconds, in
// which DynamoDB adds capacity for what it throttles.
const OperatorAttempts = 10

// NewRetrier returns a retrier for calls outside a session, which have no clock but the system's.
func NewRetrier(table string) Retrier {
	after := time.After //nolint:forbidigo // no Env, no Clock
	return Retrier{Table: table, Attempts: OperatorAttempts, After: after, Jitter: rand.Float64}
}

// Do calls do until it has an answer, within ctx. It returns nil, or one of:
//   - DynamoDB's error for a condition that failed, which is an answer;
//   - a *store.SetupError if somebody has to fix something;
//   - ctx's error if ctx was cancelled;
//   - a *store.UnavailableError otherwise.
func (r *Retrier) Do(ctx context.Context, do func() error) error {
	var cause error // of the last attempt that failed for another reason than ctx
	for attempt := 1; ; attempt++ {
		err := do()
		o, _ := Classify(err)
		if err == nil || o == Refused {
			if r.Budget != nil {
				r.Budget.Answered(Applied)
			}
			return err
		}
		err = CallError(r.Table, err)
		unavailable, ok := errors.AsType[*store.UnavailableError](err)
		if !ok {
			return err
		}
		unavailable.Attempts, unavailable.Throttled = attempt, o == Throttled
		if ctx.Err() == nil {
			cause = unavailable.Err
			if attempt == r.Attempts || r.Budget != nil && !r.Budget.Take(ctx) {
				return unavailable
			}
		}
		if !r.Pause(ctx, attempt) {
			return r.ended(ctx, unavailable, cause)
		}
	}
}

// Pause sleeps before the next attempt, with full jitter: up to 32 ms after the first one, and up to 1 s in
// the end. It reports whether ctx lasted.
func (r *Retrier) Pause(ctx context.Context, attempt int) bool {
	most := float64(Backoff(32*time.Millisecond, attempt))
	select {
	case <-r.After(time.Duration(r.Jitter() * most)):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// ended returns the error for a context that is over: a cancellation as it is, and a deadline with what kept
// the call from getting an answer in time.
func (r *Retrier) ended(ctx context.Context, last *store.UnavailableError, cause error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("sluice: table %s: %w", r.Table, context.Canceled)
	}
	last.Err = context.DeadlineExceeded
	if cause != nil {
		last.Err = fmt.Errorf("%w, after %w", context.DeadlineExceeded, cause)
	}
	return last
}

// Backoff returns the longest sleep after so many attempts: first, doubled with each attempt up to 32 times
// first. Callers apply full jitter.
func Backoff(first time.Duration, attempts int) time.Duration {
	return first << max(0, min(attempts-1, 5))
}

// Budget keeps retries from multiplying the load of an outage. A retry after a failure takes RetryCost; a
// call that DynamoDB applies, or refuses by its condition, gives one token back. Once the budget is spent, at
// most one call in five is a retry. Retries after lost races take nothing, since a lost race is an answer. It
// is safe for concurrent use.
type Budget struct{ tokens *ratelimit.TokenRateLimit }

// The budget of a session: a hundred retries at once.
const (
	BudgetTokens = 500
	RetryCost    = 5
)

// NewBudget returns a full budget.
func NewBudget(tokens uint) *Budget {
	return &Budget{ratelimit.NewTokenRateLimit(tokens)}
}

// Take takes the cost of one retry. It reports whether the budget had it.
func (b *Budget) Take(ctx context.Context) bool {
	_, err := b.tokens.GetToken(ctx, RetryCost)
	return err == nil
}

// Answered gives one token back if o is an answer.
func (b *Budget) Answered(o Outcome) {
	if o == Applied || o == Refused {
		_ = b.tokens.AddTokens(1) // never fails
	}
}

// tolerated is how far a host's clock may be off (docs/design.md, "Arithmetic").
const tolerated = time.Second

// SkewWatch reports this host's clock to the observer if it is off, at most once a minute. It is safe for
// concurrent use.
type SkewWatch struct{ next atomic.Int64 }

// Watch compares the service's Date in a reply with the time at which the call began, and with now.
func (w *SkewWatch) Watch(env *store.Env, began time.Time, metadata middleware.Metadata) {
	if env.Observer.Skew == nil {
		return
	}
	now := env.Clock.Now()
	ahead := Skew(began, now, metadata)
	if ahead == 0 {
		return
	}
	next := w.next.Load()
	if now.UnixMilli() >= next && w.next.CompareAndSwap(next, now.Add(time.Minute).UnixMilli()) {
		env.Observer.Skew(ahead)
	}
}

// Skew returns by how much, at least, this host's clock is ahead of the service's; it is negative for a clock
// behind. It is 0 if the difference is tolerated or not known. The Date has whole seconds, and was made
// between began and ended.
func Skew(began, ended time.Time, metadata middleware.Metadata) time.Duration {
	date, ok := awsmiddleware.GetServerTime(metadata)
	if !ok {
		return 0
	}
	if ahead := began.Sub(date.Add(time.Second)); ahead > tolerated {
		return ahead
	}
	if behind := date.Sub(ended); behind > tolerated {
		return -behind
	}
	return 0
}
