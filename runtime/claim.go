package runtime

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Claim is one part of AcquireAll, made by Resource.Claim. It is admitted once and belongs to one goroutine.
type Claim[C any] struct {
	claim
	lease *Lease[C]
}

// claim is the untyped part.
type claim struct {
	resource *resource // nil if Resource.Claim did not make it
	defaults callOptions
	call     func() (*Call, error)
	end      func(ctx context.Context, by settler, err error) // of what call has made
	admitted bool
}

// Lease returns the lease once AcquireAll has succeeded, else nil. It settles and releases this claim's part alone.
func (c *Claim[C]) Lease() *Lease[C] { return c.lease }

func (c *Claim[C]) untyped() *claim {
	if c == nil {
		return nil
	}
	return &c.claim
}

// AnyClaim is a *Claim of any cost type.
type AnyClaim interface{ untyped() *claim }

// Claim prepares one part of AcquireAll, under r's options: what Acquire would take. It checks nothing yet.
func (r *Resource[E, C]) Claim(entity E, cost C) *Claim[C] {
	c := &Claim[C]{claim: claim{resource: r.resource, defaults: r.defaults}}
	var a *acquisition[C] // of the newest AcquireAll
	c.call = func() (call *Call, err error) {
		a, err = r.call(r.core.env.Clock.Now(), entity, cost)
		return &a.call, err
	}
	c.end = func(ctx context.Context, by settler, err error) {
		c.lease, _ = r.lease(ctx, OperationAcquire, a, by, &r.defaults, err)
	}
	return c
}

// AcquireAll takes all claims or none: several in one transaction, whatever the cascades, and parts that meet in one bucket
// added up. It is bounded by the shortest Budget of the claims' resources. Where the store cannot answer, their strictest policy
// decides for all: Deny, then Local, then Allow.
//
// It fails as Acquire does, and with an *InvalidError for a claim that is nil, was admitted before or is there twice. Then
// nothing is charged, as with Acquire, and the claims may be used again. A *DeniedError names the refusals of all claims.
func (l *Limiter) AcquireAll(ctx context.Context, claims ...AnyClaim) error {
	all, err := l.claims(claims)
	if err != nil {
		return err
	}
	whole := &Call{Called: l.core.env.Clock.Now()}
	own := make([]*Call, len(all))
	o := all[0].defaults
	o.policy = Allow
	for i, c := range all {
		call, bad := c.call()
		if bad == nil {
			bad = c.resource.ready(ctx, call, &c.defaults)
		}
		if err == nil {
			err = bad
		}
		own[i], whole.Parts = call, append(whole.Parts, call.Parts[0])
		o.budget = min(o.budget, c.defaults.budget)
		o.policy = o.policy.stricter(cmp.Or(c.defaults.policy, c.resource.spec.OnUnavailable))
	}
	var by settler
	if err == nil {
		by, err = all[0].resource.admit(ctx, whole, l.core.charge, &o)
	}
	for i, c := range all {
		own[i].Parts[0], own[i].outage = whole.Parts[i], whole.outage
		c.end(ctx, by, err)
		c.admitted = err == nil
	}
	return err
}

// claims returns the untyped parts of claims, or says why they cannot be acquired together.
func (l *Limiter) claims(claims []AnyClaim) ([]*claim, error) {
	if len(claims) == 0 {
		return nil, &InvalidError{Field: "claims", Reason: "are missing: AcquireAll takes at least one"}
	}
	all := make([]*claim, len(claims))
	for i, c := range claims {
		which := fmt.Sprint("claim ", i+1)
		if c != nil {
			all[i] = c.untyped()
		}
		switch one := all[i]; {
		case one == nil:
			return nil, &InvalidError{Field: which, Reason: "is nil"}
		case one.resource == nil:
			return nil, &InvalidError{Field: which, Reason: "is empty: make it with the resource's Claim"}
		case one.resource.core != l.core:
			return nil, &InvalidError{one.resource.spec.Resource, which, "", "is of another Limiter: acquire it there"}
		case one.admitted:
			return nil, &InvalidError{one.resource.spec.Resource, which, "", "has been admitted before: make a new one for each AcquireAll"}
		case slices.Contains(all[:i], one):
			return nil, &InvalidError{one.resource.spec.Resource, which, "", "is there twice: make one for each part"}
		}
	}
	return all, nil
}
