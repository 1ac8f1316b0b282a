// Package known holds what a session, so one Limiter, knows of buckets: their images, the limits in force,
// whether others write to them. It reads what a write needs to know, and denies by what is known alone.
package known

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Bucket is what a session knows of one bucket. It is safe for concurrent use. Of two images that DynamoDB
// returned, the later one stays, whichever arrives last. A predicted image replaces any, and any replaces it.
type Bucket struct {
	At wire.Bucket

	own atomic.Int64 // this session's writes of the entity's override
	of  *Resource    // which counts those of the kind's, and of the plans

	mu             sync.Mutex         // guards what follows
	image          *bucket.Image      // nil if unknown or deleted
	seenAt         int64              // when image was true, ms; Predicted if DynamoDB did not return it
	shape          *override.Resolved // nil if unknown
	on             *store.OnPlan      // as the latest call or read found it; nil if no plan concerns it
	refresh        *Refresh           // nil while none is under way
	slackUntil     int64              // until then Normals leave slack, ms
	contendedUntil int64              // until then other writers are assumed, ms
	losses         int                // of 1024 claims of refill, those that lost, on average
	sharedUntil    int64              // until then give-backs do not depend on the last write, ms
	giveBacks      int                // lazy settles that give something back, those under way included
	lastDenial     *denial            // of a chain that begins here
}

// Init makes b the bucket of an entity of a kind, as stored, on r.
func (b *Bucket) Init(r *Resource, kind int, entity string) {
	b.of = r
	b.At = wire.Bucket{Resource: &r.byKind[kind], Partition: item.EntityPrefix + entity}
	b.At.Entity = b.At.Partition[len(item.EntityPrefix):]
}

// Times for which a process goes by what it saw, in milliseconds.
const (
	// slackFor is how long a process leaves slack after it lost a Normal, or met a transaction.
	slackFor = 1000
	// contendedFor is how long after a lost race other writers are assumed at work on the bucket.
	contendedFor = 10_000
	// sharedFor is how long give-backs go unguarded after another write defeated a guarded one. So the guard
	// costs a process one write unit in that time, for each bucket.
	sharedFor = 600_000
	// StaleAfter is the age from which a write that needs refill probably fails on a contended bucket. A younger
	// image is worth the attempt: reads before each write cost half as much again in an overload.
	StaleAfter = 64
	// siblingsStaleAfter is the age from which a transaction reads its buckets first, if other processes write
	// to their root. A read of a bucket costs a tenth of its part in a cancelled transaction.
	siblingsStaleAfter = 5
	// TrustedFor is how long an image may deny. Later on, others may have given something back.
	TrustedFor = 1000
)

// Predicted stands for the time of an image that DynamoDB did not return.
const Predicted = math.MinInt64

// isFresh reports whether an image that was true at seenAt is at most age old at now. It is not if the clock
// was set back.
func isFresh(seenAt, now, age int64) bool {
	return seenAt != Predicted && now >= seenAt && now-seenAt <= age
}

// Snapshot returns the image, the time at which it was true, and the shape.
func (b *Bucket) Snapshot() (img *bucket.Image, seenAt int64, shape *override.Resolved) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.image, b.seenAt, b.shape
}

// Update stores an image, nil for a missing bucket, that was true at seenAt, or is predicted. An older one is
// ignored: replies may overtake each other. One much older is stored: the clock was set back, or else the
// next write costs one more attempt.
func (b *Bucket) Update(img *bucket.Image, seenAt int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	older := b.seenAt - seenAt
	if seenAt == Predicted || b.seenAt == Predicted || b.image == nil || older <= 0 || older > TrustedFor {
		b.image, b.seenAt = img, seenAt
	}
}

// Invalidate makes the next call read the bucket first.
func (b *Bucket) Invalidate() { b.Update(nil, Predicted) }

// SetShape stores the shape that the bucket should have. by is the Refresh that read it, or nil. A Refresh
// that has ended stores nothing, since newer overrides may have been read meanwhile.
func (b *Bucket) SetShape(shape *override.Resolved, by *Refresh) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if by == nil || by == b.refresh {
		b.shape = shape
	}
}

