package known

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/store"
)

// MaxChain is the longest chain that Refused denies.
const MaxChain = 8

// denial is a denial by images alone. The calls of one millisecond share it: a flood of them makes no
// garbage, and retry after is exact for each.
type denial struct {
	of     *Resource
	now    int64
	cost   []int64
	images []*bucket.Image // of the chain
	err    *store.DeniedError
}

// Refused returns the denial of cost, in millitokens, by a chain of at most MaxChain buckets of res, if their
// images suffice for one. It returns nil if a bucket is to be reshaped or a lazy settle is to give something
// back: the next write changes what there is.
func (r *Reader) Refused(res *Resource, chain []*Bucket, cost []int64, now int64) *store.DeniedError {
	var images [MaxChain]*bucket.Image
	var shapes [MaxChain]*override.Resolved
	denies, last := false, (*denial)(nil)
	for i, b := range chain {
		b.mu.Lock()
		mayDeny, img, shape := r.mayDeny(res, b, now), b.image, b.shape
		if i == 0 {
			last = b.lastDenial
		}
		b.mu.Unlock()
		if !mayDeny {
			return nil
		}
		images[i], shapes[i] = img, shape
		for j := range img.Balances {
			b := &img.Balances[j]
			switch {
			case cost[j] <= 0, b.Absent(): // it is not charged
			case shape.Ceiling != nil && store.ExceedsQuota(b.Limit, cost[j]) && cost[j] <= shape.Ceiling[j].Burst:
				denies = true
			case b.TooLarge(cost[j], now): // it can never be served: an error of its own
				return nil
			case !denies:
				denies = bucket.Available(*b, img.Refilled, now) < cost[j]
			}
		}
	}
	if !denies {
		return nil
	}
	seen := images[:len(chain)]
	if last != nil && last.of == res && last.now == now && slices.Equal(last.cost, cost) &&
		slices.Equal(last.images, seen) {
		return last.err
	}
	next := &denial{of: res, now: now, cost: slices.Clone(cost), images: slices.Clone(seen)}
	for i, b := range chain {
		own := res.Spec.CostOf(b.At.Kind, cost)
		next.err = shapes[i].Refuse(next.err, res.Spec, b.At.Entity, seen[i], own, now)
	}
	first := chain[0]
	first.mu.Lock()
	defer first.mu.Unlock()
	first.lastDenial = next
	return next.err
}

// mayDeny reports whether b's image may deny at now. The caller holds b's lock.
func (r *Reader) mayDeny(res *Resource, b *Bucket, now int64) bool {
	if b.image == nil || b.shape == nil || b.refresh != nil || b.giveBacks != 0 {
		return false
	}
	return isFresh(b.seenAt, now, TrustedFor) && r.isFresh(res.Spec, b.shape.ReadAt, now) &&
		!b.shape.Expired(res.Spec, now) && !b.isBehind(res, b.shape, b.on) &&
		!r.moves.includes(b, now) && !plan.Outdated(b.image, &b.shape.Shape)
}
