package known

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/internal/lookups"
	"github.com/sluice-go/sluice/runtime/store"
)

// Need is a set of what has to be read before a write can be planned.
type Need uint8

// Values of Need.
const (
	NeedImage     Need = 1 << iota // the bucket
	NeedOverrides                  // its overrides
	NeedNewer                      // its overrides again: the bucket has newer ones, or this process wrote some
	NeedWhole                      // all that decides its numbers, consistently, since the bucket is to get them
)

var errUnprocessed = errors.New("DynamoDB left keys of a batch unread")

// Resolve is like override.Resolve.
type Resolve func(*store.Spec, int, *override.Sources, int64) (*override.Resolved, error)

// Reader reads buckets, overrides, and the heartbeat of regional sync. It is safe for concurrent use.
type Reader struct {
	Conn     *wire.Conn
	KeepIdle int64   // how long the item of an idle bucket stays at least, ms
	Resolve  Resolve // nil, or in place of override.Resolve

	heartbeat atomic.Pointer[override.Heartbeat] // as last read; nil before, and if no resource has regions
	notices   override.Notices
	beginning sync.Mutex // held while a Refresh begins
	moves     moves

	// Stale is called for an entity whose remembered parent or plan is older than the one just read.
	Stale func(entity string)
}

// isFresh reports whether overrides of spec that were read at an instant may be used at now. Those of a
// resource with regions are used for no longer than a window.
func (r *Reader) isFresh(spec *store.Spec, readAt, now int64) bool {
	ttl := r.Conn.Env.CacheTTL
	if spec.Regions != nil {
		ttl = min(ttl, spec.Regions.Window)
	}
	return lookups.TTL(ttl).Fresh(readAt, now)
}

// OverridesNeeded returns whether v's overrides have to be read: when they are due, at most once in a write,
// and once more if the bucket has seen newer ones. They are read, consistently, after each write of them by
// this process, and once a call finds another plan or a later entry. A settle works with the bucket's own
// parameters.
func (r *Reader) OverridesNeeded(v *View, now int64) Need {
	spec := v.Resource.Spec
	switch {
	case v.Shape == nil:
		return NeedOverrides
	case v.SettlesOnly:
		return 0
	case v.Bucket.isBehind(v.Resource, v.Shape, v.on):
		return NeedNewer
	case !v.overridesResolved && !r.isFresh(spec, v.Shape.ReadAt, now), v.Shape.Expired(spec, now):
		return NeedOverrides
	case v.Image != nil && !v.Shape.Rechecked &&
		v.Image.Version%bucket.RevisionUnit > v.Shape.Version%bucket.RevisionUnit:
		return NeedNewer
	}
	return 0
}

// WholeNeeded returns NeedWhole if p gives the bucket overrides that were read at different times. Otherwise
// two processes could each take the other's shape for the older one: one knows the entity's new override and
// the kind's old one, the other the reverse. NeedWhole is also returned if p gives the bucket another
// entity's plan, unless that was read after the bucket: no version says which of two entities came later.
func (v *View) WholeNeeded(p *plan.Plan) Need {
	const unit = bucket.RevisionUnit
	switch {
	case p.Path != plan.Reshape || p.Decision != plan.Write:
		return 0
	case !v.Shape.Whole && p.Version%unit != p.Image.Version%unit,
		v.isOnPlans() && v.Shape.ChangesPlan(p.Image) && !v.ownerConfirmed:
		return NeedWhole
	}
	return 0
}

// heartbeatNeeded reports whether the heartbeat is read with v's overrides: once a window, and if the known
// one has expired or is missing.
func (r *Reader) heartbeatNeeded(v *View, now int64) bool {
	known := r.heartbeat.Load()
	return known == nil || v.needsHeartbeat || v.Needs&(NeedNewer|NeedWhole) != 0 || !known.Alive(now) ||
		!r.isFresh(v.Resource.Spec, known.ReadAt, now)
}

