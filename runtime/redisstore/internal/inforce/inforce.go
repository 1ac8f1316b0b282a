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
	OnPlan      store.OnPlan // the zero one for a kind that is on no plans
	Plan        store.Stored // what was changed at run time of that plan, for the kind
}

// Numbers are the limits in force for a bucket.
type Numbers struct {
	Limits  []bucket.Limit
	Version int64  // grows with each write of a source, and falls if one is evicted; Unknown for an unknown plan
	Of      string // the entity whose plan decides, "" for none
}

// Unknown is the version of the numbers of a plan that this binary does not know. All others are newer.
const Unknown = -1

// Resolve returns the limits in force for a bucket of a kind.
func (s Sources) Resolve(spec *store.Spec, kind int) Numbers {
	n := Numbers{Version: s.OnPlan.Version, Of: s.OnPlan.Of}
	for _, o := range []store.Stored{s.Own, s.OfKind, s.Plan} {
		version, _ := strconv.ParseInt(string(o.Revision), 10, 64) // "" is 0; text.Override has refused others
		n.Version += version
	}
	overrides := []store.Stored{s.Own, s.Plan, s.OfKind}
	if s.OnPlan.Name != "" {
		numbers, known := spec.Plans.NumbersOf(spec, s.OnPlan.Name, kind)
		overrides = []store.Stored{s.Own, s.Plan, numbers, s.OfKind}
		if !known {
			n.Version = Unknown
		}
	}
	n.Limits = store.Resolve(spec.Kinds[kind].Limits, overrides...)
	return n
}

// Same reports whether calls may go by either of n and m.
func (n Numbers) Same(m Numbers) bool {
	return n.Version == m.Version && n.Of == m.Of && slices.Equal(n.Limits, m.Limits)
}
