// Package outage decides on calls that the store does not answer, by their failure policy. It keeps calls
// from waiting for a store that is down (docs/design.md, "Breaker and failure policy").
package outage

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/sluice-go/sluice/runtime/internal/breaker"
	"github.com/sluice-go/sluice/runtime/internal/local"
	"github.com/sluice-go/sluice/runtime/store"
)

// Request is one call to the store, with notes of how the store took it.
type Request struct {
	store.Call

	Asked  bool  // the store was asked to charge it, not only for parents; the step sets it
	Outage error // why the failure policy decided on it; nil where it did not
}

// resource returns the name of the first part's resource.
func (r *Request) resource() string { return r.Parts[0].Def.Spec().Resource }

// Settler closes what Admit has opened. It is the store, or what replaced it.
type Settler interface {
	Settle(ctx context.Context, call *store.Call) error
}

// Unrecorded is the Settler of a call that took nothing while the store did not answer: Allow or shadow mode
// admitted it.
type Unrecorded struct{}

// Settle does nothing.
func (Unrecorded) Settle(context.Context, *store.Call) error { return nil }

// Degraded reports that by stands in for the store.
func Degraded(by Settler) bool {
	switch by.(type) {
	case Unrecorded, *local.Held:
		return true
	}
	return false
}

// Stricter returns the one of p and q that admits less.
func Stricter(p, q store.Policy) store.Policy {
	for _, strict := range []store.Policy{store.Deny, store.Local} {
		if p == strict || q == strict {
			return strict
		}
	}
	return store.Allow
}

// Fallback is what a Limiter needs for a store that does not answer. It is safe for concurrent use.
type Fallback struct {
	Breaker *breaker.Breaker
	Locals  *local.Buckets

	env      *store.Env
	open     error
	reported atomic.Bool // whether the breaker is open, as the observer and the log have it
	warnings breaker.Warnings
}

// New returns a Fallback whose breaker is b. While b is open, calls fail with a *store.UnavailableError that
// has open in its chain.
func New(env *store.Env, b *breaker.Breaker, open error) *Fallback {
	return &Fallback{Breaker: b, Locals: local.New(env.Clock), env: env, open: open}
}

// absent reports that a call that failed with down failed because nothing answers. It did not if the store
// throttles, or if this process was too busy to send it. Otherwise a flood would switch a limit off, since
// Allow admits what it cannot record.
func (f *Fallback) absent(down *store.UnavailableError) bool {
	return !down.Throttled && !errors.Is(down, store.ErrNotSent) && f.Breaker.Silent()
}

// Admit asks session for call by step, as Ask does. If the store cannot answer, policy decides on the whole
// call, whichever part of the step failed; if policy is 0, the resource's policy does. Then the Settler is
// not the store, call.Outage says why, and the lease is degraded. A call whose look-ups failed has the part
// of its chain that is known. A call of several resources comes with a policy.
func (f *Fallback) Admit(
	ctx context.Context, session store.Session, call *Request, step func(context.Context) error,
	policy store.Policy,
) (Settler, error) {
	call.Asked, call.Outage = false, nil
	err := f.Ask(ctx, call, step)
	down, ok := Of(err)
	switch {
	case !ok:
		if call.Asked && Decided(err) {
			f.Locals.Answered(&call.Call)
		}
		return session, err
	case ctx.Err() != nil:
		return nil, ctx.Err() // the caller's bound ended, not the budget
	}
	if !call.Asked {
		session.Lookup(&call.Call)
	}
	policy = cmp.Or(policy, call.Parts[0].Def.Spec().OnUnavailable, store.Allow)
	if policy == store.Allow && !f.absent(down) {
		policy = store.Local
	}
	switch policy {
	case store.Allow:
		call.Outage = err
		f.warn(ctx, call, policy)
		return Unrecorded{}, nil
	case store.Local:
		call.Outage = err
		by, err := f.Locals.Acquire(&call.Call)
		if err != nil {
			return nil, err
		}
		f.warn(ctx, call, policy)
		return by, nil
	}
	return nil, err
}

// warn logs that policy admitted call, of which the store has no record.
func (f *Fallback) warn(ctx context.Context, call *Request, policy store.Policy) {
	admitted, ok := f.warnings.Due(f.env.Clock.Now())
	if !ok {
		return
	}
	f.env.Logger.LogAttrs(ctx, slog.LevelWarn,
		"sluice: calls are admitted that the store has no record of",
		slog.String("resource", call.resource()),
		slog.String("entity", store.Quote(call.Parts[0].Buckets[0].Entity)),
		slog.String("policy", policy.String()), slog.Int("admitted", admitted), slog.Any("error", call.Outage))
}
