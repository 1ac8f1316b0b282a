package bucketstore

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Store is where buckets, overrides and entities are: a table or a Redis. Its errors are for people.
type Store interface {
	// Inspect returns the buckets of entity on resource. There are none if nothing is stored. There are
	// several if calls charged it under several roots; root selects one, unless it is empty.
	Inspect(ctx context.Context, entity, resource, root string) ([]Bucket, error)
	// List lists all buckets of resource, or those of a kind if kind is not empty.
	List(ctx context.Context, resource, kind string) iter.Seq2[Page, error]
	// Fill fills the named limits of b, or all. It returns the bucket after that, nil if it no longer exists,
	// and the names of the filled limits.
	Fill(ctx context.Context, b Bucket, limits []string) (after *Bucket, filled []string, err error)
	// Root returns the root of the entity's chain of a scope, by which the store may keep its bucket. given is
	// that of --root, or empty.
	Root(ctx context.Context, l schemafile.Scope, given string) (string, error)
	Overrides() store.OverrideStore
	Members() store.MemberStore
	Catalog() store.Catalog
	// Changes yields the records of changes since an instant, oldest first. It ends with the first error.
	Changes(ctx context.Context, of store.Audited, since time.Time) iter.Seq2[store.Change, error]
	// OnPlan yields the entities of a kind that are on a plan, page by page, by one scan of the store. It ends
	// with the first error.
	OnPlan(ctx context.Context, kind *store.Kind, plan string) iter.Seq2[PlanPage, error]
	// CheckOwner returns a *store.SetupError if the store records another owner than this one.
	CheckOwner(ctx context.Context, owner string) error
	// Explain adds to an error of Overrides, Members, Catalog, Changes or OnPlan what to do about it.
	Explain(err error) error
	// Place names the store in a sentence, and the flags that would lead to another one.
	Place() (at, alternatives string)
	// Source names the store for programs.
	Source() Source
	Close()
}

// Source names a store: a table and a namespace, or a Redis and the prefix of its keys.
type Source struct {
	Table, Namespace, Redis, Prefix string
}

// Bucket is a bucket and its balances at the time of the read.
type Bucket struct {
	Entity, Resource string
	Root             string // the last entity of its chain; empty in a table
	Limits           []Limit
	Pending          bool  // its state is still in per-limit items
	Revision         int64 // of the schema that it has numbers of
	Overrides        int64 // the sum of the versions of the overrides that it contains
}

// Limit is a limit of a bucket and its balance at the time of the read.
type Limit struct {
	Name string
	// Unit is the currency of a limit of money, whose numbers are nano-units. It is empty for tokens, and
	// without a schema.
	Unit string
	bucket.Limit
	Available int64 // millitokens
	// FullIn is the time until the balance is full if nothing is taken and nobody extends a hold. It is 0 for a
	// prepaid limit, which time does not fill.
	FullIn time.Duration
	// Held is what open leases hold, the hold that ends first coming first.
	Held []Hold

	// Resets is the end of the open window, in UTC unless InZones has set another zone. It is zero if none is
	// open, or if the limit refills.
	Resets   time.Time
	ResetsIn time.Duration
}

// Hold is what open leases hold of a limit until the same instant. Processes that are alive extend theirs.
type Hold struct {
	Tokens int64 // millitokens
	Until  time.Time
}

// heldOf returns what open leases hold of a balance at now, in ms.
func heldOf(b bucket.Balance, now int64) (all []Hold) {
	for cell, tokens := range b.Cells {
		if end := bucket.EpochEnd(b.HeldIn(cell)); tokens != 0 && end > now {
			all = append(all, Hold{tokens, time.UnixMilli(end).UTC()})
		}
	}
	slices.SortFunc(all, func(x, y Hold) int { return x.Until.Compare(y.Until) })
	return all
}

// nowOf returns the limit of a balance at now. refilled is the time of the last refill; both are in ms.
func nowOf(name string, b bucket.Balance, refilled, now int64) Limit {
	l := Limit{Name: name, Limit: b.Limit, Available: bucket.Available(b, refilled, now),
		FullIn: bucket.RetryAfter(b, refilled, now, b.Burst)}
	if b.Windowed() && b.Over(now) {
		return l // nothing that was held counts any more
	}
	if l.Held = heldOf(b, now); b.InFlight() || b.Prepaid() {
		l.FullIn = 0
	}
	if n := len(l.Held); b.InFlight() && n > 0 {
		l.FullIn = l.Held[n-1].Until.Sub(time.UnixMilli(now))
	}
	if at := store.Resets(b, now); !at.IsZero() {
		l.Resets, l.ResetsIn = at.UTC(), at.Sub(time.UnixMilli(now))
	}
	return l
}

// Page is what a store lists between two calls.
type Page struct {
	Buckets   []Bucket
	Malformed []error
	Others    int      // the number of per-limit items, which are not read
	Strange   []string // stored, but not in the schema, such as `limit rpm`
	Units     float64  // read units
}

// PlanPage is what a scan for entities on a plan has read since the page before.
type PlanPage struct {
	Entities []string
	Read     int     // items, or keys
	Units    float64 // read units
}

// Title names b, which is one of all buckets of an entity.
func (b Bucket) Title(all []Bucket) string {
	text := term.Quote(b.Entity) + " on " + b.Resource
	if len(all) > 1 {
		text += " under " + term.Quote(b.Root)
	}
	return text
}

// At returns the limit of that name, or nil.
func (b Bucket) At(name string) *Limit {
	for i := range b.Limits {
		if b.Limits[i].Name == name {
			return &b.Limits[i]
		}
	}
	return nil
}