// Fetch reads what the views need, 100 items a call. The outcome is Applied, or says why there is no answer.
// If DynamoDB leaves keys unprocessed, the outcome is Throttled, and the views have what was read.
func (r *Reader) Fetch(ctx context.Context, all []*View) (wire.Outcome, error) {
	now := r.Conn.Now()
	if len(all) == 1 && all[0].Needs == NeedImage {
		return r.fetchOne(ctx, all[0])
	}
	if o, err := r.confirmPlanOwners(ctx, all); o != wire.Applied {
		return r.useExpired(all, o, now), err
	}
	keys, consistent := r.keys(all, now)
	read := fetched{
		items: make(map[item.Key]item.Item, len(keys)), unprocessed: map[item.Key]bool{},
		consistent: consistent, at: now,
	}
	for chunk := range slices.Chunk(keys, wire.MaxBatchGet) {
		got, o, err := r.Conn.ReadAll(ctx, all[0].Resource.Spec, chunk, consistent)
		if o != wire.Applied {
			return r.useExpired(all, o, now), err
		}
		maps.Copy(read.items, got.Items)
		for _, key := range got.Unprocessed {
			read.unprocessed[item.KeyOf(key)] = true
		}
	}
	for _, v := range all {
		if err := r.apply(v, &read); err != nil {
			return wire.Failed, err
		}
	}
	if len(read.unprocessed) > 0 {
		return r.useExpired(all, wire.Throttled, now), errUnprocessed
	}
	return wire.Applied, nil
}

// fetchOne reads the bucket of v, the only view, if that needs nothing else.
func (r *Reader) fetchOne(ctx context.Context, v *View) (wire.Outcome, error) {
	img, at, o, err := r.Conn.Read(ctx, &v.Bucket.At)
	if o == wire.Applied {
		v.found(img, at)
	}
	return o, err
}

// found stores an image that was read at an instant, nil for a missing bucket.
func (v *View) found(img *bucket.Image, at int64) {
	if v.Image != nil && img != nil {
		v.Bucket.NoteClaim(img.Refilled != v.Image.Refilled)
	}
	v.Update(img, at)
	v.JustRead = true
}

// keys returns the keys of what the views need, and whether to read them consistently. Overrides alone are
// read without consistency, at half the price: they are used for longer than a replica lags. Quotas are read
// consistently: after a window, a region gives away what it has lowered.
func (r *Reader) keys(all []*View, now int64) (keys []item.Item, consistent bool) {
	shared := map[item.Key]item.Item{} // of several buckets: each once
	for _, v := range all {
		spec := v.Resource.Spec
		if v.Needs&NeedImage != 0 {
			keys = append(keys, v.Bucket.At.Key().Item())
		}
		if v.Needs&^NeedImage != 0 {
			decides := []item.Item{item.OverrideKey(spec.ResourceOf(v.Kind), v.Entity)}
			v.writes, v.kindWrites = v.Bucket.writes(), v.Bucket.kindWrites()
			known := v.Resource.kinds[v.Kind].Load()
			v.readsKind = known == nil || v.Needs&(NeedNewer|NeedWhole) != 0 ||
				!r.isFresh(spec, known.ReadAt, now) || known.Writes != v.kindWrites
			if v.readsKind {
				decides = append(decides, item.OverrideKey(v.Resource.template(), spec.Kinds[v.Kind].Name))
			}
			for _, key := range slices.Concat(decides, v.nameKeys(), r.planKeys(v, now)) {
				shared[item.KeyOf(key)] = key
			}
			if spec.Regions != nil {
				consistent = true
				if v.readsHeartbeat = r.heartbeatNeeded(v, now); v.readsHeartbeat {
					shared[item.Heartbeat] = item.HeartbeatKey()
				}
			}
		}
		consistent = consistent || v.Needs&^NeedOverrides != 0
	}
	return slices.AppendSeq(keys, maps.Values(shared)), consistent
}

// fetched is what one fetch read.
type fetched struct {
	items       map[item.Key]item.Item
	unprocessed map[item.Key]bool
	consistent  bool
	at          int64 // ms
}

