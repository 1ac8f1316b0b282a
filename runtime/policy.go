package runtime

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/runtime/internal/breaker"
	"github.com/sluice-go/sluice/runtime/internal/local"
	"github.com/sluice-go/sluice/runtime/store"
)

// stricter returns the one of p and q that admits less.
func stricter(p, q Policy) Policy {
	for _, strict := range []Policy{Deny, Local} {
		if p == strict || q == strict {
			return strict
		}
	}
	return Allow
}

// settler closes what an admit has opened. It is the store, or what replaced it.
type settler interface {
	Settle(ctx context.Context, call *store.Call) error
}

// unrecorded is the settler of a call that took nothing while the store did not answer: Allow or shadow mode
// admitted it.
type unrecorded struct{}

func (unrecorded) Settle(context.Context, *store.Call) error { return nil }

// degraded reports that by stands in for the store.
func degraded(by settler) bool {
	switch by.(type) {
	case unrecorded, *local.Held:
		return true
	}
	return false
}

// fallback is what a Limiter needs for a store that does not answer.
type fallback struct {
	breaker  *breaker.Breaker
	reported atomic.Bool // whether the breaker is open, as the observer and the log have it
	locals   *local.Buckets
	warnings breaker.Warnings
}

func newFallback(clock Clock) *fallback {
	return &fallback{breaker: breaker.New(stopwatch()), locals: local.New(clock)}
}

// absent reports that a call that failed with down failed because nothing answers. It did not if the store
// throttles, or if this process was too busy to send it. Otherwise a flood would switch a limit off, since
// Allow admits what it cannot record.
func (f *fallback) absent(down *UnavailableError) bool {
	return !down.Throttled && !errors.Is(down, store.ErrNotSent) && f.breaker.Silent()
}

// admit calls step for call, within budget: core.acquire or core.resolve. If the store cannot answer, policy
// decides on the whole call, whichever step failed; if policy is 0, the resource's policy does. Then the
// settler is not the store, call.outage says why, and the lease is degraded. A call whose look-ups failed has
// the part of its chain that is known. A call of several resources comes with a policy.
func (c *core) admit(
	ctx context.Context, call *request, step func(context.Context, *request) error,
	budget time.Duration, policy Policy,
) (settler, error) {
	call.asked, call.outage = false, nil
	err := c.ask(ctx, call, step, budget)
	down, ok := outage(err)
	switch {
	case !ok:
		if call.asked && decided(err) {
			c.fallback.locals.Answered(&call.Call)
		}
		return c.session, err
	case ctx.Err() != nil:
		return nil, ctx.Err() // the caller's bound ended, not the budget
	}
	if !call.asked {
		c.session.Lookup(&call.Call)
	}
	policy = cmp.Or(policy, call.chains[0].spec.OnUnavailable, Allow)
	if policy == Allow && !c.fallback.absent(down) {
		policy = Local
	}
	switch policy {
	case Allow:
		call.outage = err
		c.warn(ctx, call, policy)
		return unrecorded{}, nil
	case Local:
		call.outage = err
		by, err := c.fallback.locals.Acquire(&call.Call)
		if err != nil {
			return nil, err
		}
		c.warn(ctx, call, policy)
		return by, nil
	}
	return nil, err
}

// outage returns the *UnavailableError in err. It returns none if err is also a *SetupError: then the
// installation is the cause.
func outage(err error) (*UnavailableError, bool) {
	if _, ok := errors.AsType[*SetupError](err); ok {
		return nil, false
	}
	return errors.AsType[*UnavailableError](err)
}

// decided reports whether the store looked at a call's buckets before it returned err.
func decided(err error) bool {
	if err == nil {
		return true
	}
	if _, ok := errors.AsType[*DeniedError](err); ok {
		return true
	}
	_, ok := errors.AsType[*ContendedError](err)
	return ok
}

// warn logs that policy admitted call, of which the store has no record.
func (c *core) warn(ctx context.Context, call *request, policy Policy) {
	admitted, ok := c.fallback.warnings.Due(c.env.Clock.Now())
	if !ok {
		return
	}
	part := &call.Parts[0]
	c.env.Logger.LogAttrs(ctx, slog.LevelWarn,
		"sluice: calls are admitted that the store has no record of",
		slog.String("resource", call.chains[0].spec.Resource),
		slog.String("entity", store.Quote(part.Buckets[0].Entity)),
		slog.String("policy", policy.String()), slog.Int("admitted", admitted), slog.Any("error", call.outage))
}
