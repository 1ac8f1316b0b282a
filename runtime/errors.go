package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/runtime/store"
)

// ErrSettled is returned by Settle and More if the lease was settled, kept or released before.
var ErrSettled = errors.New("sluice: the lease was settled, kept or released before")

// ErrBreakerOpen is in an *UnavailableError's chain if the store was not asked. It answered nothing during
// the last calls, so only a few probes find out whether it answers again.
var ErrBreakerOpen = errors.New("circuit breaker is open")

// ErrMaxWait is in the error of a Wait whose MaxWait ended before anything was known of the tokens, beside
// context.DeadlineExceeded. It waited behind others that had no answer yet either, or every attempt was
// contended. Nothing was charged.
var ErrMaxWait = errors.New("MaxWait is over")

// maxWaitError is ErrMaxWait for a call.
type maxWaitError struct {
	resource, entity string
	maxWait          time.Duration
}

// Error names resource, entity and the MaxWait.
func (e *maxWaitError) Error() string {
	return fmt.Sprintf("sluice: %s for %s: MaxWait(%v) is over: %v",
		e.resource, store.Quote(e.entity), e.maxWait, context.DeadlineExceeded)
}

// Unwrap returns ErrMaxWait and context.DeadlineExceeded.
func (*maxWaitError) Unwrap() []error { return []error{ErrMaxWait, context.DeadlineExceeded} }

// QueueFullError says that a Wait did not begin: as many calls as WithMaxWaiters allows wait for the entity
// already. Nothing was charged. Unlike a *DeniedError it has no RetryAfter, since that is not known.
type QueueFullError struct {
	Resource, Entity string
	MaxWaiters       int
}

// Error names resource, entity, the bound and the cure.
func (e *QueueFullError) Error() string {
	return fmt.Sprintf("sluice: %s for %s: %d calls wait already, as many as WithMaxWaiters allows: "+
		"turn the call away, or raise WithMaxWaiters", e.Resource, store.Quote(e.Entity), e.MaxWaiters)
}
