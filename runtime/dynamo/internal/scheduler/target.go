package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/known"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/store"
)

// target is one bucket that a batch writes to.
type target struct {
	known.View

	cached  *cachedBucket
	windows []*bucket.Calendar // of the bucket's limits; nil if none has windows

	// The next write.
	demand        plan.Demand
	served        int // the number of requests in demand
	vectors       plan.VectorPool
	plan          plan.Plan
	headroom      plan.Headroom
	stored        plan.Stored   // for those who go first after a lost race
	extends       bool          // the next write does nothing but extend holds
	reshapes      bool          // an acquire is to reshape the bucket
	taken         bool          // a settle of the bucket may be in the next write
	lost          bool          // the last attempt lost a race here
	conditionHeld bool          // plan's condition held, in a transaction that failed elsewhere
	sent          *unknownWrite // the last write that may have been applied; nil if none
	round         int           // the batch's, for targetsOf
}

// unknownWrite is a write of unknown outcome.
type unknownWrite struct {
	plan     plan.Plan
	take     []int64 // by acquires, millitokens
	requests []*Request
	earlier  *unknownWrite // under the same op, with a lower ttl, by which the two are told apart; nil if none
}

// targets are the buckets of a batch, in the order in which its requests name them.
type targets []*target

// init makes t the target of a portion.
func (t *target) init(pn *portion) {
	t.cached, t.windows = pn.cached, pn.windows
	t.View = pn.view()
	t.View.Init(pn.confirmed)
}

// reset prepares t for another write. The bucket may have been written to by others, or by a chain's queue,
// so t starts from what is known now.
func (t *target) reset() {
	t.sent, t.conditionHeld, t.lost = nil, false, false
	t.Reset()
}

// state returns what is known of the bucket at now.
func (t *target) state(now int64) plan.State { return t.State(now, t.sent != nil) }

// add makes t's demand at now that of all requests.
func (t *target) add(all []*Request, now int64) {
	t.demand, t.served = plan.Demand{Pool: &t.vectors}, len(all)
	t.demand.Lapsed, t.demand.Moves = t.lapsedAndMoves(all, now)
	if t.Shape != nil {
		t.demand.Shape = &t.Shape.Shape
	}
	for _, r := range all {
		vector := &t.demand.Take
		if r.settle {
			vector = &t.demand.Change
		} else if pn := r.portionOf(t); pn != nil {
			t.windows = pn.windows // those of settles may be old
		}
		t.demand.Called = max(t.demand.Called, r.called)
		switch cost := r.costOf(t); {
		case cost == nil:
		case *vector == nil && len(all) == 1:
			*vector = cost
		case *vector == nil:
			*vector = slices.Clone(cost)
		default:
			for j, n := range cost {
				(*vector)[j] = bucket.Add((*vector)[j], n)
			}
		}
	}
	t.SettlesOnly, t.demand.Windows = t.demand.SettlesOnly(), t.windows
	t.extends = !slices.ContainsFunc(all, func(r *Request) bool { return !r.extends })
}

// lapsedAndMoves returns what the settles and extensions among all change in t at now without a change in
// usage (bucket.EndOf): in the balances, and in the cells. Either is nil for nothing.
func (t *target) lapsedAndMoves(all []*Request, now int64) (lapsed []int64, moves []bucket.Moves) {
	for _, r := range all {
		pn := r.portionOf(t)
		if pn == nil || !r.settle || pn.charges == nil && t.windows == nil {
			continue
		}
		var own []int64
		var ownMoves []bucket.Moves
		if r.extends {
			if t.Image != nil {
				ownMoves, _ = bucket.Extend(t.Image, pn.charges[0], now)
			}
		} else {
			own, ownMoves = bucket.EndOf(t.Image, pn.cost, pn.charges, now)
		}
		if lapsed == nil {
			lapsed = own
		} else {
			for j, n := range own {
				lapsed[j] = bucket.Add(lapsed[j], n)
			}
		}
		if moves == nil {
			moves = ownMoves
		} else {
			for j, m := range ownMoves {
				moves[j] = moves[j].And(m)
			}
		}
	}
	return lapsed, moves
}

// givenBack returns what the settles among all give back to t at now.
func (t *target) givenBack(all []*Request, now int64) []int64 {
	back := make([]int64, len(t.Shape.Limits))
	lapsed, _ := t.lapsedAndMoves(all, now)
	for j, n := range lapsed {
		back[j] = -n
	}
	for _, r := range all {
		for j, c := range r.costOf(t) {
			if r.settle {
				back[j] = bucket.Sub(back[j], c)
			}
		}
	}
	return back
}

