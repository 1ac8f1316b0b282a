package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/store"
)

// target is one bucket that a batch writes to.
type target struct {
	resource *resource
	entity   string // as stored
	kind     int
	cached   *cachedBucket

	// Knowledge of the bucket.
	image     *bucket.Image
	confirmed bool  // image is true, or there is no bucket, by a reply within this write
	seenAt    int64 // when image was true, ms; predicted if it never was
	justRead  bool  // image was read for the next attempt
	shape     *override.Resolved

	// Reads that the next plan needs, and how they are done.
	missing           need
	readsKind         bool // with the entity's override, that of its kind is read
	readsHeartbeat    bool // with the overrides, the heartbeat is read
	needsHeartbeat    bool // the override read last refers to a newer heartbeat than the known one
	overridesResolved bool // the overrides were read for this write

	// The next write.
	demand        plan.Demand
	settlesOnly   bool // no acquire is among the requests
	served        int  // the number of requests in demand
	vectors       plan.VectorPool
	plan          plan.Plan
	conditionHeld bool  // plan's condition held, in a transaction that failed elsewhere
	sent          *sent // the last write that may have been applied; nil if none
}

// sent is a write of unknown outcome.
type sent struct {
	plan plan.Plan
	take []int64 // by acquires, millitokens
}

// targets are the buckets of a batch, in the order of the chain.
type targets []*target

// init makes t the target of a portion.
func (t *target) init(pn *portion) {
	t.resource, t.entity, t.kind, t.cached = pn.resource, pn.entity, pn.kind, pn.cached
	t.image, t.seenAt, t.shape = pn.cached.snapshot()
	t.confirmed = pn.confirmed && t.image == nil
}

// reset prepares t for another write. Others may have written to the bucket beside this queue, so the cache
// is asked again.
func (t *target) reset() {
	t.sent, t.overridesResolved, t.conditionHeld, t.confirmed = nil, false, false, false
	t.image, t.seenAt, t.shape = t.cached.snapshot()
}

// update stores an image, nil for a missing bucket, that was true at seenAt, or is predicted.
func (t *target) update(img *bucket.Image, seenAt int64) {
	t.image, t.confirmed, t.seenAt, t.justRead = img, seenAt != predicted, seenAt, false
	t.cached.update(img, seenAt)
}

// state returns what is known of the bucket at now. While the outcome of a write is unknown, an older image
// decides nothing.
func (t *target) state(now int64) plan.State {
	return plan.State{
		Image:      t.image,
		Confirmed:  t.confirmed || t.image != nil && t.sent == nil && isFresh(t.seenAt, now, trustedFor),
		LeaveSlack: t.cached.leavesSlack(now),
	}
}

// isOutdated reports whether the bucket should be given another shape.
func (t *target) isOutdated() bool { return t.image != nil && plan.Outdated(t.image, &t.shape.Shape) }

// wrote reports whether op is the bucket's last write, as far as is known.
func (t *target) wrote(op string) bool { return t.image != nil && t.image.Op == op }

