package envoy

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
	"github.com/sluice-go/sluice/serve/internal/leases"
	"github.com/sluice-go/sluice/serve/internal/limits"
)

// call is a request of the service.
type call struct {
	*Service

	in    *limits.Limits // in force when the request came; held until it ends
	rules *Rules

	descriptors []*descriptor
	balances    []runtime.Balance // of all buckets
	err         error             // of the acquire
	names       []string          // of leases that a settle may end
	degraded    bool
	shadowed    bool
	after       time.Duration // when to come back, after a failure
}

// descriptor is what one of the request's does.
type descriptor struct {
	rule    *rule // nil if none applies
	hits    int64
	from    *common.RateLimitDescriptor
	claim   leases.Claim
	peek    bool
	outcome Outcome
	ended   error // why a settle has failed

	balances []runtime.Balance
	after    time.Duration // of a denial
}

// over reports whether d refuses the request.
func (d *descriptor) over() bool {
	return d.outcome == OverLimit || d.outcome == Invalid || d.outcome == Failed
}

// read finds what each descriptor does.
func (c *call) read(ctx context.Context, request *ratelimit.RateLimitRequest) error {
	for i, from := range request.GetDescriptors() {
		if from.GetIsNegativeHits() {
			c.count(ctx, Negative)
			return status.Errorf(codes.InvalidArgument, "descriptor %d has is_negative_hits, which is refused: "+
				"callers would give themselves tokens; settle the lease for less in its place", i+1)
		}
		if from.GetLimit() != nil {
			c.count(ctx, Override)
		}
		d := &descriptor{from: from, rule: c.rules.find(request.GetDomain(), from)}
		var own bool
		d.hits, own = hitsOf(from, request.GetHitsAddend())
		c.descriptors = append(c.descriptors, d)
		switch {
		case d.rule == nil:
			d.outcome = OK
			c.count(ctx, Unmatched)
			if c.rules.deny {
				d.outcome = OverLimit
			}
		case d.rule.acquire != nil:
			d.peek = own && d.hits == 0
			if err := c.claim(ctx, d); err != nil && !isInvalid(err) {
				return c.unanswered(ctx, err)
			} else if err != nil {
				d.outcome, c.err = Invalid, err
			}
		}
	}
	return nil
}

// isInvalid reports whether values of a descriptor are to blame for err.
func isInvalid(err error) bool {
	_, invalid := errors.AsType[*runtime.InvalidError](err)
	unknown, isUnknown := errors.AsType[*runtime.UnknownNameError](err)
	return invalid || isUnknown && !unknown.Unread
}

// unanswered returns the answer to a request whose names could not be looked up. Envoy's failure mode
// decides: a bucket of a name that nobody knows must not be made.
func (c *call) unanswered(ctx context.Context, err error) error {
	c.count(ctx, Failed)
	c.Logger.LogAttrs(ctx, slog.LevelWarn, "names of a template could not be read", slog.Any("error", err))
	return status.Error(codes.Unavailable, "the names of the catalog could not be read: nothing was charged")
}

// claim reads what d takes. It fails with an *runtime.InvalidError, or as Resource.Named.
func (c *call) claim(ctx context.Context, d *descriptor) (err error) {
	a := d.rule.acquire
	if d.claim.On, err = c.in.Resource(a.resource); err != nil {
		return err
	}
	if d.claim.On, err = d.claim.On.Named(ctx, a.nameOf(d.from)); err != nil {
		return err
	}
	if d.claim.Entity, err = d.claim.On.Entity(a.ids(d.from)); err != nil {
		return err
	}
	d.claim.Cost, err = a.numbers.cost(d.claim.On, d.claim.Entity.Kind(), d.hits)
	return err
}

// settle ends the leases that descriptors name.
func (c *call) settle(ctx context.Context) {
	for _, d := range c.descriptors {
		if d.rule == nil || d.rule.settle == nil {
			continue
		}
		names, _ := valueOf(d.from, d.rule.settle.lease)
		d.outcome = Settled
		for i, name := range strings.Split(names, leaseSeparator) {
			if i == mostDescriptors {
				break // no acquire has opened so many
			}
			if err := c.settleOne(ctx, d, name); err != nil {
				d.outcome, d.ended = Unsettled, err
			}
		}
	}
}

// leaseSeparator is between the names of leases of one request.
const leaseSeparator = ","

