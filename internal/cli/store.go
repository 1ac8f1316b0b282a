package cli

import (
	"context"
	"iter"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// store is what commands ask of the place that they are pointed at. Its errors are for people.
type store interface {
	// inspect returns the buckets of entity on resource: none where nothing is stored, several where it was charged under
	// several roots. root is that of the one that is meant, or empty.
	inspect(ctx context.Context, entity, resource, root string) ([]found, error)
	// list lists all buckets of resource, or those of a kind.
	list(ctx context.Context, resource, kind string) iter.Seq2[page, error]
	// fill fills the named limits of b, or all. It returns the bucket as it is then, nil where it is gone, and which it filled.
	fill(ctx context.Context, b found, limits []string) (after *found, filled []string, err error)
	overrides() runtime.OverrideStore
	members() runtime.MemberStore
	// explain says in an error of overrides or members what to do, if the error does not.
	explain(err error) error
	// place says where that is, and alternatives where else something could be that is not there.
	place() (at, alternatives string)
	// describe says in a board where it is from.
	describe(b *board)
	close()
}

// found is a bucket as it is now.
type found struct {
	entity, resource string
	root             string // where its chain ends: several buckets of an entity differ in it; empty in a table
	limits           []limitNow
	pending          bool  // still in per-limit items
	revision         int64 // of the numbers that it has
	overrides        int64 // the sum of the versions of the overrides that it has
}

// limitNow is a limit of a bucket as it is now.
type limitNow struct {
	name string
	bucket.Limit
	available int64 // millitokens
	fullIn    time.Duration
}

// nowOf returns the limit of a balance that was refilled until refilled, at now: both in ms.
func nowOf(name string, b bucket.Balance, refilled, now int64) limitNow {
	return limitNow{name, b.Limit, bucket.Available(b, refilled, now), bucket.RetryAfter(b, refilled, now, b.Burst)}
}

// page is what a store has listed since the page before.
type page struct {
	buckets   []found
	malformed []error
	others    int      // per-limit items, which were not read
	strange   []string // what is stored that the schema does not have, as `limit rpm`
	units     float64
}

// title names b, one of all.
func (b found) title(all []found) string {
	text := b.entity + " on " + b.resource
	if len(all) > 1 {
		text += " under " + b.root
	}
	return text
}

// at returns the limit of that name, if b has it.
func (b found) at(name string) *limitNow {
	for i := range b.limits {
		if b.limits[i].name == name {
			return &b.limits[i]
		}
	}
	return nil
}
