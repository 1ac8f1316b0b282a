package dynamo

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/internal/lookups"
	"github.com/sluice-go/sluice/runtime/store"
)

// lack is what has to be read before a leg can be planned.
type lack uint8

const (
	image  lack = 1 << iota
	levels      // the overrides
	newest      // the overrides again, since the bucket has seen newer ones
	whole       // the overrides together, since the bucket is to be given them
	legacy      // its per-limit items, since the bucket is missing
)

// fresh reports that what was read of spec's overrides at an instant may still be used. A share is used for no longer than a window.
func (s *session) fresh(spec *store.Spec, read, now int64) bool {
	ttl := s.env.CacheTTL
	if spec.Regions != nil {
		ttl = min(ttl, spec.Regions.Window)
	}
	return lookups.TTL(ttl).Fresh(read, now)
}

// spared is when what is due, but cannot be read now, is said to have been read.
func (s *session) spared(now int64) int64 { return lookups.TTL(s.env.CacheTTL).Spared(now) }

// lacksLevels says whether l's overrides have to be read: once in a call at the most, whatever the TTL, and once more where
// the bucket has seen newer ones. A settle works with the bucket's own parameters.
func (s *session) lacksLevels(l *leg, now int64) lack {
	switch {
	case l.shape == nil:
		return levels
	case l.settling:
		return 0
	case !l.resolved && !s.fresh(l.spec, l.shape.ReadAt, now), l.shape.Expired(l.spec, now):
		return levels
	case l.view.Image != nil && l.view.Image.Version%plan.RevisionUnit > l.shape.Version%plan.RevisionUnit && !l.shape.Rechecked:
		return newest
	}
	return 0
}

// lacksWhole says whether p gives the bucket overrides that were read at different times. A process that knows the
// entity's new level and its kind's old one, and another that knows it the other way round, would each take the other's
// shape for the older.
func (l *leg) lacksWhole(p *plan.Plan) lack {
	if p.Path == plan.Reshape && p.Decision == plan.Write && p.Version%plan.RevisionUnit != p.Image.Version%plan.RevisionUnit && !l.shape.Whole {
		return whole
	}
	return 0
}

// fetch reads what the legs lack, in one call. The outcome is that of a write: applied, or why not; with some keys left
// over it is throttled, and the rest is known.
func (c *charge) fetch(ctx context.Context) (wire.Outcome, error) {
	now := c.now()
	if i := slices.IndexFunc(c.legs, func(l *leg) bool { return l.lacks&legacy != 0 }); i >= 0 {
		return c.carryOver(ctx, c.legs[i])
	}
	if len(c.legs) == 1 && c.legs[0].lacks == image {
		return c.read(ctx, c.legs[0])
	}
	keys, consistent := c.keys(now)
	items := make(map[item.Key]codec.Item, len(keys))
	left := map[item.Key]bool{}
	for chunk := range slices.Chunk(keys, wire.MaxBatchGet) {
		o, rest, err := c.batch(ctx, chunk, consistent, items)
		if o != wire.Applied {
			return c.withOld(o, now), err
		}
		for _, key := range rest {
			left[item.KeyOf(key)] = true
		}
	}
	for _, l := range c.legs {
		if err := c.accept(l, items, left, consistent, now); err != nil {
			return wire.Failed, err
		}
	}
	if len(left) > 0 {
		return c.withOld(wire.Throttled, now), errUnprocessed
	}
	return wire.Applied, nil
}

