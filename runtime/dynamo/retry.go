package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"

	"github.com/sluice-go/sluice/runtime"
)

// retryBudget keeps retries from multiplying the load of an outage: each one after a failure takes retryCost, each call
// that DynamoDB carries out, or refuses by its condition, gives one back. When it is spent, at most one call in five is a
// retry. Lost races do not count: they are answers.
type retryBudget struct{ tokens *ratelimit.TokenRateLimit }

const (
	retryTokens = 500 // a hundred retries at once
	retryCost   = 5
)

func newRetryBudget() *retryBudget {
	return &retryBudget{ratelimit.NewTokenRateLimit(retryTokens)}
}

// take reports whether there may be another retry.
func (b *retryBudget) take(ctx context.Context) bool {
	_, err := b.tokens.GetToken(ctx, retryCost)
	return err == nil
}

// answered gives back for a call that ended with o, if that is an answer.
func (b *retryBudget) answered(o outcome) {
	if o == applied || o == refused {
		_ = b.tokens.AddTokens(1) // never fails
	}
}

// again waits for the next try, or returns why there is none, failed being what the last one met.
func (c *charge) again(ctx context.Context, failed error) error {
	if ctx.Err() != nil {
		return c.ended(ctx, failed)
	}
	if !c.settling() && c.tries >= c.budget {
		return failed
	}
	most := longest(firstPause, c.tries)
	if _, outage := errors.AsType[*runtime.UnavailableError](failed); outage && !errors.Is(failed, errContended) && !c.retries.take(ctx) {
		if !c.settling() {
			return failed
		}
		most = time.Second // it has until its time-out, and nowhere else to go
	}
	select {
	case <-c.env.Clock.After(time.Duration(c.jitter() * float64(most))):
		return nil
	case <-ctx.Done():
		return c.ended(ctx, failed)
	}
}

// firstPause is the longest sleep after a charge's first try; the last ones are up to 256 ms. Shorter pauses lose more races,
// each at a write unit: in the simulation's overload, 64 writers at 13 times the limit, 4.4 writes per admitted acquire with
// 2 ms and 2.7 with 8; longer ones would keep an uncontended bucket's second try waiting.
const firstPause = 8 * time.Millisecond

// longest is how long the sleep before the next try may be: first, doubled with each try up to 32 times. The jitter is full.
func longest(first time.Duration, tries int) time.Duration {
	return first << max(0, min(tries-1, 5))
}

// attempt bounds one try by half of the time that is left, so that a request which nobody answers leaves time for another.
func (c *charge) attempt(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, max(left(deadline)/2, shortestAttempt))
}

// shortestAttempt is far above what DynamoDB takes for one item.
const shortestAttempt = 100 * time.Millisecond

// ended returns what to tell a caller whose context is over, err being what the last try met: its own cancellation as it
// is, and a deadline as what kept the charge from being done in time.
func (c *charge) ended(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("sluice: %s for %s: %w", c.legs[0].spec.Resource, c.legs[0].entity, ctx.Err())
	}
	if u, ok := errors.AsType[*runtime.UnavailableError](err); ok && !errors.Is(u.Err, context.DeadlineExceeded) {
		u.Err = errors.Join(context.DeadlineExceeded, u.Err)
	}
	return err
}
