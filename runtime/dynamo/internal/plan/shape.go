package plan

import (
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Shape is what a bucket should look like: this binary's schema, with the overrides that this process knows of.
type Shape struct {
	Limits  []bucket.Limit
	Removed []string // dropped by the generated Reshape
	Version int64
	Ceiling []bucket.Limit // the most that a limit can come to be; nil where limits is
}

// ExceedsQuota reports that cost is more of the i-th limit than its bucket, img, will hold, and by what parameters: the bucket's own,
// unless it is to have s's. Of a limit that the bucket does not have, nothing is taken.
func (s *Shape) ExceedsQuota(img *bucket.Image, i int, cost int64) (by bucket.Limit, ok bool) {
	switch {
	case img == nil || Outdated(img, s):
		by = s.Limits[i]
	case img.Missing[i]:
		return by, false
	default:
		by = img.Balances[i].Limit
	}
	return by, store.Beyond(by, cost)
}

// DenyByQuota decides on an acquire that wants more of some limit than this region's share will ever hold. ok is false where none does.
// There may be enough once the share is another: that is a denial, made without a write where there is a bucket. Where there is none, one
// is made without limits, older than any shape: regional sync sees by it that somebody calls, and who can be served adds the limits, full.
// What no share can come to is an error of its own.
func (w *Demand) DenyByQuota(v State, now int64) (p Plan, ok bool) {
	held, never := false, false
	for i, take := range w.Take {
		if by, beyond := w.Shape.ExceedsQuota(v.Image, i, take); beyond {
			held = true
			never = never || take > max(by.Burst, w.Shape.Ceiling[i].Burst)
		}
	}
	full := func(limits []bucket.Limit) *bucket.Image {
		return &bucket.Image{Refilled: now, Balances: bucket.Full(limits), Missing: make([]bool, len(limits))}
	}
	switch {
	case !held:
		return Plan{}, false
	case v.Image != nil && !v.Confirmed:
		return Plan{Decision: Read, Image: v.Image}, true
	case never:
		return Plan{Decision: TooLarge, Image: full(w.Shape.Ceiling)}, true
	case v.Image == nil && v.Confirmed:
		n := len(w.Take)
		return Plan{
			Path: Create, Uncharged: true, Cost: make([]int64, n), Limits: make([]bucket.Limit, n), Refilled: now,
			TTL: Expiry(bucket.Full(w.Shape.Limits), now),
		}, true
	case v.Image == nil:
		return Plan{Decision: Read}, true
	case Outdated(v.Image, w.Shape):
		bare := NewReshape(make([]int64, len(w.Take)), v.Image, w.Shape, now)
		return Plan{Decision: Deny, Image: bare.Predict(v.Image.Op)}, true
	}
	return Plan{Decision: Deny, Image: v.Image}, true
}
