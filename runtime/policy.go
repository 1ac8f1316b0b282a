package runtime

import (
	"context"
	"errors"
	"time"
)

// Policy says what becomes of an acquire when the store cannot answer: when it timed out, refused the connection or failed
// with a 5xx. It applies to nothing else. A bucket that is throttled is never simply admitted: Allow is Local then.
type Policy uint8

// Policies. The zero value leaves it to the next less specific place, in the end to limits.yaml.
const (
	Allow Policy = iota + 1 // admit: Lease.Degraded
	Deny                    // fail with the *UnavailableError
	Local                   // decide by a bucket in this process, started from the last image: Lease.Degraded if it admits
)

// settler closes what an admit has opened: the store, or whoever stood in for it.
type settler interface {
	Settle(ctx context.Context, call *Call) error
}

// admit charges call within budget. Where the store cannot answer, policy decides: then who settles is not the store, and
// the lease is degraded.
func (c *core) admit(ctx context.Context, call *Call, budget time.Duration, _ Policy) (settler, error) {
	bounded, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	err := c.session.Acquire(bounded, call)
	if _, ok := errors.AsType[*UnavailableError](err); ok && ctx.Err() != nil {
		return nil, ctx.Err() // it is the caller's bound that was met, not the store's
	}
	return c.session, err
}
