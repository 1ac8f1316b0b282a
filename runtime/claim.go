package runtime

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/runtime/internal/outage"
	"github.com/sluice-go/sluice/runtime/store"
)

// Claim is one part of AcquireAll, made by Resource.Claim. It is admitted once and belongs to one goroutine.
type Claim[C any] claim

// claim is an untyped Claim.
type claim struct {
	resource *resource // nil if Resource.Claim did not make it
	entity   Entity
	cost     []int64      // in whole tokens
	made     *acquisition // for the newest AcquireAll
	lease    *lease       // of made, if it was admitted
	admitted bool
}

// Lease returns the lease once AcquireAll has succeeded, else nil. It settles and releases this claim's part
// alone.
func (c *Claim[C]) Lease() *Lease[C] { return (*Lease[C])(c.lease) }

func (c *Claim[C]) untyped() *claim { return (*claim)(c) }

// AnyClaim is a *Claim of any cost type.
type AnyClaim interface{ untyped() *claim }

// Claim prepares one part of AcquireAll, under r's options: what Acquire would take. It checks nothing yet.
func (r *Resource[E, C]) Claim(entity E, cost C) *Claim[C] {
	return &Claim[C]{resource: r.untyped, entity: entity, cost: r.costs.toVector(cost, nil)}
}

// AcquireAll takes all claims or none. Several claims go in one transaction, whatever the cascades; the costs
// of parts that charge the same bucket are added up. The shortest Budget of the claims' resources bounds it.
// If the store cannot answer, the strictest of their policies decides for all: Deny, then Local, then Allow.
//
// Claims in shadow refuse nothing. Beside other claims they are no part of the transaction. Once that has
// succeeded they are acquired one after the other, each within its own Budget. If all claims are in shadow,
// they are acquired together, so that all leases are Shadowed or none.
//
// It fails as Acquire does; a *DeniedError names the refusals of all claims. It also fails with an
// *InvalidError:
//   - without any claim;
//   - for a claim that is nil, was not made by Resource.Claim, or is of another Limiter;
//   - for a claim that was admitted before, or occurs twice.
//
// After a failure nothing is charged, as with Acquire, and the claims may be used again. If a claim in shadow
// fails after the transaction, what the transaction took has been given back.
func (l *Limiter) AcquireAll(ctx context.Context, claims ...AnyClaim) error {
	all, err := l.claims(claims)
	if err != nil {
		return err
	}
	for _, c := range all {
		r := c.resource
		var bad error
		c.made, bad = r.call(r.core.env.Clock.Now(), c.entity, c.cost, r.core.vectors())
		if bad == nil {
			bad = r.ready(ctx, &c.made.call, &r.defaults)
		}
		if err == nil {
			err = bad
		}
	}
	for _, group := range together(all) {
		how := ending{err: err}
		if err == nil {
			how = l.acquire(ctx, group)
			err = how.err
		}
		for _, c := range group {
			r := c.resource
			c.lease, _ = r.lease(ctx, store.OperationAcquire, c.made, &r.defaults, how)
			c.admitted = err == nil
		}
	}
	for _, c := range all {
		if err != nil && c.admitted {
			c.lease.release(ctx)
			c.lease, c.admitted = nil, false
		}
	}
	return err
}

// together returns the groups of claims that are acquired together, in order: first all that can be refused,
// then each in shadow by itself. If all are in shadow, they are one group.
func together(claims []*claim) [][]*claim {
	var enforced []*claim
	var shadows [][]*claim
	for _, c := range claims {
		if c.resource.inShadow(&c.resource.defaults) {
			shadows = append(shadows, []*claim{c})
		} else {
			enforced = append(enforced, c)
		}
	}
	if len(enforced) == 0 {
		return [][]*claim{claims}
	}
	return append([][]*claim{enforced}, shadows...)
}

// acquire takes all of group or none.
func (l *Limiter) acquire(ctx context.Context, group []*claim) ending {
	whole := &request{}
	whole.Called = l.core.env.Clock.Now()
	first, o := group[0].resource, group[0].resource.defaults
	o.policy = Allow
	for _, c := range group {
		call, defaults := &c.made.call, &c.resource.defaults
		whole.Parts, whole.chains = append(whole.Parts, call.Parts[0]), append(whole.chains, call.chains[0])
		o.budget = min(o.budget, defaults.budget)
		o.policy = outage.Stricter(o.policy, cmp.Or(defaults.policy, c.resource.spec.OnUnavailable))
	}
	var by outage.Settler
	err := first.ready(ctx, whole, &o)
	if err == nil {
		by, err = first.admit(ctx, whole, l.core.acquire, &o)
	}
	how := endOf(whole, first.inShadow(&o), by, err)
	for i, c := range group {
		call := &c.made.call
		call.Called, call.Parts[0], call.chains[0] = whole.Called, whole.Parts[i], whole.chains[i]
		call.Outage = whole.Outage
	}
	return how
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
			return nil, &InvalidError{
				Resource: one.resource.spec.Resource, Field: which, Reason: "is of another Limiter: acquire it there",
			}
		case one.admitted:
			return nil, &InvalidError{
				Resource: one.resource.spec.Resource, Field: which,
				Reason: "has been admitted before: make a new one for each AcquireAll",
			}
		case slices.Contains(all[:i], one):
			return nil, &InvalidError{
				Resource: one.resource.spec.Resource, Field: which, Reason: "is there twice: make one for each part",
			}
		}
	}
	return all, nil
}
