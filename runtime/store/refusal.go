package store

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// Refuse adds to e, which may be nil, every limit of img that has less than cost at now (ms), and returns it.
// If cost is more than this region's quota ever holds, the retry is after a window, when quotas may be
// different. Stores call it.
func Refuse(
	e *DeniedError, spec *Spec, entity string, img *bucket.Image, cost []int64, now int64,
) *DeniedError {
	for i, b := range img.Balances {
		if cost[i] <= 0 || img.Missing[i] {
			continue
		}
		left := bucket.Available(b, img.Refilled, now)
		var wait time.Duration
		switch {
		case spec.Regions != nil && ExceedsQuota(b.Limit, cost[i]):
			left, wait = bucket.Spendable(b, img.Refilled, now), spec.Regions.Window
		case left >= cost[i]:
			continue
		default:
			wait = bucket.RetryAfter(b, img.Refilled, now, cost[i])
		}
		e = AddRefusal(e, Refusal{
			Resource: spec.Resource, Template: spec.Template, Entity: entity, Limit: spec.Limits[i],
			Unit: spec.Unit(i), Requested: spec.Whole(i, cost[i]), Available: spec.Whole(i, max(0, left)),
			RetryAfter: wait, Resets: Resets(b, now),
		})
	}
	return e
}

// UntilGrant is the RetryAfter of a prepaid limit, to which time brings nothing. It is the longest Duration.
const UntilGrant time.Duration = math.MaxInt64

// Resets returns the end of b's open window. It is zero if none is open at now, in ms, or if b refills or is
// prepaid.
func Resets(b bucket.Balance, now int64) time.Time {
	if !b.Windowed() || b.Prepaid() || b.Over(now) {
		return time.Time{}
	}
	return time.UnixMilli(b.Ends)
}

// ExceedsQuota reports that waiting for the refill of quota does not help a call that wants cost, in
// millitokens: quota is closed, or its burst is below cost.
func ExceedsQuota(quota bucket.Limit, cost int64) bool {
	return cost > 0 && (quota.Closed() || cost > quota.Burst)
}

// AddRefusal adds r to e, which may be nil, and returns it. e names the refusal that lasts longest, the first
// of equal ones. Stores call it.
func AddRefusal(e *DeniedError, r Refusal) *DeniedError {
	if e == nil {
		e = &DeniedError{}
	}
	e.Refusals = append(e.Refusals, r)
	if r.RetryAfter > e.RetryAfter || e.Limit == "" {
		e.Resource, e.Template, e.Entity, e.Limit, e.Unit = r.Resource, r.Template, r.Entity, r.Limit, r.Unit
		e.Requested, e.Available, e.RetryAfter, e.Resets = r.Requested, r.Available, r.RetryAfter, r.Resets
	}
	return e
}

// SortRefusals sorts e's refusals by claim, which index returns. e then names the first of the longest ones
// in the new order. A store calls it that finds refusals in another order.
func SortRefusals(e *DeniedError, index func(Refusal) int) {
	sorted := e.Refusals
	slices.SortStableFunc(sorted, func(a, b Refusal) int { return cmp.Compare(index(a), index(b)) })
	e.Refusals, e.Limit = nil, ""
	for _, r := range sorted {
		e = AddRefusal(e, r)
	}
}

// Refusing returns the limit of part that err refuses for longest, and the kind of its bucket. Both are empty
// if err refuses none of it: of several claims, another may be refused.
func Refusing(spec *Spec, part *Part, err error) (limit, kind string) {
	kindOf := func(resource, entity string) (kind string, ok bool) {
		i := slices.IndexFunc(part.Buckets, func(b Bucket) bool { return b.Entity == entity })
		if resource != spec.Resource || i < 0 {
			return "", false
		}
		return spec.Kinds[part.Buckets[i].Kind].Name, true
	}
	if exceeds, ok := errors.AsType[*CostTooLargeError](err); ok {
		if kind, ok := kindOf(exceeds.Resource, exceeds.Entity); ok {
			return exceeds.Limit, kind
		}
	}
	if denied, ok := errors.AsType[*DeniedError](err); ok {
		var longest time.Duration
		for _, refusal := range denied.Refusals {
			at, ok := kindOf(refusal.Resource, refusal.Entity)
			if ok && (limit == "" || refusal.RetryAfter > longest) {
				limit, kind, longest = refusal.Limit, at, refusal.RetryAfter
			}
		}
	}
	return limit, kind
}

// IsDecision reports whether err says that a call was admitted or refused.
func IsDecision(err error) bool {
	_, denied := errors.AsType[*DeniedError](err)
	_, exceeds := errors.AsType[*CostTooLargeError](err)
	return err == nil || denied || exceeds
}
