package known

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/members"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// NotePlan notes the plan by which a call has the bucket. It ignores an older version of the same entity's
// plan than the known one. Version 0 counts: the entity may have been erased, which is read then. The plan of
// a settle counts only if none is known.
func (b *Bucket) NotePlan(on *store.OnPlan, settles bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.on == nil || !settles && *b.on != *on &&
		(on.Of != b.on.Of || on.Version >= b.on.Version || on.Version == 0) {
		own := *on
		b.on = &own
	}
}

// onPlan returns the plan by which the next write goes.
func (b *Bucket) onPlan() *store.OnPlan {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.on
}

// setPlan stores the plan of v's bucket, as it was read.
func (v *View) setPlan(on store.OnPlan) {
	v.on = &on
	v.Bucket.mu.Lock()
	defer v.Bucket.mu.Unlock()
	v.Bucket.on = v.on
}

// hasNewerPlan reports whether the latest call has another plan, on, than shape was made by. It is the plan
// of another entity, a later version, or none of an entity that may have been erased.
func hasNewerPlan(shape *override.Resolved, on *store.OnPlan) bool {
	return on != nil && (shape.On == nil || on.Of != shape.On.Of || on.Version > shape.On.Version ||
		on.Version == 0 && shape.On.Version != 0)
}

// isOnPlans reports whether plans concern v's bucket.
func (v *View) isOnPlans() bool { return v.Resource.Spec.OnPlans(v.Kind) }

// checksPlan reports whether the plan of v's entity is to be read, together with v's overrides. Otherwise the
// plan that calls remember is used.
func (v *View) checksPlan() bool { return v.isOnPlans() && v.Needs&(NeedNewer|NeedWhole) != 0 }

// confirmPlanOwners reads again whose plan counts, for those of all that are to get another entity's plan.
// Calls go by remembered parents, so the stored links are read, one after the other. If a link is gone, the
// bucket keeps the plan that it has.
func (r *Reader) confirmPlanOwners(ctx context.Context, all []*View) (wire.Outcome, error) {
	for _, v := range all {
		v.writes = v.Bucket.writes()
		img, on := v.Image, v.on
		if !v.checksPlan() || on == nil || on.From == "" || img == nil || v.Needs&NeedImage != 0 ||
			planOf(on) == img.PlanOf {
			continue
		}
		of, o, err := r.readPlanOwner(ctx, v)
		if o != wire.Applied {
			return o, err
		}
		if of == "" {
			of = img.PlanOf
		}
		if of != on.Of {
			v.setPlan(store.OnPlan{Of: of, From: on.From})
		}
	}
	return wire.Applied, nil
}

// planOf returns po of a bucket that goes by on.
func planOf(on *store.OnPlan) string {
	if on.Version == 0 {
		return ""
	}
	return on.Of
}

// readPlanOwner reads the links from the last entity that v's caller gave, up to the entity whose plan
// counts. It returns "" if a link is gone. The outcome is Applied, or says why there is no answer.
func (r *Reader) readPlanOwner(ctx context.Context, v *View) (of string, o wire.Outcome, err error) {
	spec := v.Resource.Spec
	kind, err := store.KindOf(spec.Kinds, v.on.From)
	if err != nil {
		return "", wire.Failed, err
	}
	for of = v.on.From; kind != spec.Plans.Kind; {
		m, err := members.Once(ctx, r.Conn, of)
		if _, malformed := errors.AsType[*store.SetupError](err); malformed {
			return "", wire.Failed, err
		} else if err != nil {
			o, _ := wire.Classify(err)
			return "", o, wire.Explain(r.Conn.Table, o, err)
		}
		r.Stale(of)
		if kind = spec.Kinds[kind].Parent; m.Parent == "" || kind == store.NoParent {
			return "", wire.Applied, nil
		}
		of = m.Parent
	}
	return of, wire.Applied, nil
}

// readsPlanOwner reports whether the item of the entity whose plan counts is to be read.
func (v *View) readsPlanOwner() bool { return v.checksPlan() && v.on != nil && v.on.Of != "" }

