package override

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/internal/lookups"
	"github.com/sluice-go/sluice/runtime/store"
)

// Resolved is the shape that overrides and plans give a bucket. It is not changed once made.
type Resolved struct {
	plan.Shape

	ReadAt int64         // when the oldest of what was read for it was read, ms
	Writes int64         // this session's writes of that before the read
	On     *store.OnPlan // by which it was made; nil for none
	Entry  int64         // the version of the catalog's entry by which it was made; 0 for none

	// Whole is set if all was read together and consistently. Of two such shapes for one entity's plan, the one
	// read later never has the lower version.
	Whole bool
	// Rechecked is set if the overrides were read a second time because the bucket had seen newer ones.
	Rechecked bool

	Quota *Quota // nil if the resource has no regions
}

// Quota is the part of a shape that depends on the heartbeat of regional sync.
type Quota struct {
	Floor []bucket.Limit // in force from Ends on
	Ends  int64          // when the heartbeat expires that the shape relies on, ms; 0 if it relies on none
	// Unsynced says by limit which are the floor since no heartbeat was ever stored. It is nil if one was.
	Unsynced []bool
}

// Sources are what decides the numbers of one bucket, as they were read.
type Sources struct {
	Own, OfKind *Override     // of the bucket's entity, and of its kind
	OfAll       *Override     // the entity's of all names, for a bucket of one name; else nil
	Entry       *store.Entry  // of the bucket's name; nil for a bucket without a name
	Plans       *Plans        // nil if no plan concerns the bucket
	On          *store.OnPlan // the plan that the bucket is to have; nil if that is not known
	Heartbeat   *Heartbeat    // not nil if the resource has regions
}

// Resolve returns the shape that the schema and what was read give a bucket of a kind at now, in ms. The
// first source that has a limit decides it:
//   - the entity's override, of a bucket's name before that of all names,
//   - the catalog's entry of the name, at the plan before at all plans,
//   - the plan as changed at run time, then that of the schema,
//   - the kind's override, then the schema.
//
// Any change of a source raises the shape's version, unless the bucket gets another entity's plan. The error
// is that of a malformed plan.
func Resolve(spec *store.Spec, kind int, from *Sources, now int64) (*Resolved, error) {
	if spec.Regions != nil {
		return resolveQuota(spec, kind, from.Own, from.OfKind, from.Heartbeat, now), nil
	}
	r := &Resolved{
		Shape: plan.Shape{
			Removed: spec.RemovedOf(kind), Held: spec.Held, HasPlans: spec.Plans != nil,
			Version: spec.Revision*bucket.RevisionUnit + from.Own.Version + from.OfKind.Version,
		},
		ReadAt: min(from.Own.ReadAt, from.OfKind.ReadAt),
	}
	if from.OfAll != nil {
		r.ReadAt = min(r.ReadAt, from.OfAll.ReadAt)
		r.Version += from.OfAll.Version
	}
	if from.Entry != nil {
		r.Entry = from.Entry.Version
		r.Version += r.Entry
	}
	if from.Plans == nil {
		r.Limits = store.Resolve(spec.Kinds[kind].Limits, append(from.first(spec, kind, ""), from.OfKind.Stored)...)
		return r, nil
	}
	r.ReadAt, r.On = min(r.ReadAt, from.Plans.ReadAt), from.On
	r.Version += from.Plans.Version
	if from.On != nil && from.On.Version != 0 {
		r.PlanOf = from.On.Of
		r.Version += from.On.Version
	}
	var err error
	r.Limits, r.UnknownPlan, err = from.numbers(spec, kind)
	return r, err
}

// numbers returns the limits of a bucket of a kind, and whether its plan is unknown. If it is, a bucket of
// which nothing else is known gets the most that any plan gives it, or none.
func (from *Sources) numbers(spec *store.Spec, kind int) (limits []bucket.Limit, unknown bool, err error) {
	known, on := append([]string{""}, spec.Plans.Names...), ""
	if from.On != nil {
		on = from.On.Name
	}
	if unknown = !slices.Contains(known, on); !unknown {
		known = []string{on}
	}
	for _, name := range known {
		order := from.first(spec, kind, name)
		if name != "" {
			changed, err := from.Plans.of(spec, name, kind)
			if err != nil {
				return nil, false, err
			}
			ofSchema, _ := spec.Plans.NumbersOf(spec, name, kind)
			order = append(order, changed, ofSchema)
		}
		resolved := store.Resolve(spec.Kinds[kind].Limits, append(order, from.OfKind.Stored)...)
		if limits == nil {
			limits = resolved
			continue
		}
		limits = slices.Clone(limits)
		for i := range limits {
			if !limits[i].Absent() {
				limits[i] = store.Larger(limits[i], resolved[i])
			}
		}
	}
	return limits, unknown, nil
}

// first returns the sources that come before plans, in order of precedence. on is the plan that the entity is
// on, "" for none.
func (from *Sources) first(spec *store.Spec, kind int, on string) []store.Stored {
	order := []store.Stored{from.Own.Stored}
	if from.OfAll != nil {
		order = append(order, from.OfAll.Stored)
	}
	if from.Entry == nil {
		return order
	}
	at := spec.Kinds[kind].Name
	if on != "" {
		order = append(order, store.Stored{Limits: from.Entry.NumbersAt(store.PlanAt(on, at))})
	}
	return append(order, store.Stored{Limits: from.Entry.NumbersAt(at)})
}

