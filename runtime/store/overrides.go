package store

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// Revision is what a reader of an override saw, for the write that follows: one that is no longer current fails with a
// *ConflictError. "" means that nothing is overridden.
type Revision string

// Resolve returns the limits in force for a bucket: per limit, what the first of levels that has it says, else schema's.
// levels come as Decides takes them. Where no level says anything it returns schema itself. Stores call it.
func Resolve(schema []bucket.Limit, levels ...Stored) []bucket.Limit {
	limits := schema
	for i := range schema {
		winner := Decides(levels, i)
		if winner == len(levels) {
			continue
		}
		if &limits[0] == &schema[0] {
			limits = slices.Clone(schema)
		}
		limits[i] = *levels[winner].Limits[i]
	}
	return limits
}

// Decides returns which of levels decides the i-th limit: the first that has it, len(levels) if none does. They come in order
// of precedence, the entity's ahead of its kind's.
func Decides(levels []Stored, i int) int {
	for j := range levels {
		if i < len(levels[j].Limits) && levels[j].Limits[i] != nil {
			return j
		}
	}
	return len(levels)
}

// FullOverride is what limits, which are all there are, say as a level: in copies, which callers may change.
func FullOverride(at string, limits []bucket.Limit) Stored {
	s := Stored{At: at}
	for _, limit := range limits {
		s.Limits = append(s.Limits, &limit)
	}
	return s
}

// InRegion returns the levels that decide an entity's limits where regions share them out: the entity's, without a share that is not
// in force at now (ms), and "floor", what the region keeps of all that the levels say, the entity's and its kind's.
func InRegion(spec *Spec, kind int, levels []Stored, beat Heartbeat, now int64) []Stored {
	own := levels[0]
	if !beat.Holds(own, now) {
		own.Limits = nil
	}
	return []Stored{own, FullOverride("floor", spec.Regions.KeepsOf(Resolve(spec.Kinds[kind].Limits, levels[1:]...)))}
}
