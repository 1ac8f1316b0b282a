package override

import (
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
			Removed: spec.Removed,
			Version: spec.Revision*plan.RevisionUnit + own.Version + ofKind.Version,
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
	return &Resolved{
		Shape: plan.Shape{
			Limits:  store.Resolve(schema, deciding...),
			Removed: spec.Removed,
			Version: spec.Revision*plan.RevisionUnit + version + ofKind.Version,
			Ceiling: ceiling,
		},
		ReadAt: min(own.ReadAt, ofKind.ReadAt, heartbeat.ReadAt),
		Quota:  quota,
	}
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
