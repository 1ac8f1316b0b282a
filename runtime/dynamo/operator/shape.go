package operator

import (
	"cmp"
	"context"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// shapeKeys are the keys of a bucket and of what decides its numbers. Those of what does not are nil.
type shapeKeys struct{ bucket, own, ofAll, entry, ofKind, plans, heartbeat codec.Item }

// keysOf returns the keys for an entity's bucket of a kind.
func keysOf(spec *store.Spec, kind int, entity string) (k shapeKeys) {
	resource, template := spec.ResourceOf(kind), cmp.Or(spec.Template, spec.Resource)
	k.bucket, k.own = item.BucketKey(entity, resource), item.OverrideKey(resource, entity)
	k.ofKind = item.OverrideKey(template, spec.Kinds[kind].Name)
	if resource != template {
		k.ofAll, k.entry = item.OverrideKey(template, entity), item.CatalogKey(template, spec.Entry.Name)
	}
	switch {
	case spec.Regions != nil:
		k.heartbeat = item.HeartbeatKey()
	case spec.OnPlans(kind):
		k.plans = item.PlansKey(template)
	}
	return k
}

// all returns those that are not nil.
func (k *shapeKeys) all() (keys []codec.Item) {
	for _, key := range []codec.Item{k.bucket, k.own, k.ofAll, k.entry, k.ofKind, k.plans, k.heartbeat} {
		if key != nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// shapeOf reads an entity's bucket without a schema, nil if there is none, and the shape that it should have.
// root is as in Fill.
func (o *Overrides) shapeOf(
	ctx context.Context, spec *store.Spec, kind int, entity, root string,
) (img *bucket.Image, shape *override.Resolved, err error) {
	keys := keysOf(spec, kind, entity)
	items, err := o.read(ctx, keys.all())
	if err != nil {
		return nil, nil, err
	}
	planOf := ""
	if stored := items[item.KeyOf(keys.bucket)]; stored != nil {
		if img, err = wire.DecodeBucket(entity, spec.ResourceOf(kind), stored); err != nil {
			return nil, nil, err
		}
		planOf = img.PlanOf
	}
	now := o.now().UnixMilli()
	from, err := sourcesOf(spec, kind, entity, &keys, items, now)
	if err == nil && spec.OnPlans(kind) {
		var on store.OnPlan
		on, err = o.onPlan(ctx, spec, kind, entity, root, planOf)
		from.On = &on
	}
	if err == nil {
		shape, err = override.Resolve(spec, kind, from, now)
	}
	return img, shape, err
}

// sourcesOf decodes what was read at now, except for the plan that the entity is on.
func sourcesOf(
	spec *store.Spec, kind int, entity string, keys *shapeKeys, items map[item.Key]codec.Item, now int64,
) (from *override.Sources, err error) {
	decode := func(key codec.Item, target string) *override.Override {
		if key == nil || err != nil {
			return nil
		}
		o := &override.Override{ReadAt: now}
		o.Stored, o.Version, err = override.Decode(spec, target, items[item.KeyOf(key)])
		return o
	}
	from = &override.Sources{
		Own: decode(keys.own, entity), OfAll: decode(keys.ofAll, entity),
		OfKind: decode(keys.ofKind, spec.Kinds[kind].Name),
	}
	if err == nil {
		from.Heartbeat, err = override.DecodeHeartbeat(items[item.Heartbeat], now)
	}
	if err == nil && keys.plans != nil {
		from.Plans, err = override.DecodePlans(spec, items[item.KeyOf(keys.plans)])
	}
	if err == nil && keys.entry != nil {
		var e store.Entry
		var found bool
		e, found, err = override.DecodeEntry(spec, items[item.KeyOf(keys.entry)])
		if from.Entry = spec.Entry; found && e.Alias == "" && e.Version > spec.Entry.Version {
			from.Entry = &e
		}
	}
	return from, err
}