// shouldRead reports whether to read the bucket first, since the planned write will probably fail. The
// bucket is contended then, and its image is old or predicted. Also, the stored tokens do not cover the
// cost, or the write is a Normal and most of those have lost lately. A read costs a fifth of a failed write.
// An extension comes once a minute, so its image is old if other processes extend their holds too.
func (t *target) shouldRead(now int64) bool {
	if t.extends && !t.state(now).SoleWriter && t.IsStaleSibling(now) {
		return true
	}
	return t.IsStale(now) && (t.plan.Path == plan.Normal && t.Bucket.LosesClaims() ||
		t.isShort(func(b bucket.Balance, take int64) bool { return b.Tokens < take }))
}

// isScarce reports whether the bucket has less than half of a burst that is taken from.
func (t *target) isScarce() bool {
	return t.isShort(func(b bucket.Balance, _ int64) bool { return b.Tokens < b.Burst/2 })
}

func (t *target) goesByRetry() bool { return t.plan.Path == plan.Retry }

// isShort reports whether short holds for a limit that is taken from: its balance, and what is taken, in
// millitokens.
func (t *target) isShort(short func(b bucket.Balance, take int64) bool) bool {
	if t.Image == nil || t.demand.Take == nil {
		return false
	}
	for i, b := range t.Image.Balances {
		if b.Windowed() && b.Over(t.demand.Called) { // the next window is full
			continue
		}
		if take := t.demand.Take[i]; take > 0 && !t.Image.Missing[i] && short(b, take) {
			return true
		}
	}
	return false
}

// recordApplied notes in the portions of all what p did, applied to t under op. That is the image after it,
// and the limits that it did not charge, since the bucket does not have them. An earlier attempt may have
// dropped others.
func (t *target) recordApplied(all []*Request, p *plan.Plan, op string) {
	dropped := p.Missing
	if dropped != nil {
		dropped = dropped[:len(t.Resource.Spec.Limits)]
	}
	ends, epochs := p.ChargedEnds(t.Image, op), p.ChargedEpochs()
	for _, r := range all {
		if pn := r.portionOf(t); pn != nil {
			pn.after, pn.limits, pn.dropped = t.Image, t.Shape.Limits, dropped
			if pn.ends, pn.epochs = ends, epochs; r.extends {
				pn.epochs = p.Extended(&pn.charges[0])
			}
		}
	}
}

// noteUnknown notes that p, whose outcome is unknown, was sent for all.
func (t *target) noteUnknown(p plan.Plan, all []*Request) {
	earlier := t.sent
	if earlier != nil && earlier.plan.IsLike(&p) && slices.Equal(earlier.requests, all) {
		earlier = earlier.earlier
	}
	t.sent = &unknownWrite{p, slices.Clone(t.demand.Take), all, earlier}
}

// before returns the write of unknown outcome under op that left img, of those before s, nil if none did.
func (s *unknownWrite) before(img *bucket.Image, op string) *unknownWrite {
	for s = s.earlier; s != nil && (img == nil || img.Op != op || img.TTL != s.plan.TTL); {
		s = s.earlier
	}
	return s
}

// leastTTL returns the least ttl of a write for all, in seconds. A write of unknown outcome may have been
// for others, or may hold what it takes in another epoch. Then the ttl is higher than that of the earlier
// write: both have one op, so the ttl says which of them was applied.
func (t *target) leastTTL(all []*Request) int64 {
	switch {
	case t.sent == nil:
		return 0
	case slices.Equal(t.sent.requests, all) && t.sent.plan.HoldsLike(&t.plan):
		return t.sent.plan.TTL
	}
	return t.sent.plan.TTL + 1
}

// covered returns the plan that left t's image, under the batch's op, and the requests that the plan served.
// The image's ttl says which of the writes of unknown outcome that was. If it is above theirs, it was the
// newest plan, for latest.
func (t *target) covered(latest []*Request) (*plan.Plan, []*Request) {
	s := t.sent
	if s == nil || t.Image.TTL > s.plan.TTL {
		return &t.plan, latest
	}
	for s.earlier != nil && t.Image.TTL <= s.earlier.plan.TTL {
		s = s.earlier
	}
	return &s.plan, slices.DeleteFunc(slices.Clone(s.requests), (*Request).hasEnded)
}

// noteLost notes that p lost to another writer at now, who left found. A nil found is a deleted bucket:
// nobody won a race.
func (t *target) noteLost(p *plan.Plan, found *bucket.Image, now int64) {
	if t.lost = found != nil; t.lost {
		claims := p.Path == plan.Normal && found.Version == p.Image.Version
		if t.Bucket.NoteConflict(now, claims); claims {
			t.Bucket.NoteClaim(true)
		}
	}
}

