package dynamo

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/internal/lookups"
	"github.com/sluice-go/sluice/runtime/store"
)

// need is a set of what has to be read before a target can be planned.
type need uint8

const (
	needImage     need = 1 << iota // the bucket
	needOverrides                  // its overrides
	needNewer                      // its overrides again, since the bucket has seen newer ones
	needWhole                      // its overrides together and consistently, since the bucket is to get them
)

var errUnprocessed = errors.New("DynamoDB left keys of a batch unread")

// reader reads what targets need: buckets, overrides, and the heartbeat of regional sync.
type reader struct {
	scheduler *scheduler
	targets   targets
}

// isFresh reports whether overrides of spec that were read at an instant may be used at now. Those of a
// resource with regions are used for no longer than a window.
func (s *scheduler) isFresh(spec *store.Spec, readAt, now int64) bool {
	ttl := s.conn.Env.CacheTTL
	if spec.Regions != nil {
		ttl = min(ttl, spec.Regions.Window)
	}
	return lookups.TTL(ttl).Fresh(readAt, now)
}

// overridesNeeded returns whether t's overrides have to be read: when they are due, at most once in a write,
// and once more if the bucket has seen newer ones. A settle works with the bucket's own parameters.
func (r reader) overridesNeeded(t *target, now int64) need {
	spec := t.resource.Spec
	switch {
	case t.shape == nil:
		return needOverrides
	case t.settlesOnly:
		return 0
	case !t.overridesResolved && !r.scheduler.isFresh(spec, t.shape.ReadAt, now), t.shape.Expired(spec, now):
		return needOverrides
	case t.image != nil && !t.shape.Rechecked &&
		t.image.Version%plan.RevisionUnit > t.shape.Version%plan.RevisionUnit:
		return needNewer
	}
	return 0
}

// wholeNeeded returns needWhole if t's plan gives the bucket overrides that were read at different times.
// Otherwise two processes could each take the other's shape for the older one: one knows the entity's new
// override and the kind's old one, the other the reverse.
func (t *target) wholeNeeded() need {
	p := &t.plan
	if p.Path == plan.Reshape && p.Decision == plan.Write && !t.shape.Whole &&
		p.Version%plan.RevisionUnit != p.Image.Version%plan.RevisionUnit {
		return needWhole
	}
	return 0
}

// heartbeatNeeded reports whether the heartbeat is read with t's overrides: once a window, and if the known
// one has expired or is missing.
func (r reader) heartbeatNeeded(t *target, now int64) bool {
	known := r.scheduler.heartbeat.Load()
	return known == nil || t.needsHeartbeat || t.missing&(needNewer|needWhole) != 0 || !known.Alive(now) ||
		!r.scheduler.isFresh(t.resource.Spec, known.ReadAt, now)
}

// needs notes what has to be read: overrides that are due, and images for which unread holds. It reports
// whether that is anything.
func (r reader) needs(unread func(*target) bool) (found bool) {
	now := r.scheduler.conn.Now()
	for _, t := range r.targets {
		t.missing = r.overridesNeeded(t, now)
		if unread(t) {
			t.missing |= needImage
		}
		found = found || t.missing != 0
	}
	return found
}

// needsFor notes what has to be read before anything can be decided for all, and reports whether that is
// anything.
func (r reader) needsFor(all []*request, now int64) (found bool) {
	settles := !slices.ContainsFunc(all, func(r *request) bool { return !r.settle })
	for i, t := range r.targets {
		t.settlesOnly = settles
		t.missing = r.overridesNeeded(t, now)
		takes := func(r *request) bool { return !r.settle || slices.ContainsFunc(r.costOf(i), positive) }
		if t.image == nil && !t.confirmed && slices.ContainsFunc(all, takes) {
			t.missing |= needImage
		}
		found = found || t.missing != 0
	}
	return found
}

// fetch reads what the targets need, in one call. The outcome is that of a write: applied, or why not. If
// DynamoDB leaves keys unprocessed, it is throttled, and what was read is known.
func (r reader) fetch(ctx context.Context) (wire.Outcome, error) {
	now := r.scheduler.conn.Now()
	if len(r.targets) == 1 && r.targets[0].missing == needImage {
		return r.fetchOne(ctx, r.targets[0])
	}
	keys, consistent := r.keys(now)
	read := fetched{
		items: make(map[item.Key]codec.Item, len(keys)), unprocessed: map[item.Key]bool{},
		consistent: consistent, at: now,
	}
	for chunk := range slices.Chunk(keys, wire.MaxBatchGet) {
		got, o, err := r.scheduler.conn.ReadAll(ctx, r.targets.resourceName(), chunk, consistent)
		if o != wire.Applied {
			return r.graceRead(o, now), err
		}
		maps.Copy(read.items, got.Items)
		for _, key := range got.Unprocessed {
			read.unprocessed[item.KeyOf(key)] = true
		}
	}
	for _, t := range r.targets {
		if err := r.apply(t, &read); err != nil {
			return wire.Failed, err
		}
	}
	if len(read.unprocessed) > 0 {
		return r.graceRead(wire.Throttled, now), errUnprocessed
	}
	return wire.Applied, nil
}

// fetchOne reads the bucket of t, the only target, of which nothing else is needed.
func (r reader) fetchOne(ctx context.Context, t *target) (wire.Outcome, error) {
	img, at, o, err := r.scheduler.conn.Read(ctx, &t.cached.at)
	if o == wire.Applied {
		t.update(img, at)
		t.justRead = true
	}
	return o, err
}

