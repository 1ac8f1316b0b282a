package store

import "github.com/sluice-go/sluice/runtime/bucket"

// Spec describes one resource of a schema. Generated code fills it in; nobody changes it afterwards.
type Spec struct {
	Resource string
	Owner    string   // of limits.yaml, and of the tables that may be used; "" uses those of any owner
	Revision int64    // of the numbers: buckets of a lower one are reshaped
	Limits   []string // in schema order, as all vectors are
	Removed  []string // limits that buckets may still hold and a reshape removes
	Kinds    []Kind

	Cascade       Cascade
	OnUnavailable Policy   // 0 is Allow
	LazySettle    bool     // settles and releases go out with the bucket's next write, or within 100 ms
	Shadow        bool     // no call is refused; its lease has what would have refused it
	Regions       *Regions // that divide the limits; nil if they are this table's alone
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
	Name, Prefix string         // user, user-
	Parent       int            // index of the parent's kind, NoParent for none
	Limits       []bucket.Limit // parameters of a bucket of this kind; nil if it has no bucket
	PerCall      []int64        // what 0 in a cost means, whole tokens, in schema order
}

// NoParent is the Parent of a kind that has none.
const NoParent = -1

// Definition is a generated resource. Each store asks it for more when it is opened: dynamo for
// codec.Resource.
type Definition interface{ Spec() *Spec }
