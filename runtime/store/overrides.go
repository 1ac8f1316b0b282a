package store

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// Revision is what a reader of an override saw, for the write that follows. A Revision that is no longer
// current fails with a *ConflictError. "" means that nothing is overridden.
type Revision string

// Resolve returns the limits in force for a bucket. Each is the one of the first override that has it, else
// schema's. overrides are in the order that Decides takes. If none has a limit, Resolve returns schema
// itself. A limit that is Absent in schema stays so: an override may be left from before. Stores call it.
func Resolve(schema []bucket.Limit, overrides ...Stored) []bucket.Limit {
	limits := schema
	for i := range schema {
		winner := Decides(overrides, i)
		if winner == len(overrides) || schema[i].Absent() {
			continue
		}
		if &limits[0] == &schema[0] {
			limits = slices.Clone(schema)
		}
		limits[i] = *overrides[winner].Limits[i]
	}
	return limits
}

// Decides returns the index of the override that decides the i-th limit: the first that has it, or
// len(overrides). They come in order of precedence, the entity's before its kind's.
func Decides(overrides []Stored, i int) int {
	for j := range overrides {
		if i < len(overrides[j].Limits) && overrides[j].Limits[i] != nil {
			return j
		}
	}
	return len(overrides)
}

// FullOverride returns limits, which are all there are, as an override, with nil for one that is Absent. It
// holds copies, which callers may change.
func FullOverride(at string, limits []bucket.Limit) Stored {
	s := Stored{At: at, Limits: make([]*bucket.Limit, len(limits))}
	for i, limit := range limits {
		if !limit.Absent() {
			s.Limits[i] = &limit
		}
	}
	return s
}

// InRegion returns what decides an entity's limits if regions divide them. The first is the entity's
// override, without a quota that is not in force at now (ms). The second, "floor", is what the region keeps
// of the limits by kind and schema.
func InRegion(spec *Spec, kind int, overrides []Stored, beat Heartbeat, now int64) []Stored {
	own := overrides[0]
	if !beat.Holds(own, now) {
		own.Limits = nil
	}
	whole := Resolve(spec.Kinds[kind].Limits, overrides[1:]...)
	return []Stored{own, FullOverride("floor", spec.Regions.KeepsOf(whole))}
}
