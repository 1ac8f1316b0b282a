package waitlist

import (
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/balances"
	"github.com/sluice-go/sluice/runtime/store"
)

// AtLeast returns how long denied, by limits of spec, lasts at least. A slot may be free at any moment,
// whatever the hint.
func AtLeast(spec *store.Spec, denied *store.DeniedError) (wait time.Duration) {
	if spec.Held == nil {
		return denied.RetryAfter
	}
	for _, one := range denied.Refusals {
		if i := slices.Index(spec.Limits, one.Limit); i < 0 || !spec.InFlight(i) {
			wait = max(wait, one.RetryAfter)
		}
	}
	return wait
}

// BlockedBy returns the bucket of part, and its limit, that refuse a call for longest by denied.
func BlockedBy(spec *store.Spec, part *store.Part, denied *store.DeniedError) (i, limit int) {
	limit = max(slices.Index(spec.Limits, denied.Limit), 0)
	has := func(b store.Bucket) bool { return b.Entity == denied.Entity && spec.Kinds[b.Kind].Has(limit) }
	return max(slices.IndexFunc(part.Buckets, has), 0), limit
}

// Denies returns the denial of a waiter's call, of part, behind those ahead of it at now (ms), or nil if it
// need not wait. A bucket without an image is no reason to wait.
func (v *View) Denies(spec *store.Spec, part *store.Part, now int64) (denied *store.DeniedError) {
	for i := range v.Seen {
		b := &v.Seen[i]
		if b.After == nil {
			continue
		}
		own, refilled := balances.Of(b, spec)
		// The demand of others comes off the balance of now, which the burst caps, not off all the refill since the
		// last write.
		img := &bucket.Image{Refilled: max(now, refilled), Balances: own, Missing: b.After.Missing}
		for j, balance := range own {
			own[j].Cells = [2]int64{} // what is over of them is available
			own[j].Tokens = bucket.Sub(bucket.Available(balance, refilled, now), v.Ahead[i][j])
		}
		denied = store.Refuse(denied, spec, b.Entity, img, spec.CostOf(b.Kind, part.Cost), now)
	}
	return denied
}
