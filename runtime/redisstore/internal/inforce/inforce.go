// Package inforce finds the limits in force for a bucket from all that decides them.
package inforce

import (
	"strconv"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Sources is what decides the limits of a bucket before the schema does.
type Sources struct {
	Own, OfKind store.Stored // overrides of its entity, and of its kind
}

// Numbers are the limits in force for a bucket.
type Numbers struct {
	Limits  []bucket.Limit
	Version int64 // grows with each write of a source, and falls if one is evicted
}

// Resolve returns the limits in force for a bucket of a kind.
func (s Sources) Resolve(spec *store.Spec, kind int) Numbers {
	overrides, n := []store.Stored{s.Own, s.OfKind}, Numbers{}
	for _, o := range overrides {
		version, _ := strconv.ParseInt(string(o.Revision), 10, 64) // "" is 0; text.Override has refused others
		n.Version += version
	}
	n.Limits = store.Resolve(spec.Kinds[kind].Limits, overrides...)
	return n
}