// apply updates v from what was read for it: the image, and the overrides if DynamoDB left none of their keys
// unprocessed.
func (r *Reader) apply(v *View, read *fetched) error {
	spec, key := v.Resource.Spec, v.Bucket.At.Key()
	sinceImage := v.Needs&NeedImage == 0 && v.Image != nil
	if v.Needs&NeedImage != 0 && !read.unprocessed[key] {
		img, err := v.Bucket.At.Decode(read.items[key])
		if err != nil {
			return err
		}
		v.found(img, read.at)
		v.Needs &^= NeedImage
	}
	if v.Needs&^NeedImage == 0 || read.leftOverrideUnread(v) || read.leftPlanUnread(v) ||
		v.readsHeartbeat && read.unprocessed[item.Heartbeat] {
		return nil
	}
	from, err := r.planSources(v, read)
	if err != nil {
		return err
	}
	if from.Own, err = read.override(spec, spec.ResourceOf(v.Kind), v.Entity); err != nil {
		return err
	}
	if err := v.addNameSources(read, &from); err != nil {
		return err
	}
	ofKind := v.Resource.kinds[v.Kind].Load()
	if v.readsKind {
		if ofKind, err = read.override(spec, v.Resource.template(), spec.Kinds[v.Kind].Name); err != nil {
			return err
		}
		ofKind.Writes = v.kindWrites
		v.Resource.keepKind(v.Kind, ofKind)
	}
	from.OfKind = ofKind
	if spec.Regions != nil {
		if from.Heartbeat, err = r.heartbeatFor(v, from.Own, read); from.Heartbeat == nil {
			return err
		}
	}
	next, err := r.Resolve.resolve(v, &from, read.at)
	if err != nil {
		return err
	}
	if spec.Regions == nil { // audits of region sync read all buckets, idle ones too
		next.KeepIdle = r.KeepIdle
	}
	next.Writes = v.writes
	next.Whole = v.readsKind && read.consistent && (from.Heartbeat == nil || v.readsHeartbeat) &&
		(from.Plans == nil || v.checksPlan()) && (from.Entry == nil || v.readsEntry())
	next.Rechecked = v.Needs&NeedNewer != 0
	v.ownerConfirmed = v.checksPlan() && sinceImage
	v.overridesResolved, v.Needs, v.needsHeartbeat = true, 0, false
	v.Bucket.SetShape(next, v.refresh)
	v.Shape = next
	r.notices.Note(r.Conn.Env.Logger, r.Conn.Table, spec, next)
	return nil
}

// override decodes the override of a resource at a target, an entity or a kind.
func (f *fetched) override(spec *store.Spec, resource, target string) (*override.Override, error) {
	key := item.KeyOf(item.OverrideKey(resource, target))
	stored, version, err := override.Decode(spec, target, f.items[key])
	if err != nil {
		return nil, err
	}
	return &override.Override{Stored: stored, Version: version, ReadAt: f.at}, nil
}

// heartbeatFor returns the heartbeat that decides whether own, v's override, is in force: the one just read,
// else the known one. It returns nil if own is a quota stored after the known one: then both are read
// together next.
func (r *Reader) heartbeatFor(v *View, own *override.Override, read *fetched) (*override.Heartbeat, error) {
	if !v.readsHeartbeat {
		known := r.heartbeat.Load()
		v.needsHeartbeat = own.IsQuota() && (own.Epoch > known.Epoch || own.Version >= known.Expires)
		if v.needsHeartbeat {
			return nil, nil
		}
		return known, nil
	}
	heartbeat, err := override.DecodeHeartbeat(read.items[item.Heartbeat], read.at)
	if err != nil {
		return nil, err
	}
	if known := r.heartbeat.Load(); known == nil || known.ReadAt <= read.at {
		r.heartbeat.Store(heartbeat)
	}
	return heartbeat, nil
}