// settleOne settles one lease. The write outlives the request: Envoy does not wait for the answer.
func (c *call) settleOne(ctx context.Context, d *descriptor, name string) error {
	ctx = context.WithoutCancel(ctx)
	n := &d.rule.settle.numbers
	if n.at == nil {
		return c.Leases.Keep(ctx, name)
	}
	open, err := c.Leases.Find(name)
	if err != nil {
		return err
	}
	cost, err := n.cost(open.On, open.Kind, d.hits)
	if err != nil {
		return err
	}
	_, err = c.Leases.Settle(ctx, name, cost)
	return err
}

// unsettled returns the error for a request that only settles leases, if a settle has failed. Envoy counts
// the error.
func (c *call) unsettled() error {
	var failed error
	for _, d := range c.descriptors {
		if d.rule == nil || d.rule.settle == nil {
			return nil
		}
		if d.ended != nil {
			failed = d.ended
		}
	}
	if failed == nil {
		return nil
	}
	for _, d := range c.descriptors {
		c.count(context.Background(), d.outcome)
	}
	return unsettled(failed)
}

// unsettled returns the answer to a settle that has failed.
func unsettled(err error) error {
	ended, over := errors.AsType[*leases.EndedError](err)
	switch {
	case over && ended.How == leases.Unknown:
		return status.Error(codes.FailedPrecondition, "the lease has ended before: the call has changed nothing")
	case over:
		return status.Errorf(codes.FailedPrecondition, "the lease has been %s before: the call has changed nothing",
			ended.How)
	case errors.Is(err, leases.ErrForged):
		return status.Error(codes.NotFound, "there is no such lease")
	case errors.Is(err, leases.ErrElsewhere):
		return status.Error(codes.FailedPrecondition, "another replica holds the lease: send the call to the one "+
			"that granted it")
	case errors.Is(err, leases.ErrDied):
		return status.Error(codes.FailedPrecondition, "the process that held the lease has ended")
	}
	if _, invalid := errors.AsType[*runtime.InvalidError](err); invalid {
		return status.Error(codes.InvalidArgument, strings.TrimPrefix(err.Error(), "sluice: "))
	}
	return status.Error(codes.Unavailable, "the settle did not get through: the lease has ended, and stands as "+
		"charged or as settled")
}

// peek reads what is left for descriptors of 0 hits. A descriptor is over its limit if no token is left.
func (c *call) peek(ctx context.Context) {
	for _, d := range c.descriptors {
		if !d.peek || d.over() {
			continue
		}
		snap, err := d.claim.On.Peek(ctx, d.claim.Entity)
		d.balances = d.claim.On.Lookup(d.claim.Entity)
		if d.balances == nil && err == nil { // there are no buckets yet
			d.balances = balancesOf(d.claim.On, snap)
		}
		c.balances = append(c.balances, d.balances...)
		d.outcome = Peeked
		if _, invalid := errors.AsType[*runtime.InvalidError](err); invalid {
			d.outcome, c.err = Invalid, err
		} else if err != nil && d.claim.On.Spec.OnUnavailable == store.Deny {
			d.outcome, c.after = Failed, pause
		}
		for _, i := range d.claim.On.Limits(d.claim.Entity.Kind()) {
			if err == nil && snap.Available[i] <= 0 {
				d.outcome = OverLimit
			}
		}
	}
}

// balancesOf returns what a peek has found. Parameters are those of the schema, unless others are in force.
func balancesOf(on *limits.Resource, snap *runtime.Snapshot[[]int64]) (all []runtime.Balance) {
	for i, b := range snap.Buckets {
		kind := on.BucketKind(b.Entity, i > 0 && snap.Buckets[i-1].Entity == b.Entity)
		for _, i := range kind.Indexes() {
			one := runtime.Balance{Resource: on.Name(), Entity: b.Entity, Limit: on.Spec.Limits[i],
				Unit: on.Spec.Unit(i), Available: b.Available[i], Full: b.Full}
			if l := kind.Limits[i]; on.Spec.Whole(i, l.Capacity) == b.Capacity[i] {
				one.Params = l
			}
			all = append(all, one)
		}
	}
	return all
}

