package bucketstore

import (
	"context"
	"iter"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// store is what commands ask of the place that they are pointed at. Its errors are for people.
type Store interface {
	// inspect returns the buckets of entity on resource: none where nothing is stored, several where it was charged under
	// several roots. root is that of the one that is meant, or empty.
	Inspect(ctx context.Context, entity, resource, root string) ([]Bucket, error)
	// list lists all buckets of resource, or those of a kind.
	List(ctx context.Context, resource, kind string) iter.Seq2[Page, error]
	// fill fills the named limits of b, or all. It returns the bucket as it is then, nil where it is gone, and which it filled.
	Fill(ctx context.Context, b Bucket, limits []string) (after *Bucket, filled []string, err error)
	Overrides() store.OverrideStore
	Members() store.MemberStore
	// explain says in an error of overrides or members what to do, if the error does not.
	Explain(err error) error
	// place says where that is, and alternatives where else something could be that is not there.
	Place() (at, alternatives string)
	// source names the store for programs.
	Source() source
	Close()
}

// source is where buckets are from: a table, or keys of a Redis that start with a prefix.
type source struct {
	Table, Redis, Prefix string
}

// found is a bucket as it is now.
type Bucket struct {
	Entity, resource string
	Root             string // where its chain ends: several buckets of an entity differ in it; empty in a table
	Limits           []Limit
	Pending          bool  // still in per-limit items
	Revision         int64 // of the numbers that it has
	Overrides        int64 // the sum of the versions of the overrides that it has
}

// limitNow is a limit of a bucket as it is now.
type Limit struct {
	Name string
	bucket.Limit
	Available int64 // millitokens
	FullIn    time.Duration
}

// nowOf returns the limit of a balance that was refilled until refilled, at now: both in ms.
func nowOf(name string, b bucket.Balance, refilled, now int64) Limit {
	return Limit{name, b.Limit, bucket.Available(b, refilled, now), bucket.RetryAfter(b, refilled, now, b.Burst)}
}

// page is what a store has listed since the page before.
type Page struct {
	Buckets   []Bucket
	Malformed []error
	Others    int      // per-limit items, which were not read
	Strange   []string // what is stored that the schema does not have, as `limit rpm`
	Units     float64
}

// title names b, one of all.
func (b Bucket) Title(all []Bucket) string {
	text := b.Entity + " on " + b.resource
	if len(all) > 1 {
		text += " under " + b.Root
	}
	return text
}

// at returns the limit of that name, if b has it.
func (b Bucket) At(name string) *Limit {
	for i := range b.Limits {
		if b.Limits[i].Name == name {
			return &b.Limits[i]
		}
	}
	return nil
}