// deny adds t's refusal of r, which the plan is for, to denied, which may be nil. It returns denied unchanged
// if t does not refuse.
func (t *target) deny(denied *store.DeniedError, r *Request, now int64) *store.DeniedError {
	if img := t.plan.DeniedImage(); img != nil && t.Needs == 0 {
		return t.refuse(denied, r, img, t.demand.Take, now)
	}
	return denied
}

// refuse adds to e, which may be nil, what img has less than cost at now, which r takes, and returns it.
func (t *target) refuse(
	e *store.DeniedError, r *Request, img *bucket.Image, cost []int64, now int64,
) *store.DeniedError {
	return t.Shape.Refuse(e, t.specFor(r), t.Entity, img, cost, now)
}

// specFor returns the resource that r has t's bucket of. Of several requests for a bucket of all names of a
// template, each has its name.
func (t *target) specFor(r *Request) *store.Spec {
	if pn := r.portionOf(t); pn != nil {
		return pn.resource.Spec
	}
	return t.Resource.Spec
}

// of returns the target of a bucket, nil if there is none.
func (ts targets) of(cached *cachedBucket) *target {
	for _, t := range ts {
		if t.cached == cached {
			return t
		}
	}
	return nil
}

// views returns what is known of the targets' buckets.
func (ts targets) views() []*known.View {
	all := make([]*known.View, len(ts))
	for i, t := range ts {
		all[i] = &t.View
	}
	return all
}

// resourceName returns the first target's resource, for errors.
func (ts targets) resourceName() string { return ts[0].Resource.Spec.Resource }

// denied returns the denial of r by all targets that refuse it, nil if none does.
func (ts targets) denied(r *Request, now int64) (denied *store.DeniedError) {
	for _, t := range ts {
		denied = t.deny(denied, r, now)
	}
	return denied
}

// tooLarge returns the error of the first target whose burst r exceeds, nil if there is none.
func (ts targets) tooLarge(r *Request) error {
	for _, t := range ts {
		if t.plan.Decision == plan.TooLarge {
			return store.Exceeds(t.specFor(r), t.Entity, t.plan.Image, t.demand.Take, math.MaxInt64)
		}
	}
	return nil
}

// attempts is the state of one logical write over all its attempts. They share an op as startOp says, so
// an attempt that was applied although its reply was lost is recognised in the bucket.
type attempts struct {
	op        string
	served    []*Request         // by the last one; they may be in other queues by now
	gaveBack  bool               // the last one gave something back
	n         int                // attempts so far, failed reads before the write included
	err       error              // of the last one, until the pause that follows; nil if none is due
	lastErr   error              // of the last one, from that pause on
	cause     error              // of the last one that failed for another reason than its deadline
	lostAt    *target            // where the last race was lost
	conflicts int                // attempts that met a transaction
	races     int                // attempts that lost one
	throttled bool               // an attempt was throttled
	paces     bool               // the last one was a write that the pacer delays the next one for
	plannedAt int64              // ms
	denied    *store.DeniedError // of the only request, known while the rest of the chain is still to be read
	ctx       context.Context    // of the last step
}

var errContended = errors.New("every write lost its race against other writers")

// ErrUncertain is in the error of a lazy settle whose transaction had an unknown outcome.
var ErrUncertain = errors.New("whether it was written is not known")

// unavailable returns the error of an attempt without an answer. A deadline says little by itself, so the
// error also names why an earlier attempt failed. An error that somebody has to fix is returned as it is.
func (a *attempts) unavailable(resource string, err error) error {
	if setup, ok := errors.AsType[*store.SetupError](err); ok {
		return setup
	}
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		a.cause = err
	} else if a.cause != nil {
		err = fmt.Errorf("%w, after %w", err, a.cause)
	}
	return &store.UnavailableError{Resource: resource, Throttled: a.throttled, Err: err}
}

// contendedErr returns the error of an attempt that lost a race or hit a TransactionConflict.
func (a *attempts) contendedErr() error {
	return &store.ContendedError{
		Resource: a.lostAt.Resource.Spec.Resource, Entity: a.lostAt.Entity, Conflicts: a.conflicts,
	}
}

// errFor returns the last attempt's error as r's caller gets it. A *store.ContendedError promises that
// nothing was charged and that trying again is safe, so it is returned only where both are known.
func (a *attempts) errFor(r *Request, unknown bool) error {
	err := cmp.Or(a.err, a.lastErr)
	if u, ok := errors.AsType[*store.UnavailableError](err); ok {
		own := *u
		own.Attempts = r.attempts
		return &own
	}
	lost, ok := errors.AsType[*store.ContendedError](err)
	switch {
	case !ok:
		return err
	case !unknown && !r.settle:
		own := *lost
		own.Attempts = r.attempts
		return &own
	}
	return &store.UnavailableError{
		Resource: lost.Resource, Attempts: r.attempts, Throttled: a.throttled, Err: errContended,
	}
}