// acquire takes what all descriptors claim, or nothing. It fails if neither can be said.
func (c *call) acquire(ctx context.Context) error {
	var claims []leases.Claim
	var of []*descriptor
	refused := false
	for _, d := range c.descriptors {
		refused = refused || d.over()
		if d.rule != nil && d.rule.acquire != nil && !d.peek && d.outcome == "" {
			claims, of = append(claims, d.claim), append(of, d)
		}
	}
	if refused || len(claims) == 0 {
		c.uncharged(of)
		return nil
	}
	if c.Draining.Err() != nil {
		return status.Error(codes.Unavailable, "the server is about to end: nothing was charged; try again")
	}
	granted, err := c.Leases.Acquire(ctx, c.in, leases.Terms{Life: c.LeaseLife}, claims...)
	if err != nil {
		return c.refused(ctx, of, err)
	}
	left := ctx.Err()
	for i, d := range of {
		g := &granted[i]
		d.outcome, d.balances = OK, g.Lease.Balances()
		c.balances = append(c.balances, d.balances...)
		c.degraded = c.degraded || g.Lease.Degraded()
		c.shadowed = c.shadowed || g.Lease.Shadowed() != nil
		end := context.WithoutCancel(ctx)
		switch {
		case left != nil: // Envoy has not waited for the answer: it decides without us
			err = c.Leases.Release(end, g.Name)
		case !d.rule.acquire.held:
			err = c.Leases.Keep(end, g.Name)
		default:
			c.names = append(c.names, g.Name)
		}
		if err != nil {
			c.Logger.LogAttrs(ctx, slog.LevelWarn, "a lease did not end", slog.Any("error", err))
		}
	}
	if left != nil {
		return status.FromContextError(left).Err()
	}
	return nil
}

// pause is when to come back after a failure: while the store does not answer, it is asked once a second.
const pause = time.Second

// uncharged notes what is known of the limits of acquires that take nothing.
func (c *call) uncharged(all []*descriptor) {
	for _, d := range all {
		d.outcome, d.balances = Uncharged, d.claim.On.Lookup(d.claim.Entity)
		c.balances = append(c.balances, d.balances...)
	}
}

// refused notes why the acquire of descriptors has failed. It returns an error that is about no limit.
func (c *call) refused(ctx context.Context, all []*descriptor, err error) error {
	c.err = err
	c.uncharged(all)
	outcome := Failed
	denied, isDenied := errors.AsType[*runtime.DeniedError](err)
	large, isLarge := errors.AsType[*runtime.CostTooLargeError](err)
	invalid, isInvalid := errors.AsType[*runtime.InvalidError](err)
	_, down := errors.AsType[*runtime.UnavailableError](err)
	_, contended := errors.AsType[*runtime.ContendedError](err)
	_, setUp := errors.AsType[*runtime.SetupError](err)
	switch {
	case isDenied:
		c.denied(all, denied)
		return nil
	case isLarge:
		outcome = OverLimit
		if mark(all, outcome, func(d *descriptor) bool { return d.concerns(large.Resource, large.Entity) }) {
			return nil
		}
	case isInvalid:
		outcome = Invalid
		if mark(all, outcome, func(d *descriptor) bool { return d.claim.On.Name() == invalid.Resource }) {
			return nil
		}
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	case setUp:
		c.Logger.LogAttrs(ctx, slog.LevelError, "a request of Envoy failed", slog.Any("error", err))
		return status.Error(codes.FailedPrecondition,
			"the limits of this service are not set up: see the server's log")
	case down, contended, errors.Is(err, leases.ErrFull):
		c.after = pause
	default:
		c.Logger.LogAttrs(ctx, slog.LevelError, "a request of Envoy failed", slog.Any("error", err))
		return errInternal
	}
	mark(all, outcome, func(*descriptor) bool { return true })
	return nil
}

// errInternal is the answer to a mistake in this program.
var errInternal = status.Error(codes.Internal, "internal error: see the server's log")

// mark sets the outcome of the descriptors that an error concerns, and reports whether there are any.
func mark(all []*descriptor, outcome Outcome, concerns func(*descriptor) bool) (found bool) {
	for _, d := range all {
		if concerns(d) {
			d.outcome, found = outcome, true
		}
	}
	return found
}

// denied marks the descriptors whose limits have refused.
func (c *call) denied(all []*descriptor, err *runtime.DeniedError) {
	found := false
	for _, d := range all {
		for _, r := range err.Refusals {
			if d.concerns(r.Resource, r.Entity) {
				d.outcome, found = OverLimit, true
				d.after = max(d.after, r.RetryAfter)
			}
		}
	}
	if !found {
		mark(all, OverLimit, func(*descriptor) bool { return true })
	}
}

// concerns reports whether d charges the bucket of an entity as stored. If d's parents are looked up, d does
// not know them: any entity of their kinds may be one.
func (d *descriptor) concerns(resource, stored string) bool {
	if d.claim.On.Name() != resource {
		return false
	}
	kinds := d.claim.On.Spec.Kinds
	links := d.claim.Entity.Chain(nil)
	for _, l := range links {
		if kinds[l.Kind].Prefix+l.ID == stored {
			return true
		}
	}
	of := d.claim.On.KindOf(stored)
	for at := kinds[links[len(links)-1].Kind].Parent; at != store.NoParent; at = kinds[at].Parent {
		if at == of {
			return true
		}
	}
	return false
}