// resolveQuota is Resolve for a resource with regions.
//
// If a quota is stored, the version is at least the instant at which quotas last came into force or ceased to
// be. So the bucket is reshaped by the first process that notices. A quota with a version at or after the
// heartbeat's end is not in force: it could not be told from what comes after that end.
func resolveQuota(
	spec *store.Spec, kind int, own, ofKind *Override, heartbeat *Heartbeat, now int64,
) *Resolved {
	stored, version, ends := own.Stored, own.Version, int64(0)
	if own.IsQuota() {
		if version >= heartbeat.Expires {
			stored.Limits = nil
		}
		version = max(version, heartbeat.Changed(now))
		if heartbeat.Alive(now) {
			ends = heartbeat.Expires
		}
	}
	schema := spec.Kinds[kind].Limits
	deciding := store.InRegion(spec, kind, []store.Stored{stored, ofKind.Stored}, heartbeat.Heartbeat, now)
	ceiling := store.Resolve(schema, ofKind.Stored)
	quota := &Quota{Floor: store.Resolve(schema, deciding[1]), Ends: ends}
	if own.Epoch == 0 {
		ceiling = store.Resolve(ceiling, own.Stored)
		quota.Floor = store.Resolve(schema, deciding...)
	}
	if heartbeat.Epoch == 0 {
		for i := range schema {
			quota.Unsynced = append(quota.Unsynced, store.Decides(deciding, i) == len(deciding)-1)
		}
	}
	return &Resolved{
		Shape: plan.Shape{
			Limits:  store.Resolve(schema, deciding...),
			Removed: spec.RemovedOf(kind),
			Held:    spec.Held,
			Version: spec.Revision*bucket.RevisionUnit + version + ofKind.Version,
			Ceiling: ceiling,
		},
		ReadAt: min(own.ReadAt, ofKind.ReadAt, heartbeat.ReadAt),
		Quota:  quota,
	}
}

// Full returns what a write stores that fills img, a bucket that was read without a schema. That is the
// limits by name, the names of limits to drop, the version, and whose plan it has. An outdated bucket gets
// the shape r.
func (r *Resolved) Full(spec *store.Spec, img *bucket.Image) (
	limits map[string]bucket.Limit, dropped []string, version int64, planOf string,
) {
	limits = make(map[string]bucket.Limit, len(img.Extra))
	for _, extra := range img.Extra {
		limits[extra.Name] = extra.Limit
	}
	if !plan.Outdated(img, &r.Shape) {
		return limits, nil, img.Version, img.PlanOf
	}
	for _, name := range r.Removed {
		if _, has := limits[name]; has {
			delete(limits, name)
			dropped = append(dropped, name)
		}
	}
	for i, name := range spec.Limits {
		if !r.Limits[i].Absent() {
			limits[name] = r.Limits[i]
		}
	}
	return limits, dropped, r.Version, r.PlanOf
}

// AddsHolds reports whether img, a bucket read without a schema, is to get the shape r, by which a limit
// counts holds that does not in img.
func (r *Resolved) AddsHolds(spec *store.Spec, img *bucket.Image, limit string) bool {
	i := slices.Index(spec.Limits, limit)
	if i < 0 || r.Held == nil || !r.Held[i] || r.Limits[i].Absent() || !plan.Outdated(img, &r.Shape) {
		return false
	}
	b, _ := img.Find(limit)
	return !b.Holds()
}

// Expired reports whether r must not be used at now, in ms, even if the overrides cannot be read again:
// another region may have been given its quota. A shape without regions never expires.
func (r *Resolved) Expired(spec *store.Spec, now int64) bool {
	if r.Quota == nil {
		return false
	}
	return r.Quota.Ends != 0 && now >= r.Quota.Ends || !lookups.TTL(spec.Regions.Window).Fresh(r.ReadAt, now)
}

// InForce returns the limits in force at now, in ms, as far as r tells without reading. No quota outlives its
// heartbeat.
func (r *Resolved) InForce(now int64) []bucket.Limit {
	if r.Quota != nil && r.Quota.Ends != 0 && now >= r.Quota.Ends {
		return r.Quota.Floor
	}
	return r.Limits
}

// Refuse adds to denied, which may be nil, every limit of img that has less than cost at now, in ms, and
// returns it. img is the bucket of an entity, which has the shape r, nil if that is not known.
func (r *Resolved) Refuse(
	denied *store.DeniedError, spec *store.Spec, entity string, img *bucket.Image, cost []int64, now int64,
) *store.DeniedError {
	before := 0
	if denied != nil {
		before = len(denied.Refusals)
	}
	denied = store.Refuse(denied, spec, entity, img, cost, now)
	if r == nil || r.Quota == nil || r.Quota.Unsynced == nil || denied == nil {
		return denied
	}
	for _, refusal := range denied.Refusals[before:] {
		if r.Quota.Unsynced[slices.Index(spec.Limits, refusal.Limit)] {
			denied.Unsynced = true
		}
	}
	return denied
}
