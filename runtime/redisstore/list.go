package redisstore

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/text"
)

// bucketsPage is the number of buckets that one pipeline reads.
const bucketsPage = 100

// BucketPage is the next part of what Buckets has read.
type BucketPage struct {
	Buckets   []StoredBucket // sorted by entity, and by root
	Malformed []error        // a *runtime.SetupError for each key that is not a bucket
}

// StoredBucket is a bucket as it is stored: without the limits' parameters, which each call passes.
type StoredBucket struct {
	Entity string // as stored: user-123
	// the end of the chain it was charged in on a cluster, which may be an ancestor; else the entity
	Root   string
	Limits []StoredLimit
}

// StoredLimit is one stored limit of a bucket. A limit that is not stored is full.
type StoredLimit struct {
	Name     string
	Tokens   int64 // millitokens at Refilled, rounded down
	Refilled int64 // ms since the Unix epoch, by Redis's clock

	// Of a windowed limit, which has neither of the above: the millitokens used in the window that ends at Ends,
	// in ms since the Unix epoch. Ends is 0 for a limit without windows.
	Used, Ends int64

	// Of a limit that counts holds: the millitokens that open leases hold beside Used, and the lowest epoch that
	// is counted, as bucket.Balance has them. Epoch is 0 for another limit.
	Cells [2]int64
	Epoch int64

	// Of is the entity whose plan gave the limit its numbers when it was last written, "" if no plan did.
	Of string
}

// Balance returns s with the numbers of l, which are in force for it.
func (s *StoredLimit) Balance(l bucket.Limit) bucket.Balance {
	b := bucket.Balance{Limit: l, Tokens: s.Tokens, Ends: s.Ends, Cells: s.Cells, Epoch: s.Epoch}
	if l.Windowed() || l.InFlight() {
		b.Tokens = bucket.Sub(l.Burst, bucket.Add(s.Used, bucket.Add(s.Cells[0], s.Cells[1])))
	}
	return b
}

// Buckets lists the buckets of resource, without a schema: those of an entity, as stored, those of a kind,
// or all if of is empty. Pages have up to 100 buckets and come in the order of entities. The iteration ends
// with the first error: a *runtime.SetupError, or a *runtime.UnavailableError when Redis does not answer.
//
// Buckets changes nothing. It visits all keys of Redis by SCAN, a thousand at a time, on each master of a
// cluster, and holds those of resource in memory. A new bucket may be missing, and one that has expired
// since is omitted.
func (s *Store) Buckets(ctx context.Context, resource, of string) iter.Seq2[BucketPage, error] {
	return func(yield func(BucketPage, error) bool) {
		found, err := s.find(ctx, resource, of)
		if err != nil {
			yield(BucketPage{}, err)
			return
		}
		for chunk := range slices.Chunk(found, bucketsPage) {
			page, err := s.page(ctx, chunk)
			if err != nil {
				yield(BucketPage{}, err)
				return
			}
			if !yield(page, nil) {
				return
			}
		}
	}
}

// storedKeys is the keys of a bucket.
type storedKeys struct {
	entity, root string
	keys         []string // sorted
}

// find returns the buckets of resource, as Buckets does.
func (s *Store) find(ctx context.Context, resource, of string) ([]storedKeys, error) {
	pattern := text.Glob(s.db.Keys.Buckets(resource)) + "*"
	isOf := func(entity string) bool { return of == "" || entity == of }
	if of != "" {
		pattern += text.Glob(of)
	}
	if of != "" && !strings.Contains(of, "-") { // a kind: its name has no '-', which separates it from the id
		pattern += "-*"
		isOf = func(entity string) bool { return strings.HasPrefix(entity, of+"-") }
	}
	scanned, err := s.db.Scan(ctx, pattern)
	if err != nil {
		return nil, err
	}
	type id struct{ entity, root string }
	keys := map[id][]string{}
	for _, key := range scanned {
		on, _, root, entity, ok := s.db.Keys.Parse(key)
		if ok && on == resource && isOf(entity) { // the pattern also matches ids that contain it
			at := id{entity, root}
			keys[at] = append(keys[at], key)
		}
	}
	all := make([]storedKeys, 0, len(keys))
	for at, of := range keys {
		all = append(all, storedKeys{at.entity, at.root, of})
	}
	slices.SortFunc(all, func(a, b storedKeys) int {
		return cmp.Or(strings.Compare(a.entity, b.entity), strings.Compare(a.root, b.root))
	})
	return all, nil
}

// page reads buckets from Redis.
func (s *Store) page(ctx context.Context, buckets []storedKeys) (page BucketPage, err error) {
	pipe := s.db.Client.Pipeline()
	replies := map[string]*redis.SliceCmd{}
	for _, b := range buckets {
		for _, key := range b.keys {
			replies[key] = pipe.HMGet(ctx, key, text.BucketFields()...)
		}
	}
	if _, err := pipe.Exec(ctx); err != nil && !redis.HasErrorPrefix(err, database.WrongType) {
		return BucketPage{}, s.db.OperationError(ctx, err)
	}
	for _, b := range buckets {
		next := StoredBucket{Entity: b.entity, Root: b.root}
		for _, key := range b.keys {
			_, limit, _, _, _ := s.db.Keys.Parse(key)
			stored, err := decodeBucket(replies[key].Result())
			switch {
			case err != nil:
				page.Malformed = append(page.Malformed, malformed(key, err))
			case stored != nil: // it has not expired since
				stored.Name = limit
				next.Limits = append(next.Limits, *stored)
			}
		}
		if len(next.Limits) > 0 {
			page.Buckets = append(page.Buckets, next)
		}
	}
	return page, nil
}
