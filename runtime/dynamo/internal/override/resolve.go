package override

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/internal/lookups"
	"github.com/sluice-go/sluice/runtime/store"
)

// Resolved is the shape that the overrides of an entity and its kind give a bucket. It is not changed once
// made.
type Resolved struct {
	plan.Shape

	ReadAt int64 // when the older of the two overrides was read, ms
	Writes int64 // this session's writes of the two before the read

	// Whole is set if both overrides were read together and consistently. Of two such shapes, the one read later
	// never has the lower version.
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

// Resolve returns the shape that the schema and the overrides of an entity (own) and of its kind give a
// bucket at now, in ms. Any change of an override raises the shape's version. heartbeat is not nil if spec
// has regions.
func Resolve(spec *store.Spec, kind int, own, ofKind *Override, heartbeat *Heartbeat, now int64) *Resolved {
	if spec.Regions != nil {
		return resolveQuota(spec, kind, own, ofKind, heartbeat, now)
	}
	return &Resolved{
		Shape: plan.Shape{
			Limits:  store.Resolve(spec.Kinds[kind].Limits, own.Stored, ofKind.Stored),
			Removed: spec.RemovedOf(kind),
			Held:    spec.Held,
			Version: spec.Revision*bucket.RevisionUnit + own.Version + ofKind.Version,
		},
		ReadAt: min(own.ReadAt, ofKind.ReadAt),
	}
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

// Full returns what a write that fills img, a bucket read without a schema, stores: the limits by name, the
// names of limits to drop, and the version. An outdated bucket gets the shape r.
func (r *Resolved) Full(spec *store.Spec, img *bucket.Image) (
	limits map[string]bucket.Limit, dropped []string, version int64,
) {
	limits = make(map[string]bucket.Limit, len(img.Extra))
	for _, extra := range img.Extra {
		limits[extra.Name] = extra.Limit
	}
	if !plan.Outdated(img, &r.Shape) {
		return limits, nil, img.Version
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
	return limits, dropped, r.Version
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
