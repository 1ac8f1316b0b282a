// Package inforce finds the limits in force for a bucket from all that decides them.
package inforce

import (
	"slices"
	"strconv"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Sources is what decides the limits of a bucket before the schema does.
type Sources struct {
	Own, OfKind store.Stored // overrides of its entity, and of its kind
	OfAll       store.Stored // the entity's override of all names, if the bucket is of one name
	Entry       *store.Entry // of the bucket's name; nil for a bucket without a name
	OnPlan      store.OnPlan // the zero OnPlan for a kind that no plan concerns

	// Changed has the numbers of plans that were changed at run time, and Plans the one revision of these. Both
	// are empty for a kind that no plan concerns.
	Changed []store.Stored
	Plans   store.Revision
}

// Numbers are the limits in force for a bucket.
type Numbers struct {
	Limits  []bucket.Limit
	Version int64  // grows with each write of a source, and falls if one is evicted; Unknown for an unknown plan
	Of      string // the entity whose plan decides, "" for none
}

// Unknown is the version of the numbers of a plan that this binary does not know. All others are newer.
const Unknown = -1

// Resolve returns the limits in force for a bucket of a kind. The first source that has a limit decides it:
//   - the entity's override, of a bucket's name before that of all names,
//   - the catalog's entry of the name, at the plan before at all plans,
//   - the plan as changed at run time, then that of the schema,
//   - the kind's override, then the schema.
//
// For a plan that this binary does not know, it is the most that any known plan gives.
func (s *Sources) Resolve(spec *store.Spec, kind int) Numbers {
	n := Numbers{Version: s.OnPlan.Version, Of: s.OnPlan.Of}
	for _, revision := range []store.Revision{s.Own.Revision, s.OfAll.Revision, s.OfKind.Revision, s.Plans} {
		version, _ := strconv.ParseInt(string(revision), 10, 64) // "" is 0; text.Override has refused others
		n.Version += version
	}
	if s.Entry != nil {
		n.Version += s.Entry.Version
	}
	if on := s.OnPlan.Name; on == "" || slices.Contains(spec.Plans.Names, on) {
		n.Limits = s.on(spec, kind, on)
		return n
	}
	n.Version, n.Limits = Unknown, slices.Clone(s.on(spec, kind, ""))
	for _, plan := range spec.Plans.Names {
		for i, l := range s.on(spec, kind, plan) {
			if !l.Absent() {
				n.Limits[i] = store.Larger(n.Limits[i], l)
			}
		}
	}
	return n
}

// on returns the limits of a bucket of a kind whose entity is on a plan, "" for none.
func (s *Sources) on(spec *store.Spec, kind int, plan string) []bucket.Limit {
	order := []store.Stored{s.Own, s.OfAll}
	name := spec.Kinds[kind].Name
	at := store.PlanAt(plan, name)
	if s.Entry != nil {
		for _, at := range []string{at, name} {
			order = append(order, store.Stored{Limits: s.Entry.NumbersAt(at)})
		}
	}
	if plan != "" {
		numbers, _ := spec.Plans.NumbersOf(spec, plan, kind)
		order = append(order, s.changed(at), numbers)
	}
	return store.Resolve(spec.Kinds[kind].Limits, append(order, s.OfKind)...)
}

// changed returns what was changed at run time at a plan and a kind.
func (s *Sources) changed(at string) store.Stored {
	if i := slices.IndexFunc(s.Changed, func(o store.Stored) bool { return o.At == at }); i >= 0 {
		return s.Changed[i]
	}
	return store.Stored{}
}

// Same reports whether calls may go by either of n and m.
func (n Numbers) Same(m Numbers) bool {
	return n.Version == m.Version && n.Of == m.Of && slices.Equal(n.Limits, m.Limits)
}