// writes counts this session's writes of what decides b's numbers. A shape from before one of them is read
// again.
func (b *Bucket) writes() int64 {
	return b.own.Load() + b.kindWrites() + b.of.planWrites.Load() + b.of.entryWrites.Load()
}

// isBehind reports whether shape, which b has in r, is from before a write of this session's. A shape is
// behind too if a call has found another plan since, which on is, or a later entry of the catalog.
func (b *Bucket) isBehind(r *Resource, shape *override.Resolved, on *store.OnPlan) bool {
	return shape.Writes != b.writes() || hasNewerPlan(shape, on) || r.newEntry(shape, b.At.Kind)
}

// kindWrites counts this session's writes of the override of b's kind.
func (b *Bucket) kindWrites() int64 { return b.of.writes[b.At.Kind].Load() }

// AddGiveBacks changes the number of lazy settles that give something back.
func (b *Bucket) AddGiveBacks(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.giveBacks += n
}

// NoteConflict notes that a write lost to another writer at now. concurrent says that both were at work at
// the same time: a claim of refill was lost, or a transaction was under way. Then this process leaves slack.
func (b *Bucket) NoteConflict(now int64, concurrent bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.contendedUntil = now + contendedFor
	if concurrent {
		b.slackUntil = now + slackFor
	}
}

// NoteClaim notes that a claim of refill held, or would have held, or was lost to others.
func (b *Bucket) NoteClaim(lost bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.losses -= b.losses / 8; lost {
		b.losses += 1024 / 8
	}
}

// LosesClaims reports whether others claim refill first more often than not.
func (b *Bucket) LosesClaims() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.losses > 512
}

// NoteShared notes that another write came between a guarded give-back and its image: another process's, or
// one that this process made for another queue.
func (b *Bucket) NoteShared(now int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sharedUntil = now + sharedFor
}

// IsContended reports whether other writers are assumed at work on the bucket at now.
func (b *Bucket) IsContended(now int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return lasts(b.contendedUntil, now, contendedFor)
}

// LeavesSlack reports whether Normals leave slack at now.
func (b *Bucket) LeavesSlack(now int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return lasts(b.slackUntil, now, slackFor)
}

// isShared reports whether give-backs go unguarded at now.
func (b *Bucket) isShared(now int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return lasts(b.sharedUntil, now, sharedFor)
}

// lasts reports whether what was noted for a time still holds at now. It does not if the clock was set back.
func lasts(until, now, noted int64) bool { return until > now && until-now <= noted }

// View is what one writer knows of a bucket: what the process knew when the write began, and what its own
// calls have shown since. One goroutine at a time uses it.
type View struct {
	Resource *Resource
	Entity   string // as stored
	Kind     int
	Bucket   *Bucket

	Image     *bucket.Image
	Confirmed bool  // Image is true, or there is no bucket, by a reply within this write
	seenAt    int64 // when Image was true, ms; Predicted if it never was
	JustRead  bool  // Image was read for the next attempt; an attempt ends that
	Shape     *override.Resolved
	on        *store.OnPlan // by which the next write goes; nil if no plan concerns the bucket
	refresh   *Refresh      // for which v is read; nil for none

	// Reads that the next plan needs, and how they are done.
	Needs             Need
	SettlesOnly       bool  // no acquire is among the requests: overrides are not asked for
	readsKind         bool  // with the entity's override, that of its kind is read
	readsHeartbeat    bool  // with the overrides, the heartbeat is read
	needsHeartbeat    bool  // the override read last refers to a newer heartbeat than the known one
	overridesResolved bool  // the overrides were read for this write, or the old ones serve it: no read again
	writes            int64 // of overrides by this process, before the read
	kindWrites        int64 // those of the kind's
	readsPlans        bool  // with the overrides, the plans are read
	planWrites        int64 // this process's writes of the plans, before the read
	ownerConfirmed    bool  // whose plan counts was read for this write, after Image
}

// Init starts from what is known of v's bucket. read says that the bucket was read for this write.
func (v *View) Init(read bool) {
	v.Image, v.seenAt, v.Shape = v.Bucket.Snapshot()
	if v.ownerConfirmed = false; v.isOnPlans() {
		v.on = v.Bucket.onPlan()
	}
	v.Confirmed = read && v.Image == nil
}

