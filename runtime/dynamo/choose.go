package dynamo

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// want is what one logical write is to do to one bucket. Vectors are in schema order, in millitokens.
type want struct {
	cost   []int64 // negative where tokens are given back
	settle bool    // debt is allowed and nothing is denied
	called int64   // the instant the acquire or settle was called, ms
	shape  *shape
}

// view is what is known of a bucket. A nil img is an unknown bucket, or a missing one if that is the truth.
type view struct {
	img   *bucket.Image
	truth bool // img was returned or consistently read in this attempt
	yield bool // this process lost a Normal here within the last second
}

// verdict is what choose decides to do.
type verdict uint8

const (
	write  verdict = iota
	look           // read the bucket: what is known does not decide
	refuse         // tokens are lacking in a true image
	exceed         // some cost is above its burst
	skip           // nothing to do: what is given back is there already
)

// choose picks the write path for w by what is known of the bucket: Retry if it will hold, else Normal if that will,
// else a consistent read, and by a true image a denial. Design section 4 has the paths and the reason for each guard.
func choose(w *want, v view, now int64) plan {
	if v.img == nil {
		return chooseMissing(w, v, now)
	}
	if w.settle && !slices.ContainsFunc(w.cost, positive) {
		return planAdjust(w.cost, v.img, w.shape, now)
	}
	if !w.settle && outdated(v.img, w.shape) {
		return chooseReshape(w, v, now)
	}
	b := balancesOf(v.img)
	cost := b.charge(w.cost)
	if !w.settle && b.exceeded(cost) {
		return plan{verdict: lookOr(exceed, v), img: v.img}
	}
	if p, ok := planRetry(w, b, cost, now); ok {
		return p
	}
	if p, ok := planNormal(w, v, b, cost, now); ok {
		return p
	}
	return plan{verdict: lookOr(refuse, v), img: v.img}
}

func lookOr(known verdict, v view) verdict {
	if v.truth {
		return known
	}
	return look
}

func positive(n int64) bool { return n > 0 }

// chooseMissing is choose where there is no image. What is given back to a missing bucket is there already, for it is
// full; a give-back without an image needs none.
func chooseMissing(w *want, v view, now int64) plan {
	giveBack := w.settle && !slices.ContainsFunc(w.cost, positive)
	switch {
	case giveBack && v.truth:
		return plan{verdict: skip}
	case giveBack:
		return planAdjust(w.cost, nil, w.shape, now)
	case !v.truth:
		return plan{verdict: look}
	}
	cost := slices.Clone(w.cost)
	full := &bucket.Image{Balances: bucket.Full(w.shape.limits), Missing: make([]bool, len(cost))}
	after := slices.Clone(full.Balances)
	for i := range cost {
		if !w.settle && cost[i] > full.Balances[i].Burst {
			return plan{verdict: exceed, img: full}
		}
		cost[i] = max(cost[i], 0)
		after[i].Tokens = bucket.Sub(after[i].Tokens, cost[i])
	}
	return plan{path: create, cost: cost, limits: w.shape.limits, rf: now, cv: w.shape.cv, ttl: expiry(after, now)}
}

// outdated reports that img has an older shape than s and may be given s's: one component of its cv is lower and none
// higher, or a limit is missing that its revision has.
func outdated(img *bucket.Image, s *shape) bool {
	const revision = revisionUnit
	switch {
	case img.Version/revision > s.cv/revision || img.Version%revision > s.cv%revision:
		return false
	case img.Version < s.cv:
		return true
	}
	return slices.Contains(img.Missing, true)
}

// revisionUnit separates the two components of cv: the schema's revision and the versions of configuration.
const revisionUnit = 100_000_000_000_000

// chooseReshape gives an outdated bucket this binary's shape, with the cost if that can be admitted. If not, the reshape
// is written all the same, bare: else a raised limit would never reach callers who keep being denied.
func chooseReshape(w *want, v view, now int64) plan {
	p := planReshape(w.cost, v.img, w.shape, now)
	if p.verdict == write {
		return p
	}
	if !v.truth {
		return plan{verdict: look}
	}
	if p.verdict == exceed {
		return p
	}
	p = planReshape(make([]int64, len(w.cost)), v.img, w.shape, now)
	p.bare = true
	return p
}
