package plan

import (
	"math"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Choose picks the write path for d by what is known of the bucket at now, in ms. It picks Retry if that will
// hold, else Normal if that will hold. Else it asks for a consistent read, and denies if the image is
// confirmed.
func Choose(d *Demand, s State, now int64) Plan {
	p := choose(d, s, now)
	p.generalize(d.Shape)
	p.Keep(d.Shape, now)
	return p
}

// choose is Choose without what generalize and Keep add.
func choose(d *Demand, s State, now int64) Plan {
	if d.Take != nil && d.Shape.Ceiling != nil {
		if p, ok := d.DenyByQuota(s, now); ok {
			return p
		}
	}
	if s.Image == nil {
		return chooseMissing(d, s, now)
	}
	if d.GivesBack() {
		if p, ok := NewAdjust(d, s.Image, now); ok {
			p.guardGiveBack(d, s)
			return p
		}
	}
	if !d.SettlesOnly() && Outdated(s.Image, d.Shape) {
		return ChooseReshape(d, s, now)
	}
	b := BalancesOf(s.Image)
	d.Pool.reset()
	net := b.Net(d)
	if b.exceeds(net.take, now) {
		return Plan{Decision: readUnlessConfirmed(TooLarge, s), Image: s.Image}
	}
	if p, ok := NewRetry(d, b, net, now); ok {
		p.guardGiveBack(d, s)
		return p
	}
	if p, ok := NewNormal(d, s, b, net, now); ok {
		p.guardGiveBack(d, s)
		return p
	}
	return Plan{Decision: readUnlessConfirmed(Deny, s), Image: s.Image}
}

// generalize sets Generic if the image of p counts holds of other limits than s: the generated text does not
// fit it.
func (p *Plan) generalize(s *Shape) {
	if p.Decision != Write || p.Image == nil || p.Path == Reshape || p.Path == Create {
		return
	}
	for i, b := range p.Image.Balances {
		p.Generic = p.Generic || b.Holds() != s.holds(i) && !p.Image.Missing[i]
	}
}

// KeepIdle is how long an idle bucket's item stays, in ms, even if it was full long before. To create an item
// anew costs two write units more than to update it, and a round trip; 1 KB of storage for so long costs a
// tenth of one. An entity that calls once a week finds its item (docs/design.md, "Arithmetic").
const KeepIdle = 8 * 24 * 3600 * 1000

// Keep raises the ttl of p, which writes at now, so that the item stays for the KeepIdle of s.
func (p *Plan) Keep(s *Shape, now int64) {
	if p.Decision == Write && s.KeepIdle > 0 {
		p.TTL = max(p.TTL, min(bucket.Add(now, s.KeepIdle)/1000, bucket.LastExpiry))
	}
}

func readUnlessConfirmed(confirmed Decision, s State) Decision {
	if s.Confirmed {
		return confirmed
	}
	return Read
}

// chooseMissing is Choose without an image. A missing bucket is full, so what is given back to it is there
// already. A give-back to an unknown bucket needs no image, unless a limit has windows or holds.
func chooseMissing(d *Demand, s State, now int64) Plan {
	switch {
	case d.GivesBack() && s.Confirmed:
		return Plan{Decision: None}
	case d.GivesBack() && !windowed(d.Shape.Limits) && d.Shape.Held == nil:
		p, _ := NewAdjust(d, nil, now)
		return p
	case !s.Confirmed:
		return Plan{Decision: Read}
	}
	cost := make([]int64, len(d.Shape.Limits))
	full := &bucket.Image{
		Refilled: now, Balances: bucket.Full(d.Shape.Limits), Missing: make([]bool, len(cost)),
	}
	if decision := overFull(full, d.Take, now); decision != Write {
		return Plan{Decision: decision, Image: full}
	}
	after := slices.Clone(full.Balances)
	var ends []int64
	if windowed(d.Shape.Limits) {
		ends = make([]int64, len(cost))
	}
	holds := d.Shape.newHolds()
	for i := range cost {
		if d.Take != nil {
			cost[i] = d.Take[i]
		}
		if holds != nil && d.Shape.holds(i) {
			holds[i] = bucket.NewHold(cost[i], 0, now)
			after[i] = after[i].Apply(holds[i])
		}
		if d.Change != nil {
			cost[i] = bucket.Add(cost[i], max(d.Change[i], 0))
		}
		after[i].Tokens = bucket.Sub(after[i].Tokens, cost[i])
		if after[i].Windowed() {
			ends[i] = d.calendar(i).First(cost[i], now)
			after[i].Ends = ends[i]
		}
	}
	return Plan{
		Path: Create, Cost: cost, Limits: d.Shape.Limits, Ends: ends, Holds: holds,
		Refilled: now, Version: d.Shape.Created(), PlanOf: d.Shape.PlanOf, TTL: Expiry(after, now),
	}
}

// overFull decides on acquires that take more than full, a full bucket, has at now: Write if they do not. A
// prepaid limit waits for a grant.
func overFull(full *bucket.Image, take []int64, now int64) Decision {
	decision := Write
	for i, n := range take {
		switch b := full.Balances[i]; {
		case b.TooLarge(n, now):
			return TooLarge
		case n > b.Burst:
			decision = Deny
		}
	}
	return decision
}

// windowed reports whether any of limits has windows.
func windowed(limits []bucket.Limit) bool { return slices.ContainsFunc(limits, bucket.Limit.Windowed) }

// guardGiveBack has p apply on top of the bucket's last write only, if p gives something back and no other
// process is known to write there. The first delivery of p changes op, so another one does not apply,
// whatever comes between. A Normal that moves rf needs no such guard.
func (p *Plan) guardGiveBack(d *Demand, s State) {
	moves := p.Path == Normal && p.Refilled > p.Image.Refilled
	out := func(m bucket.Moves) bool { return m.Out != [2]int64{} }
	gives := slices.ContainsFunc(d.Change, negative) || slices.ContainsFunc(d.Moves, out)
	if s.SoleWriter && !moves && gives {
		p.After = p.Image.Op
	}
}

// Outdated reports whether img has an older shape than s and may be given s. Then one component of its
// version is lower and none is higher, or a limit of its revision is missing. The sums of two entities' plans
// say nothing about each other: a bucket that has another entity's plan is outdated, unless its revision is
// higher. No bucket is outdated by a plan that this binary does not know.
func Outdated(img *bucket.Image, s *Shape) bool {
	const unit = bucket.RevisionUnit
	switch {
	case s.UnknownPlan, img.Version/unit > s.Version/unit:
		return false
	case s.ChangesPlan(img):
		return true
	case img.Version%unit > s.Version%unit:
		return false
	case img.Version < s.Version:
		return true
	}
	return slices.Contains(img.Missing, true)
}

// ChangesPlan reports whether img has another entity's plan than s. If the resource has no plans any more,
// that is so only for a bucket of an older revision. The sum of its versions says nothing then, since a part
// of it is gone.
func (s *Shape) ChangesPlan(img *bucket.Image) bool {
	if !s.HasPlans && img.Version/bucket.RevisionUnit == s.Version/bucket.RevisionUnit {
		return false
	}
	return img.PlanOf != s.PlanOf
}

// Created returns the version of a bucket that is created with s. A binary that knows the plan, which this
// one does not, takes such a bucket for older than any shape.
func (s *Shape) Created() int64 {
	if s.UnknownPlan {
		return s.Version - s.Version%bucket.RevisionUnit
	}
	return s.Version
}

// Next returns img as the next acquire leaves it before it takes anything: with the shape s if it is
// outdated. windows are the calendars of the bucket's limits.
func (s *Shape) Next(img *bucket.Image, windows []*bucket.Calendar, now int64) *bucket.Image {
	if img == nil || !Outdated(img, s) {
		return img
	}
	p := NewReshape(make([]int64, len(s.Limits)), img, s, windows, now)
	return p.Predict(img.Op)
}

// ChooseReshape gives an outdated bucket the shape of d, with the cost if that can be admitted. If not, the
// Reshape is written all the same, without a charge: otherwise a raised limit would never reach callers who
// keep being denied.
func ChooseReshape(d *Demand, s State, now int64) Plan {
	p := NewReshape(d.Take, s.Image, d.Shape, d.Windows, now)
	if p.Decision == Write {
		return p
	}
	if !s.Confirmed {
		return Plan{Decision: Read}
	}
	if p.Decision == TooLarge {
		return p
	}
	p = NewReshape(make([]int64, len(d.Take)), s.Image, d.Shape, d.Windows, now)
	p.Uncharged = true
	return p
}

// Demand is what one write is to do to one bucket, for all the requests that it serves. Vectors are in schema
// order, in millitokens; a nil vector is all zeros.
type Demand struct {
	Take   []int64 // by acquires: the tokens have to be there
	Change []int64 // by settles: into debt if need be; negative if they give back more than they take
	// Lapsed is what settles charge to the balance and not to usage: below 0 for what comes back to the
	// balance alone (bucket.EndOf).
	Lapsed []int64
	Moves  []bucket.Moves // of holds that end or are extended; nil if none
	Called int64          // when the last of the requests was called, ms
	Shape  *Shape
	// Windows are the calendars by which windows open, by limit; nil if no limit of the schema has windows.
	Windows []*bucket.Calendar
	Pool    *VectorPool // of the plan's vectors; nil for vectors that stay
}

// SettlesOnly reports whether no acquire is in d, so that nothing is denied.
func (d *Demand) SettlesOnly() bool { return d.Take == nil }

// GivesBack reports whether d takes nothing.
func (d *Demand) GivesBack() bool {
	if d.Take != nil {
		return false
	}
	for i := range d.Change {
		if d.change(i) > 0 {
			return false
		}
	}
	return true
}

// change returns what settles charge to the balance of limit i.
func (d *Demand) change(i int) int64 {
	if d.Lapsed == nil {
		return d.Change[i]
	}
	return bucket.Add(d.Change[i], d.Lapsed[i])
}

// calendar returns the calendar of limit i, nil for one that the schema does not have.
func (d *Demand) calendar(i int) *bucket.Calendar {
	if i >= len(d.Windows) {
		return nil
	}
	return d.Windows[i]
}

func negative(n int64) bool { return n < 0 }

// State is what is known of a bucket. Without an image it is unknown, or missing if that is confirmed.
type State struct {
	Image      *bucket.Image
	Confirmed  bool // DynamoDB returned Image in this attempt or within the last second
	LeaveSlack bool // others were at work on the bucket at the same time, within the last second
	SoleWriter bool // no other process is known to write here: give-backs may depend on the last write
}

// Shape is what a bucket should look like: the schema of this binary with the overrides in force.
type Shape struct {
	Limits  []bucket.Limit
	Removed []string // limits that the generated Reshape drops
	Held    []bool   // limits that count holds; nil if none does
	Version int64    // cv
	// PlanOf is po: the entity whose plan decides, "" if it never was on one. HasPlans is set if the resource
	// has plans, and UnknownPlan if the entity is on one that this binary does not know.
	PlanOf                string
	HasPlans, UnknownPlan bool
	// Ceiling is the most that each limit can come to be. It is set if the resource has regions, and nil
	// otherwise.
	Ceiling []bucket.Limit
	// KeepIdle is how long the item stays after its last write at least, in ms.
	KeepIdle int64
}

// DenyByQuota decides on an acquire that takes more of a limit than the quota in force will ever hold. ok is
// false if it does not. Another quota may hold enough, so the decision is a denial, and nothing is written to
// an existing bucket. If the bucket is missing, one without limits is created, older than any shape. Regional
// sync learns from it that somebody calls. The first acquire that fits adds the limits, full. A cost that no
// quota can hold is TooLarge.
func (d *Demand) DenyByQuota(s State, now int64) (p Plan, ok bool) {
	exceeds, never := false, false
	for i, take := range d.Take {
		if by, isAbove := d.Shape.ExceedsQuota(s.Image, i, take); isAbove {
			exceeds = true
			never = never || take > max(by.Burst, d.Shape.Ceiling[i].Burst)
		}
	}
	switch {
	case !exceeds:
		return Plan{}, false
	case s.Image != nil && !s.Confirmed:
		return Plan{Decision: Read, Image: s.Image}, true
	case never:
		full := &bucket.Image{
			Refilled: now, Balances: bucket.Full(d.Shape.Ceiling), Missing: make([]bool, len(d.Shape.Ceiling)),
		}
		return Plan{Decision: TooLarge, Image: full}, true
	case s.Image == nil && s.Confirmed:
		n := len(d.Take)
		return Plan{
			Path: Create, Uncharged: true, Cost: make([]int64, n), Limits: make([]bucket.Limit, n), Refilled: now,
			TTL: Expiry(bucket.Full(d.Shape.Limits), now),
		}, true
	case s.Image == nil:
		return Plan{Decision: Read}, true
	case Outdated(s.Image, d.Shape):
		reshaped := NewReshape(make([]int64, len(d.Take)), s.Image, d.Shape, d.Windows, now)
		return Plan{Decision: Deny, Image: reshaped.Predict(s.Image.Op)}, true
	}
	return Plan{Decision: Deny, Image: s.Image}, true
}

// ExceedsQuota reports whether cost is more of limit i than the bucket will ever hold. It also returns the
// limit that decides: the bucket's own, or the shape's if the bucket is to get that. A limit that is missing
// in the bucket is not charged, so it is never exceeded.
func (s *Shape) ExceedsQuota(img *bucket.Image, i int, cost int64) (by bucket.Limit, exceeds bool) {
	switch {
	case img == nil || Outdated(img, s):
		by = s.Limits[i]
	case img.Missing[i]:
		return by, false
	default:
		by = img.Balances[i].Limit
	}
	return by, store.ExceedsQuota(by, cost)
}

// LeastLeft returns the least part of a burst that d would leave, as far as is known. An unknown bucket
// counts as full.
func (d *Demand) LeastLeft(s State, now int64) float64 {
	least := 1.0
	if d.Shape != nil && d.Shape.Ceiling != nil {
		if _, ok := d.DenyByQuota(s, now); ok {
			return math.Inf(-1)
		}
	}
	if s.Image == nil {
		return least
	}
	for i, b := range s.Image.Balances {
		if d.Take[i] > 0 && !s.Image.Missing[i] {
			left := bucket.Sub(bucket.Available(b, s.Image.Refilled, now), d.Take[i])
			least = min(least, float64(left)/float64(max(1, b.Burst)))
		}
	}
	return least
}

// holds reports whether limit i counts holds.
func (s *Shape) holds(i int) bool { return s.Held != nil && s.Held[i] && !s.Limits[i].Absent() }

// newHolds returns an empty vector for the Holds of a plan, nil if no limit counts holds.
func (s *Shape) newHolds() []bucket.Hold {
	for i := range s.Held {
		if s.holds(i) {
			return make([]bucket.Hold, len(s.Limits))
		}
	}
	return nil
}

// moves returns what settles and extensions do to the cells of limit i.
func (d *Demand) moves(i int) bucket.Moves {
	if d.Moves == nil {
		return bucket.NoMoves
	}
	return d.Moves[i]
}