// useExpired lets all use overrides that are due for one more second, if DynamoDB did not answer and
// nothing else is needed. A failed refresh is no reason to refuse a charge. So a bucket that is to get other
// overrides keeps its own numbers for this write, if it has all limits. It does not extend a quota, which
// another region may have by now. It returns the outcome to go on with.
func (r *Reader) useExpired(all []*View, o wire.Outcome, now int64) wire.Outcome {
	if o == wire.Failed {
		return o
	}
	for _, v := range all {
		quota := v.Resource.Spec.Regions != nil && v.Needs&(NeedOverrides|NeedWhole) != 0
		incomplete := v.Needs&NeedWhole != 0 && slices.Contains(v.Image.Missing, true)
		if v.Shape == nil || v.Needs&NeedImage != 0 || quota || incomplete {
			return o
		}
	}
	for _, v := range all {
		if v.Needs == 0 {
			continue
		}
		old := r.grace(v.Shape, now)
		old.Rechecked, old.Writes, old.On = true, v.writes, v.on
		if v.Resource.Spec.ByName(v.Kind) {
			old.Entry = v.Resource.entry.Load().Version
		}
		v.overridesResolved = true
		if v.Needs&NeedWhole != 0 { // for this write alone: the next one reads again
			old.Version, old.PlanOf = v.Image.Version, v.Image.PlanOf
		} else {
			v.Bucket.SetShape(old, v.refresh)
		}
		v.Shape = old
	}
	return wire.Applied
}

// grace returns a copy of old that is due in a second. A quota is not used for longer.
func (r *Reader) grace(old *override.Resolved, now int64) *override.Resolved {
	next := *old
	if next.Quota == nil {
		next.ReadAt = lookups.TTL(r.Conn.Env.CacheTTL).GraceRead(now)
	}
	return &next
}

// RefreshTime is how long a request may go by overrides that are due, while they are read.
const RefreshTime = time.Second

// Due returns the Refresh of b, a bucket of res, that is under way at now, and whether one is due. None is
// due where the read must precede the write: for an unknown bucket, a resource with regions, or a CacheTTL
// below a second. Nor is one if this session has written overrides, or a call has found another plan.
func (r *Reader) Due(res *Resource, b *Bucket, now int64) (under *Refresh, due bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refresh, b.image != nil && b.shape != nil && res.Spec.Regions == nil &&
		!b.isBehind(res, b.shape, b.on) && r.Conn.Env.CacheTTL >= RefreshTime &&
		!r.isFresh(res.Spec, b.shape.ReadAt, now)
}

// Begin begins a Refresh of those of all for which one is due. own is nil if there are none. If another
// request has one under way for any of them, Begin returns that as others, and begins none. A request with a
// Refresh never waits for another, so there is no deadlock. The caller of Begin starts Read, and calls End.
func (r *Reader) Begin(all []*View, now int64) (own, others *Refresh) {
	r.beginning.Lock()
	defer r.beginning.Unlock()
	own = &Refresh{read: make(chan struct{}), ended: make(chan struct{})}
	for _, v := range all {
		others, due := r.Due(v.Resource, v.Bucket, now)
		if others != nil {
			return nil, others
		}
		if v.Init(false); due && v.Shape != nil {
			own.views = append(own.views, v)
		}
	}
	if len(own.views) == 0 {
		return nil, nil
	}
	for _, v := range own.views {
		own.before, v.Needs = append(own.before, v.Shape), NeedOverrides
		v.refresh = own
		v.Bucket.setRefresh(own)
		v.Shape = r.grace(v.Shape, now)
		v.Bucket.SetShape(v.Shape, own)
	}
	return own, nil
}

// Read reads the overrides of f. If DynamoDB does not answer, the old ones serve for a second. After a
// failure that no attempt cures only settles, give-backs included, go by them: acquires get the error.
func (r *Reader) Read(ctx context.Context, f *Refresh) {
	defer close(f.read)
	if o, _ := r.Fetch(ctx, f.views); o == wire.Failed {
		for _, v := range f.views {
			old := *v.Shape
			old.Writes, v.Shape = -1, nil // never current: acquires read first
			v.Bucket.SetShape(&old, f)
		}
	}
	for i := range f.views {
		if f.changed(i) {
			return
		}
	}
	f.End()
}
