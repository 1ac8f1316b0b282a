package runtime

import "github.com/sluice-go/sluice/runtime/bucket"

// Spec describes one resource of a schema. Generated code fills it in; nobody changes it afterwards.
type Spec struct {
	Resource string
	Revision int64    // of the numbers: buckets of a lower one are reshaped
	Limits   []string // in schema order, as all vectors are
	Removed  []string // limits that buckets may still hold and a reshape removes
	Kinds    []Kind
}

// Kind is one kind of entity in schema order, as Link.Kind indexes it.
type Kind struct {
	Name, Prefix string         // user, user-
	Limits       []bucket.Limit // parameters of a bucket of this kind; nil where the resource gives it none
	PerCall      []int64        // what 0 in a cost means, whole tokens, in schema order
}

// Definition is a generated resource. Each store asks it for more when it is opened: dynamo for codec.Resource.
type Definition interface{ Spec() *Spec }