// add makes t's demand that of all requests. t is the batch's i-th target.
func (t *target) add(all []*request, i int) {
	t.demand, t.served = plan.Demand{Pool: &t.vectors}, len(all)
	if t.shape != nil {
		t.demand.Shape = &t.shape.Shape
	}
	for _, r := range all {
		vector := &t.demand.Take
		if r.settle {
			vector = &t.demand.Change
		}
		t.demand.Called = max(t.demand.Called, r.called)
		switch cost := r.costOf(i); {
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
	t.settlesOnly = t.demand.SettlesOnly()
}

// adjust returns a write of cost that applies even if others write meanwhile.
func (t *target) adjust(cost []int64, img *bucket.Image, now int64) plan.Plan {
	p := plan.NewAdjust(cost, img, &t.shape.Shape, now)
	p.Decision = plan.Write
	return p
}

// givenBack returns what the settles among all give back to t, the batch's i-th target.
func (t *target) givenBack(all []*request, i int) []int64 {
	back := make([]int64, len(t.shape.Limits))
	for _, r := range all {
		for j, c := range r.costOf(i) {
			if r.settle {
				back[j] = bucket.Sub(back[j], c)
			}
		}
	}
	return back
}

// shouldRead reports whether t's write will probably fail: it needs refill, other writers are at work, and
// the image is old or predicted. A read costs a fifth of a failed write, and may deny.
func (t *target) shouldRead(now int64) bool {
	if t.image == nil || t.justRead || isFresh(t.seenAt, now, staleAfter) || !t.cached.isContended(now) {
		return false
	}
	for i, b := range t.image.Balances {
		if t.demand.Take != nil && t.demand.Take[i] > 0 && !t.image.Missing[i] && b.Tokens < t.demand.Take[i] {
			return true
		}
	}
	return false
}

// recordApplied notes in the portions of all what p did, which was applied to the batch's i-th target. It
// notes the image after it, and the limits that were not charged because they are missing in the bucket. An
// earlier attempt may have dropped other limits.
func (t *target) recordApplied(all []*request, i int, p *plan.Plan) {
	dropped := p.Missing
	if dropped != nil {
		dropped = dropped[:len(t.resource.Spec.Limits)]
	}
	for _, r := range all {
		if pn := r.portionOf(i); pn != nil {
			pn.after, pn.limits, pn.dropped = t.image, t.shape.Limits, dropped
		}
	}
}

// noteLost notes that p lost to another writer at now, who left found. A nil found is a deleted bucket:
// nobody won a race.
func (t *target) noteLost(p *plan.Plan, found *bucket.Image, now int64) {
	if found != nil {
		t.cached.noteConflict(now, p.Path == plan.Normal && found.Version == p.Image.Version)
	}
}

// deny adds t's refusal of the planned demand to denied, which may be nil. It returns denied unchanged if t
// does not refuse.
func (t *target) deny(denied *store.DeniedError, now int64) *store.DeniedError {
	if img := t.plan.DeniedImage(); img != nil && t.missing == 0 {
		return store.Refuse(denied, t.resource.Spec, t.entity, img, t.demand.Take, now)
	}
	return denied
}

// unknown reports whether a write may have been applied although no reply said so. A transaction is of all
// targets.
func (ts targets) unknown() bool { return len(ts) > 0 && ts[0].sent != nil }

// resourceName returns the first target's resource, for errors.
func (ts targets) resourceName() string { return ts[0].resource.Spec.Resource }

// denied returns the denial by all targets that refuse their demand, nil if none does.
func (ts targets) denied(now int64) (denied *store.DeniedError) {
	for _, t := range ts {
		denied = t.deny(denied, now)
	}
	return denied
}

// tooLarge returns the error of the first target whose demand exceeds a burst, nil if none does.
func (ts targets) tooLarge() error {
	for _, t := range ts {
		if t.plan.Decision == plan.TooLarge {
			return store.Exceeds(t.resource.Spec, t.entity, t.plan.Image, t.demand.Take)
		}
	}
	return nil
}

// attempts is the state of one logical write over all its attempts. They share an op unless requests join, so
// an attempt that was applied although its reply was lost is recognised in the bucket.
type attempts struct {
	op          string
	n           int                // attempts so far, failed reads before the write included
	err         error              // of the last one, until the pause that follows; nil if none is due
	lastErr     error              // of the last one, from that pause on
	cause       error              // of the last one that failed for another reason than its deadline
	lostAt      *target            // where the last race was lost
	conflicts   int                // attempts that met a transaction
	throttled   bool               // an attempt was throttled
	plannedAt   int64              // ms
	transaction *wire.Transaction  // of unknown outcome: the next attempt sends it again, byte for byte
	denied      *store.DeniedError // of the only request, known while the rest of the chain is still to be read
	ctx         context.Context    // of the last step
}

var (
	errContended = errors.New("every write lost its race against other writers")
	errUncertain = errors.New("whether it was written is not known")
)

// newOpForJoiners gives the next attempt a new op: a late copy of the previous attempt does not include the
// newcomers. If the previous attempt gave something back, the op stays, since under two ops that copy and the
// next attempt would both give it. A late copy that is mistaken for the next attempt remains possible, on a
// network that repeats what it has delivered.
func (a *attempts) newOpForJoiners(pending []*request) {
	if !slices.ContainsFunc(pending, (*request).givesBack) {
		a.op = ""
	}
}

// unavailable returns the error of an attempt without an answer. A deadline says little by itself, so the
// error names what an earlier attempt met as well. An error that somebody has to fix is returned as it is.
func (a *attempts) unavailable(resource string, o wire.Outcome, err error) error {
	if setup, ok := errors.AsType[*store.SetupError](err); ok {
		return setup
	}
	a.throttled = a.throttled || o == wire.Throttled
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		a.cause = err
	} else if a.cause != nil {
		err = fmt.Errorf("%w, after %w", err, a.cause)
	}
	return &store.UnavailableError{Resource: resource, Throttled: a.throttled, Err: err}
}

// lost returns the error of an attempt that lost a race or hit a TransactionConflict.
func (a *attempts) lost() error {
	return &store.ContendedError{
		Resource: a.lostAt.resource.Spec.Resource, Entity: a.lostAt.entity, Conflicts: a.conflicts,
	}
}

// errFor returns the last attempt's error as r's caller gets it. A *store.ContendedError promises that
// nothing was charged and that trying again is safe, so it is returned only where both are known.
func (a *attempts) errFor(r *request, unknown bool) error {
	if u, ok := errors.AsType[*store.UnavailableError](a.err); ok {
		own := *u
		own.Attempts = r.attempts
		return &own
	}
	lost, ok := errors.AsType[*store.ContendedError](a.err)
	switch {
	case !ok:
		return a.err
	case !unknown && !r.settle:
		own := *lost
		own.Attempts = r.attempts
		return &own
	}
	return &store.UnavailableError{
		Resource: lost.Resource, Attempts: r.attempts, Throttled: a.throttled, Err: errContended,
	}
}