// keys returns the keys of what the targets need, and whether to read them consistently. Overrides alone are
// not: they are used for longer than a replica lags, and it halves the price. Quotas are: a region gives away
// what no process in it can still use.
func (r reader) keys(now int64) (keys []codec.Item, consistent bool) {
	shared := map[item.Key]codec.Item{} // kinds' overrides and the heartbeat, each once
	for _, t := range r.targets {
		spec := t.resource.Spec
		if t.missing&needImage != 0 {
			keys = append(keys, t.resource.Generated.Key(t.entity))
		}
		if t.missing&^needImage != 0 {
			keys = append(keys, item.OverrideKey(spec.Resource, t.entity))
			known := t.resource.kinds[t.kind].Load()
			t.readsKind = known == nil || t.missing&(needNewer|needWhole) != 0 ||
				!r.scheduler.isFresh(spec, known.ReadAt, now)
			if t.readsKind {
				key := item.OverrideKey(spec.Resource, spec.Kinds[t.kind].Name)
				shared[item.KeyOf(key)] = key
			}
			if spec.Regions != nil {
				consistent = true
				if t.readsHeartbeat = r.heartbeatNeeded(t, now); t.readsHeartbeat {
					shared[item.Heartbeat] = item.HeartbeatKey()
				}
			}
		}
		consistent = consistent || t.missing&^needOverrides != 0
	}
	return slices.AppendSeq(keys, maps.Values(shared)), consistent
}

// fetched is what one fetch read.
type fetched struct {
	items       map[item.Key]codec.Item
	unprocessed map[item.Key]bool
	consistent  bool
	at          int64 // ms
}

// apply updates t from what was read for it: the image, and the overrides if DynamoDB left none of their keys
// unprocessed.
func (r reader) apply(t *target, read *fetched) error {
	spec := t.resource.Spec
	key := t.cached.at.Key()
	if t.missing&needImage != 0 && !read.unprocessed[key] {
		img, err := t.cached.at.Decode(read.items[key])
		if err != nil {
			return err
		}
		t.update(img, read.at)
		t.justRead = true
		t.missing &^= needImage
	}
	kindName := spec.Kinds[t.kind].Name
	left := func(target string) bool {
		return read.unprocessed[item.KeyOf(item.OverrideKey(spec.Resource, target))]
	}
	if t.missing&^needImage == 0 || left(t.entity) || left(kindName) ||
		t.readsHeartbeat && read.unprocessed[item.Heartbeat] {
		return nil
	}
	own, err := read.override(spec, t.entity)
	if err != nil {
		return err
	}
	ofKind := t.resource.kinds[t.kind].Load()
	if t.readsKind {
		if ofKind, err = read.override(spec, kindName); err != nil {
			return err
		}
		t.resource.kinds[t.kind].Store(ofKind)
	}
	var heartbeat *override.Heartbeat
	if spec.Regions != nil {
		if heartbeat, err = r.heartbeatFor(t, own, read); heartbeat == nil {
			return err
		}
	}
	next := override.Resolve(spec, t.kind, own, ofKind, heartbeat, read.at)
	next.Whole = t.readsKind && read.consistent && (heartbeat == nil || t.readsHeartbeat)
	next.Rechecked = t.missing&needNewer != 0
	t.overridesResolved, t.missing, t.needsHeartbeat = true, 0, false
	t.cached.setShape(next)
	t.shape = next
	return nil
}

// override decodes the override of a target, an entity or a kind.
func (f *fetched) override(spec *store.Spec, target string) (*override.Override, error) {
	key := item.KeyOf(item.OverrideKey(spec.Resource, target))
	stored, version, err := override.Decode(spec, target, f.items[key])
	if err != nil {
		return nil, err
	}
	return &override.Override{Stored: stored, Version: version, ReadAt: f.at}, nil
}

// heartbeatFor returns the heartbeat that decides whether own, t's override, is in force: the one just read,
// else the known one. It returns nil if own is a quota stored after the known one: then both are read
// together next.
func (r reader) heartbeatFor(t *target, own *override.Override, read *fetched) (*override.Heartbeat, error) {
	if !t.readsHeartbeat {
		known := r.scheduler.heartbeat.Load()
		t.needsHeartbeat = own.IsQuota() && (own.Epoch > known.Epoch || own.Version >= known.Expires)
		if t.needsHeartbeat {
			return nil, nil
		}
		return known, nil
	}
	heartbeat, err := override.DecodeHeartbeat(read.items[item.Heartbeat], read.at)
	if err != nil {
		return nil, err
	}
	if known := r.scheduler.heartbeat.Load(); known == nil || known.ReadAt <= read.at {
		r.scheduler.heartbeat.Store(heartbeat)
	}
	return heartbeat, nil
}

// graceRead lets the targets use overrides that are due for one more second, if DynamoDB did not answer and
// nothing else is needed. A failed refresh is no reason to refuse a charge. It does not extend a quota, which
// another region may have by now. It returns the outcome to go on with.
func (r reader) graceRead(o wire.Outcome, now int64) wire.Outcome {
	if o == wire.Failed {
		return o
	}
	for _, t := range r.targets {
		quota := t.resource.Spec.Regions != nil && t.missing&needOverrides != 0
		if t.shape == nil || t.missing&(needImage|needWhole) != 0 || quota {
			return o
		}
	}
	for _, t := range r.targets {
		if t.missing == 0 {
			continue
		}
		old := *t.shape
		if old.Rechecked = true; old.Quota == nil {
			old.ReadAt = lookups.TTL(r.scheduler.conn.Env.CacheTTL).GraceRead(now)
		}
		t.overridesResolved = true
		t.cached.setShape(&old)
		t.shape = &old
	}
	return wire.Applied
}
