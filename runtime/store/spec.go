package store

import (
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// Spec describes one resource of a schema. Generated code fills it in; nobody changes it afterwards.
type Spec struct {
	Resource string
	Owner    string   // of limits.yaml, and of the tables that may be used; "" uses those of any owner
	Revision int64    // of the numbers: buckets of a lower one are reshaped
	Limits   []string // in schema order, as all vectors are
	Removed  []string // limits that buckets may still hold and a reshape removes
	Held     []bool   // by limit: buckets count what open leases hold of it; nil if of none
	Units    []string // by limit: the currency of one whose tokens are money, "" for others; nil if none is
	Kinds    []Kind   // of entities; then, of a template, those again that have buckets of all names together
	Names    bool     // names: catalog: a template, or one of its names
	Template string   // the template that Resource is a name of; "" for other resources
	Entry    *Entry   // of the name; nil without a Template
	Usages   []string // of a template: what calls consume, for the Prices of entries

	Cascade       Cascade
	OnUnavailable Policy   // 0 is Allow
	LazySettle    bool     // settles and releases go out with the bucket's next write, or within 100 ms
	Shadow        bool     // no call is refused; its lease has what would have refused it
	Regions       *Regions // that divide the limits; nil if they are this table's alone
	Plans         *Plans   // that change the numbers; nil if the resource has none

	// Prefetch is how long before its use a process may take a token; 0 if each call asks the store.
	Prefetch time.Duration
}

// Cascade says which buckets a call charges beside the entity's own: those of the ancestors whose kind has
// one. Compensated may briefly refuse too much.
type Cascade uint8

// Cascades. The zero value is the schema's default.
const (
	CascadeAtomic      Cascade = iota // all buckets or none, in one transaction: 2 write units per bucket
	CascadeCompensated                // one by one, given back on a refusal: 1 write unit per bucket
	CascadeNone                       // the entity's own bucket alone
)

// Kind is one kind of entity in schema order, as Link.Kind indexes it.
type Kind struct {
	Name, Prefix string // user, user-
	Parent       int    // index of the parent's kind, NoParent for none
	AllNames     bool   // its buckets are those of all names of a template together
	// parameters of a bucket of this kind, Absent for a limit that it does not have; nil if it has no bucket
	Limits  []bucket.Limit
	PerCall []int64            // what 0 in a cost means, whole tokens or nano-units, in schema order
	Windows []*bucket.Calendar // by limit, nil for one without windows; nil if none has windows
}

// OwnWindows reports whether windows of k depend on the entity: starts or zone is entity.
func (k *Kind) OwnWindows() bool {
	for i, c := range k.Windows {
		if c != nil && c.Own() && k.Has(i) {
			return true
		}
	}
	return false
}

// Has reports whether buckets of k have the i-th limit.
func (k *Kind) Has(i int) bool { return k.Limits != nil && !k.Limits[i].Absent() }

// Indexes returns the indexes of the limits that buckets of k have.
func (k *Kind) Indexes() (all []int) {
	for i := range k.Limits {
		if k.Has(i) {
			all = append(all, i)
		}
	}
	return all
}

// partial reports whether buckets of k have some limits and not others.
func (k *Kind) partial() bool { return slices.ContainsFunc(k.Limits, bucket.Limit.Absent) }

// Windowed reports whether the i-th limit has windows, in whichever kind has it.
func (s *Spec) Windowed(i int) bool {
	return slices.ContainsFunc(s.Kinds, func(k Kind) bool { return k.Limits != nil && k.Limits[i].Windowed() })
}

// InFlight reports whether the i-th limit is one of calls in flight, in whichever kind has it.
func (s *Spec) InFlight(i int) bool {
	return slices.ContainsFunc(s.Kinds, func(k Kind) bool { return k.Limits != nil && k.Limits[i].InFlight() })
}

// HasHolds reports whether buckets of a kind count what open leases hold.
func (s *Spec) HasHolds(kind int) bool {
	for i := range s.Held {
		if s.Held[i] && s.Kinds[kind].Has(i) {
			return true
		}
	}
	return false
}

// CostOf returns cost, a vector, without the limits that buckets of a kind do not have. It returns cost
// itself if they have all.
func (s *Spec) CostOf(kind int, cost []int64) []int64 {
	k := &s.Kinds[kind]
	if !k.partial() {
		return cost
	}
	own := slices.Clone(cost)
	for i := range own {
		if !k.Has(i) {
			own[i] = 0
		}
	}
	return own
}

// Charges reports whether a call for an entity of a kind is charged for the i-th limit: the kind or, by the
// cascade, an ancestor has it. A call may charge fewer buckets, as stored parents say.
func (s *Spec) Charges(kind, i int) bool {
	for range s.Kinds { // a tree: no way up is longer
		if all := s.AllNames(kind); s.Kinds[kind].Has(i) || all != NoKind && s.Kinds[all].Has(i) {
			return true
		}
		if kind = s.Kinds[kind].Parent; s.Cascade == CascadeNone || kind == NoParent {
			return false
		}
	}
	return false
}

// KindsWith returns the names of the kinds that have the i-th limit.
func (s *Spec) KindsWith(i int) (names []string) {
	for k := range s.Kinds {
		if s.Kinds[k].Has(i) {
			names = append(names, s.Kinds[k].Name)
		}
	}
	return names
}

// RemovedOf returns the limits that a reshape removes from buckets of a kind: Removed, and those that the
// kind does not have.
func (s *Spec) RemovedOf(kind int) []string {
	k := &s.Kinds[kind]
	if !k.partial() {
		return s.Removed
	}
	removed := slices.Clone(s.Removed)
	for i, name := range s.Limits {
		if !k.Has(i) {
			removed = append(removed, name)
		}
	}
	return removed
}

// NoParent is the Parent of a kind that has none.
const NoParent = -1

// Definition is a generated resource. Each store asks it for more when it is opened: dynamo for
// codec.Resource.
type Definition interface{ Spec() *Spec }