// planKeys returns the keys of what decides v's plan, as far as it has to be read with v's overrides.
func (r *Reader) planKeys(v *View, now int64) (keys []item.Item) {
	if v.readsPlans = false; !v.isOnPlans() {
		return nil
	}
	v.planWrites = v.Resource.planWrites.Load()
	known := v.Resource.plans.Load()
	v.readsPlans = known == nil || v.checksPlan() || known.Writes != v.planWrites ||
		!r.isFresh(v.Resource.Spec, known.ReadAt, now)
	if v.readsPlans {
		keys = append(keys, item.PlansKey(v.Resource.template()))
	}
	if v.readsPlanOwner() {
		keys = append(keys, item.EntityKey(v.on.Of))
	}
	return keys
}

// leftPlanUnread reports whether DynamoDB left a key of planKeys unprocessed.
func (f *fetched) leftPlanUnread(v *View) bool {
	return v.readsPlans && f.unprocessed[item.KeyOf(item.PlansKey(v.Resource.template()))] ||
		v.readsPlanOwner() && f.unprocessed[item.KeyOf(item.EntityKey(v.on.Of))]
}

// planSources returns those sources of v's numbers that concern plans: as read, or as known before if they
// were not read.
func (r *Reader) planSources(v *View, read *fetched) (from override.Sources, err error) {
	if !v.isOnPlans() {
		return from, nil
	}
	from.Plans = v.Resource.plans.Load()
	if v.readsPlans {
		raw := read.items[item.KeyOf(item.PlansKey(v.Resource.template()))]
		if from.Plans, err = override.DecodePlans(v.Resource.opened.Spec, raw); err != nil {
			return from, err
		}
		from.Plans.ReadAt, from.Plans.Writes = read.at, v.planWrites
		v.Resource.keepPlans(from.Plans)
	}
	if v.readsPlanOwner() {
		m, _, err := members.Decode(v.on.Of, read.items[item.KeyOf(item.EntityKey(v.on.Of))])
		if err != nil {
			return from, err
		}
		if m.PlanVersion != v.on.Version || m.Plan != v.on.Name {
			r.Stale(v.on.Of)
		}
		v.setPlan(store.OnPlan{Of: v.on.Of, Name: m.Plan, Version: m.PlanVersion, From: v.on.From})
	}
	if from.On = v.on; v.Shape != nil && !v.checksPlan() && !hasNewerPlan(v.Shape, v.on) {
		from.On = v.Shape.On // the same plan as v.on, or a later version of it
	}
	return from, nil
}

// resolve returns the shape that v's bucket gets from what was read at an instant, in ms.
func (f Resolve) resolve(v *View, from *override.Sources, at int64) (*override.Resolved, error) {
	if f == nil {
		f = override.Resolve
	}
	return f(v.Resource.Spec, v.Kind, from, at)
}

// keepPlans keeps plans as they were read, unless the known ones were read after more writes.
func (r *Resource) keepPlans(read *override.Plans) {
	known := r.plans.Load()
	for (known == nil || known.Writes <= read.Writes) && !r.plans.CompareAndSwap(known, read) {
		known = r.plans.Load()
	}
}

// moves are the entities whose plan or parent this session has changed within the last TrustedFor. Images
// from before must not deny. The zero value is ready. It is safe for concurrent use.
type moves struct {
	any  atomic.Bool
	mu   sync.Mutex
	at   map[string]int64 // ms, by entity; older ones may be among them
	most int              // of at, before Moved drops older ones
}

// fewMoves is how many moves are kept without a look at their age.
const fewMoves = 64

// Moved notes that this session has changed the plan or the parent of an entity, as stored.
func (r *Reader) Moved(entity string) {
	m, now := &r.moves, r.Conn.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at == nil {
		m.at, m.most = map[string]int64{}, fewMoves
	}
	if len(m.at) >= m.most { // a program that changes many entities may never ask includes
		m.dropOld(now)
		m.most = 2*len(m.at) + fewMoves
	}
	m.at[entity] = now
	m.any.Store(true)
}

// includes reports whether b has the plan of an entity that was moved, or is its bucket.
func (m *moves) includes(b *Bucket, now int64) bool {
	if !m.any.Load() {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dropOld(now)
	m.any.Store(len(m.at) > 0)
	_, own := m.at[b.At.Entity]
	if b.shape.On == nil {
		return own
	}
	_, above := m.at[b.shape.On.Of]
	return own || above
}

// dropOld drops the moves from before the last TrustedFor. The caller holds the lock.
func (m *moves) dropOld(now int64) {
	maps.DeleteFunc(m.at, func(_ string, at int64) bool { return !isFresh(at, now, TrustedFor) })
}
