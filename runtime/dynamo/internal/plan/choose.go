package plan

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// Demand is what one write is to do to one bucket, for all whom it serves. Vectors are in schema order, in millitokens; one
// that has nothing is nil.
type Demand struct {
	Take   []int64 // by acquires: it has to be there
	Change []int64 // by settles, into debt if need be; negative where they give back more than they take
	Called int64   // the instant the last of them was called, ms
	Shape  *Shape

	Pool *VectorPool // of the plan's vectors: they last until the next plan is made for w; nil for ones that stay
}

// SettlesOnly reports that w has to do with settles alone: nothing is denied.
func (w *Demand) SettlesOnly() bool { return w.Take == nil }

// GivesBack reports that w takes nothing.
func (w *Demand) GivesBack() bool { return w.Take == nil && !slices.ContainsFunc(w.Change, Positive) }

// State is what is known of a bucket. A nil img is an unknown bucket, or a missing one if that is the truth.
type State struct {
	Image      *bucket.Image
	Confirmed  bool // img was returned or consistently read in this attempt, or within the last second
	LeaveSlack bool // this process lost a Normal here within the last second
}

// Decision is what choose decides to do.
type Decision uint8

const (
	Write    Decision = iota
	Read              // read the bucket: what is known does not decide
	Deny              // tokens are lacking in a true image
	TooLarge          // some cost is above its burst
	None              // nothing to do: what is given back is there already
)

// Choose picks the write path for w by what is known of the bucket: Retry if it will hold, else Normal if that will,
// else a consistent read, and by a true image a denial. Design section 4 has the paths and the reason for each guard.
func Choose(w *Demand, v State, now int64) Plan {
	if w.Take != nil && w.Shape.Ceiling != nil {
		if p, ok := w.DenyByQuota(v, now); ok {
			return p
		}
	}
	if v.Image == nil {
		return chooseMissing(w, v, now)
	}
	if w.GivesBack() {
		return NewAdjust(w.Change, v.Image, w.Shape, now)
	}
	if !w.SettlesOnly() && Outdated(v.Image, w.Shape) {
		return ChooseReshape(w, v, now)
	}
	b := BalancesOf(v.Image)
	w.Pool.reset()
	f := b.Net(w)
	if b.exceeds(f.take) {
		return Plan{Decision: readUnlessConfirmed(TooLarge, v), Image: v.Image}
	}
	if p, ok := NewRetry(w, b, f, now); ok {
		return p
	}
	if p, ok := NewNormal(w, v, b, f, now); ok {
		return p
	}
	return Plan{Decision: readUnlessConfirmed(Deny, v), Image: v.Image}
}

func readUnlessConfirmed(known Decision, v State) Decision {
	if v.Confirmed {
		return known
	}
	return Read
}

func Positive(n int64) bool { return n > 0 }

// chooseMissing is choose where there is no image. What is given back to a missing bucket is there already, for it is
// full; a give-back without an image needs none.
func chooseMissing(w *Demand, v State, now int64) Plan {
	switch {
	case w.GivesBack() && v.Confirmed:
		return Plan{Decision: None}
	case w.GivesBack():
		return NewAdjust(w.Change, nil, w.Shape, now)
	case !v.Confirmed:
		return Plan{Decision: Read}
	}
	cost := make([]int64, len(w.Shape.Limits))
	full := &bucket.Image{Balances: bucket.Full(w.Shape.Limits), Missing: make([]bool, len(cost))}
	after := slices.Clone(full.Balances)
	for i := range cost {
		if w.Take != nil {
			cost[i] = w.Take[i]
		}
		if cost[i] > full.Balances[i].Burst {
			return Plan{Decision: TooLarge, Image: full}
		}
		if w.Change != nil {
			cost[i] = bucket.Add(cost[i], max(w.Change[i], 0))
		}
		after[i].Tokens = bucket.Sub(after[i].Tokens, cost[i])
	}
	return Plan{Path: Create, Cost: cost, Limits: w.Shape.Limits, Refilled: now, Version: w.Shape.Version, TTL: Expiry(after, now)}
}

// Outdated reports that img has an older shape than s and may be given s's: one component of its cv is lower and none
// higher, or a limit is missing that its revision has.
func Outdated(img *bucket.Image, s *Shape) bool {
	const revision = RevisionUnit
	switch {
	case img.Version/revision > s.Version/revision || img.Version%revision > s.Version%revision:
		return false
	case img.Version < s.Version:
		return true
	}
	return slices.Contains(img.Missing, true)
}

// RevisionUnit separates the two components of cv: the schema's revision and the versions of configuration.
const RevisionUnit = 100_000_000_000_000

// ChooseReshape gives an outdated bucket this binary's shape, with the cost if that can be admitted. If not, the reshape
// is written all the same, bare: else a raised limit would never reach callers who keep being denied.
func ChooseReshape(w *Demand, v State, now int64) Plan {
	p := NewReshape(w.Take, v.Image, w.Shape, now)
	if p.Decision == Write {
		return p
	}
	if !v.Confirmed {
		return Plan{Decision: Read}
	}
	if p.Decision == TooLarge {
		return p
	}
	p = NewReshape(make([]int64, len(w.Take)), v.Image, w.Shape, now)
	p.Uncharged = true
	return p
}