// Reset prepares v for another write. Others may have written to the bucket meanwhile.
func (v *View) Reset() {
	v.overridesResolved = false
	v.Init(false)
}

// Update stores an image, nil for a missing bucket, that was true at seenAt, or is Predicted.
func (v *View) Update(img *bucket.Image, seenAt int64) {
	v.Image, v.Confirmed, v.seenAt, v.JustRead, v.ownerConfirmed = img, seenAt != Predicted, seenAt, false, false
	v.Bucket.Update(img, seenAt)
}

// State returns what is known at now. unsure says that the outcome of a write is unknown: then an older image
// decides nothing.
func (v *View) State(now int64, unsure bool) plan.State {
	return plan.State{
		Image:      v.Image,
		Confirmed:  v.Confirmed || v.Image != nil && !unsure && v.isYounger(TrustedFor, now),
		LeaveSlack: v.Bucket.LeavesSlack(now),
		SoleWriter: !v.Bucket.isShared(now),
	}
}

// IsOutdated reports whether the bucket should be given another shape.
func (v *View) IsOutdated() bool { return v.Image != nil && plan.Outdated(v.Image, &v.Shape.Shape) }

// Wrote reports whether op is the bucket's last write, as far as is known.
func (v *View) Wrote(op string) bool { return v.Image != nil && v.Image.Op == op }

// IsStale reports whether a write that needs refill will probably fail: other writers are at work, and the
// image is old or predicted.
func (v *View) IsStale(now int64) bool {
	return v.Image != nil && !v.JustRead && !v.isYounger(StaleAfter, now) && v.Bucket.IsContended(now)
}

// IsStaleSibling reports whether a transaction whose root other processes write to should read the bucket
// first: its image is old or predicted. One that an earlier attempt of this write has confirmed is old too
// after the pause that followed.
func (v *View) IsStaleSibling(now int64) bool {
	return v.Image != nil && !v.JustRead && !v.isYounger(siblingsStaleAfter, now)
}

// isYounger reports whether the image is at most age old at now, both in ms.
func (v *View) isYounger(age, now int64) bool { return isFresh(v.seenAt, now, age) }

// Refresh is a read of overrides that are due, in parallel with the write of one request, which goes by the
// old ones. Other acquires of the buckets wait for the read (Wait). If it shows changes, they also wait for
// the end of the request: it gives back what it took by the old limits before a bucket gets the new ones.
type Refresh struct {
	views       []*View
	before      []*override.Resolved
	read, ended chan struct{}
	once        sync.Once // closes ended
}

func (b *Bucket) setRefresh(f *Refresh) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refresh = f
}

// Outdated waits until the overrides are read. It reports whether those of b have changed and did not decide
// img, nil if unknown. It returns false if ctx ends first.
func (f *Refresh) Outdated(ctx context.Context, b *Bucket, img *bucket.Image) bool {
	select {
	case <-f.read:
	case <-ctx.Done():
		return false
	}
	i := slices.IndexFunc(f.views, func(v *View) bool { return v.Bucket == b })
	if i < 0 {
		return false
	}
	current := f.views[i].Shape
	return f.changed(i) && (current == nil || img == nil || img.Version != current.Version ||
		current.ChangesPlan(img))
}

// changed reports whether the overrides of the i-th view have changed, or could not be read.
func (f *Refresh) changed(i int) bool {
	after, before := f.views[i].Shape, f.before[i]
	return after == nil || after.Version != before.Version || after.PlanOf != before.PlanOf
}

// Wait waits until f lets others go on, but no longer than within, nor than ctx. It reports whether f does.
// Else the limits that are known serve meanwhile.
func (f *Refresh) Wait(ctx context.Context, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	select {
	case <-f.ended:
		return true
	case <-ctx.Done():
		return false
	}
}

// End lets others go on, if the read has not yet.
func (f *Refresh) End() {
	f.once.Do(func() {
		for _, v := range f.views {
			v.Bucket.setRefresh(nil)
		}
		close(f.ended)
	})
}
