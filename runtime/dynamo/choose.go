package dynamo

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// want is what one write is to do to one bucket, for all whom it serves. Vectors are in schema order, in millitokens; one
// that has nothing is nil.
type want struct {
	take   []int64 // by acquires: it has to be there
	change []int64 // by settles, into debt if need be; negative where they give back more than they take
	called int64   // the instant the last of them was called, ms
	shape  *shape

	scratch *scratch // of the plan's vectors: they last until the next plan is made for w; nil for ones that stay
}

// settles reports that w has to do with settles alone: nothing is denied.
func (w *want) settles() bool { return w.take == nil }

// givesBack reports that w takes nothing.
func (w *want) givesBack() bool { return w.take == nil && !slices.ContainsFunc(w.change, positive) }

// view is what is known of a bucket. A nil img is an unknown bucket, or a missing one if that is the truth.
type view struct {
	img   *bucket.Image
	truth bool // img was returned or consistently read in this attempt, or within the last second
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
	if w.take != nil && w.shape.ceiling != nil {
		if p, ok := w.withheld(v, now); ok {
			return p
		}
	}
	if v.img == nil {
		return chooseMissing(w, v, now)
	}
	if w.givesBack() {
		return planAdjust(w.change, v.img, w.shape, now)
	}
	if !w.settles() && outdated(v.img, w.shape) {
		return chooseReshape(w, v, now)
	}
	b := balancesOf(v.img)
	w.scratch.reset()
	f := b.flow(w)
	if b.exceeded(f.take) {
		return plan{verdict: lookOr(exceed, v), img: v.img}
	}
	if p, ok := planRetry(w, b, f, now); ok {
		return p
	}
	if p, ok := planNormal(w, v, b, f, now); ok {
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
	switch {
	case w.givesBack() && v.truth:
		return plan{verdict: skip}
	case w.givesBack():
		return planAdjust(w.change, nil, w.shape, now)
	case !v.truth:
		return plan{verdict: look}
	}
	cost := make([]int64, len(w.shape.limits))
	full := &bucket.Image{Balances: bucket.Full(w.shape.limits), Missing: make([]bool, len(cost))}
	after := slices.Clone(full.Balances)
	for i := range cost {
		if w.take != nil {
			cost[i] = w.take[i]
		}
		if cost[i] > full.Balances[i].Burst {
			return plan{verdict: exceed, img: full}
		}
		if w.change != nil {
			cost[i] = bucket.Add(cost[i], max(w.change[i], 0))
		}
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
	p := planReshape(w.take, v.img, w.shape, now)
	if p.verdict == write {
		return p
	}
	if !v.truth {
		return plan{verdict: look}
	}
	if p.verdict == exceed {
		return p
	}
	p = planReshape(make([]int64, len(w.take)), v.img, w.shape, now)
	p.bare = true
	return p
}
