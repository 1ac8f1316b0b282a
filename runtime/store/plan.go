package store

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// Plans are the sets of numbers of a schema that entities of one kind are put on. Entities below them follow.
type Plans struct {
	Kind  int      // whose entities are put on plans
	Names []string // in schema order, which means nothing
	// Limits are what the plans restate of a resource: by plan, by kind, by limit. An Absent one inherits, and
	// so do all of a kind that is nil.
	Limits [][][]bucket.Limit
}

// OnPlan is what decides by which plan a bucket gets its numbers. The zero OnPlan is that of a bucket that no
// plan concerns.
type OnPlan struct {
	Of      string // the entity whose plan it is, as stored: org-7
	Name    string // "" for an entity that is on no plan
	Version int64  // of what is stored of that; 0 if it never was on one
	From    string // the entity whose stored parents led to Of; "" if the caller gave Of
}

// OnPlans reports whether kind is that whose entities are put on plans, or one below it.
func (s *Spec) OnPlans(kind int) bool {
	for range s.Kinds { // a tree: no way up is longer
		if s.Plans == nil || kind == NoParent {
			return false
		}
		if kind = s.EntityKind(kind); kind == s.Plans.Kind {
			return true
		}
		kind = s.Kinds[kind].Parent
	}
	return false
}

// PlanAt returns where the numbers of a plan and a kind are stored: pro.key, as Stored.At has it.
func PlanAt(plan, kind string) string { return plan + planSeparator + kind }

// SplitPlanAt is the reverse of PlanAt. ok is false for an entity, such as key-1.2, or a kind.
func SplitPlanAt(at string) (plan, kind string, ok bool) {
	if strings.Contains(at, "-") { // no name of a plan or kind has one
		return "", "", false
	}
	return strings.Cut(at, planSeparator)
}

const planSeparator = "."

// NumbersOf returns what limits.yaml has for kind in a plan, as an override, and whether it has the plan. The
// numbers of an unknown plan, which a newer binary knows, are the most that any known plan gives.
func (p *Plans) NumbersOf(s *Spec, plan string, kind int) (numbers Stored, known bool) {
	at := PlanAt(plan, s.Kinds[kind].Name)
	numbers = Stored{At: "schema." + at, Limits: make([]*bucket.Limit, len(s.Limits))}
	if i := slices.Index(p.Names, plan); i >= 0 {
		for j, limit := range p.Limits[i][kind] {
			if !limit.Absent() {
				numbers.Limits[j] = &limit
			}
		}
		return numbers, true
	}
	for j, most := range s.Kinds[kind].Limits {
		if most.Absent() {
			continue
		}
		for _, kinds := range p.Limits {
			if kinds[kind] != nil && !kinds[kind][j].Absent() {
				most = Larger(most, kinds[kind][j])
			}
		}
		numbers.Limits[j] = &most
	}
	return numbers, false
}

// Larger returns a limit that has the larger of each number of a and b, and of two rates the higher one.
func Larger(a, b bucket.Limit) bucket.Limit {
	l := bucket.Limit{
		Capacity: max(a.Capacity, b.Capacity), Burst: max(a.Burst, b.Burst), Refill: a.Refill, Period: a.Period,
	}
	ofA, lowA := bits.Mul64(uint64(a.Refill), uint64(b.Period))
	ofB, lowB := bits.Mul64(uint64(b.Refill), uint64(a.Period))
	if ofB > ofA || ofB == ofA && lowB > lowA {
		l.Refill, l.Period = b.Refill, b.Period
	}
	return l
}