// keys returns the keys of what the legs lack, and whether they are to be read consistently. Overrides alone are not:
// they are remembered for longer than a replica lags, and it halves the price. Shares are: a region gives away what nobody in it can
// have remembered any more.
func (c *charge) keys(now int64) (keys []codec.Item, consistent bool) {
	kinds := map[item.Key]codec.Item{} // and the heartbeat
	for _, l := range c.legs {
		if l.lacks&image != 0 {
			keys = append(keys, l.Key(l.entity))
		}
		if l.lacks&^image != 0 {
			keys = append(keys, item.OverrideKey(l.spec.Resource, l.entity))
			known := l.kinds[l.kind].Load()
			if l.withKind = known == nil || l.lacks&(newest|whole) != 0 || !c.fresh(l.spec, known.ReadAt, now); l.withKind {
				key := item.OverrideKey(l.spec.Resource, l.spec.Kinds[l.kind].Name)
				kinds[item.KeyOf(key)] = key
			}
			if l.spec.Regions != nil {
				consistent = true
				if l.withBeat = c.lacksBeat(l, now); l.withBeat {
					kinds[item.Heartbeat] = item.HeartbeatKey()
				}
			}
		}
		consistent = consistent || l.lacks&^levels != 0
	}
	return slices.AppendSeq(keys, maps.Values(kinds)), consistent
}

// accept learns of l what was read for it, if nothing of it was left over: l lacks that no longer.
func (c *charge) accept(l *leg, items map[item.Key]codec.Item, left map[item.Key]bool, consistent bool, now int64) error {
	if key := item.KeyOf(l.Key(l.entity)); l.lacks&image != 0 && !left[key] {
		img, err := l.decode(items[key])
		if err != nil {
			return err
		}
		l.learn(img, now)
		l.read = true
		l.lacks &^= image
	}
	kindName := l.spec.Kinds[l.kind].Name
	if l.withBeat && left[item.Heartbeat] {
		return nil
	}
	if l.lacks&^image == 0 || left[item.KeyOf(item.OverrideKey(l.spec.Resource, l.entity))] || left[item.KeyOf(item.OverrideKey(l.spec.Resource, kindName))] {
		return nil
	}
	own, err := l.level(l.entity, items, now)
	if err != nil {
		return err
	}
	kind := l.kinds[l.kind].Load()
	if l.withKind {
		if kind, err = l.level(kindName, items, now); err != nil {
			return err
		}
		l.kinds[l.kind].Store(kind)
	}
	var b *override.Heartbeat
	if l.spec.Regions != nil {
		if b, err = c.beatFor(l, own, items, now); b == nil {
			return err
		}
	}
	next := override.Resolve(l.spec, l.kind, own, kind, b, now)
	next.Whole, next.Rechecked = l.withKind && consistent && (b == nil || l.withBeat), l.lacks&newest != 0
	l.resolved, l.lacks, l.unsure = true, 0, false
	l.memory.take(next)
	l.shape = next
	return nil
}

// level decodes what was read of a level.
func (l *leg) level(at string, items map[item.Key]codec.Item, now int64) (*override.Override, error) {
	stored, ver, err := override.Decode(l.spec, at, items[item.KeyOf(item.OverrideKey(l.spec.Resource, at))])
	if err != nil {
		return nil, err
	}
	return &override.Override{Stored: stored, Version: ver, ReadAt: now}, nil
}

// withOld lets legs go on for a second with overrides that are due to be read, where DynamoDB does not answer but they are
// all that is lacking: that they could not be read is no reason to refuse what could be charged. A share that is due is another
// region's by now, maybe.
func (c *charge) withOld(o wire.Outcome, now int64) wire.Outcome {
	if o == wire.Failed {
		return o
	}
	for _, l := range c.legs {
		if l.shape == nil || l.lacks&(image|whole) != 0 || l.spec.Regions != nil && l.lacks&levels != 0 {
			return o
		}
	}
	for _, l := range c.legs {
		if l.lacks != 0 {
			old := *l.shape
			if old.Rechecked = true; old.Quota == nil {
				old.ReadAt = c.spared(now)
			}
			l.resolved = true
			l.memory.take(&old)
			l.shape = &old
		}
	}
	return wire.Applied
}

// kindLevels holds, by kind, what was last read of it.
type kindLevels []atomic.Pointer[override.Override]
