package override

import (
	"cmp"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Keys are the keys of the items that decide the numbers of one bucket. A key is nil if the bucket has no
// such source.
type Keys struct {
	spec   *store.Spec
	kind   int
	entity string // as stored

	own, ofAll, entry, ofKind, plans, heartbeat codec.Item
}

// KeysOf returns the keys for an entity's bucket of a kind.
func KeysOf(spec *store.Spec, kind int, entity string) *Keys {
	resource, template := spec.ResourceOf(kind), cmp.Or(spec.Template, spec.Resource)
	k := &Keys{
		spec: spec, kind: kind, entity: entity, own: item.OverrideKey(resource, entity),
		ofKind: item.OverrideKey(template, spec.Kinds[kind].Name),
	}
	if spec.ByName(kind) {
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

// All returns the keys that are not nil, for one consistent read.
func (k *Keys) All() (keys []codec.Item) {
	for _, key := range []codec.Item{k.own, k.ofAll, k.entry, k.ofKind, k.plans, k.heartbeat} {
		if key != nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// Sources decodes what was read at now, in ms. It leaves out which plan the entity is on. If the entry was
// removed or has become an alias, the one of k's Spec stays.
func (k *Keys) Sources(read map[item.Key]codec.Item, now int64) (from *Sources, err error) {
	decode := func(key codec.Item, target string) *Override {
		if key == nil || err != nil {
			return nil
		}
		o := &Override{ReadAt: now}
		o.Stored, o.Version, err = Decode(k.spec, target, read[item.KeyOf(key)])
		return o
	}
	from = &Sources{
		Own: decode(k.own, k.entity), OfAll: decode(k.ofAll, k.entity),
		OfKind: decode(k.ofKind, k.spec.Kinds[k.kind].Name),
	}
	if err == nil {
		from.Heartbeat, err = DecodeHeartbeat(read[item.Heartbeat], now)
	}
	if err == nil && k.plans != nil {
		if from.Plans, err = DecodePlans(k.spec, read[item.KeyOf(k.plans)]); err == nil {
			from.Plans.ReadAt = now
		}
	}
	if err == nil && k.entry != nil {
		var e store.Entry
		var found bool
		e, found, err = DecodeEntry(k.spec, read[item.KeyOf(k.entry)])
		if from.Entry = k.spec.Entry; found && e.Alias == "" && e.Version > from.Entry.Version {
			from.Entry = &e
		}
	}
	return from, err
}
