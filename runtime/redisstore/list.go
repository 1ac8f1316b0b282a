package redisstore

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Sizes of what an operator's reads take at once.
const (
	scanCount   = 1000 // keys that one SCAN looks at
	bucketsPage = 100
)

// BucketPage is what Buckets has read since the page before.
type BucketPage struct {
	Buckets   []StoredBucket // sorted by entity, and by root
	Malformed []error        // a *runtime.SetupError for each key that cannot be a bucket's
}

// StoredBucket is a bucket as it is stored: without the limits' parameters, which calls bring along.
type StoredBucket struct {
	Entity string // as stored: user-123
	Root   string // the entity itself; on a cluster where the chain that it was charged in ends, which may be an ancestor
	Limits []StoredLimit
}

// StoredLimit is what is stored of one limit. One that is not stored is full.
type StoredLimit struct {
	Name     string
	Tokens   int64 // millitokens at Refilled, rounded down
	Refilled int64 // ms since the Unix epoch, by Redis's clock
}

// Buckets lists the buckets of resource, without a schema: those of an entity, as stored, of a kind, or all where of is empty.
// Pages have up to 100 buckets and come in the order of entities. It ends with the first error: a *runtime.SetupError, or a
// *runtime.UnavailableError when Redis does not answer.
//
// Nothing is changed. It goes through all keys of Redis, by SCAN, a thousand at a time, on each master of a cluster, and holds
// those of resource in memory. A bucket that is new may be missing, and one that is gone is left out.
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

// found is a bucket whose keys were found.
type found struct {
	entity, root string
	keys         []string // sorted
}

// find returns the buckets of resource, as Buckets does.
func (s *Store) find(ctx context.Context, resource, of string) ([]found, error) {
	pattern, isOf := glob(s.keys.buckets(resource))+"*", func(entity string) bool { return of == "" || entity == of }
	if of != "" {
		pattern += glob(of)
	}
	if of != "" && !strings.Contains(of, "-") { // no kind has one, and an entity's ends its kind
		pattern += "-*"
		isOf = func(entity string) bool { return strings.HasPrefix(entity, of+"-") }
	}
	masters, err := s.nodes(ctx)
	if err != nil {
		return nil, s.told(ctx, err)
	}
	type id struct{ entity, root string }
	keys := map[id][]string{}
	for _, master := range masters {
		scan := master.Scan(ctx, 0, pattern, scanCount).Iterator()
		for scan.Next(ctx) {
			on, _, root, entity, ok := s.keys.parse(scan.Val())
			if ok && on == resource && isOf(entity) { // a pattern also matches ids that hold or end with it
				at := id{entity, root}
				keys[at] = append(keys[at], scan.Val())
			}
		}
		if err := scan.Err(); err != nil {
			return nil, s.told(ctx, err)
		}
	}
	all := make([]found, 0, len(keys))
	for at, of := range keys {
		slices.Sort(of)
		all = append(all, found{at.entity, at.root, slices.Compact(of)}) // SCAN may return a key twice
	}
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(strings.Compare(a.entity, b.entity), strings.Compare(a.root, b.root))
	})
	return all, nil
}

// nodes returns what to scan: each one that has keys of its own.
func (s *Store) nodes(ctx context.Context) (all []redis.Cmdable, err error) {
	var mu sync.Mutex
	add := func(_ context.Context, c *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, c)
		return nil
	}
	switch client := s.client.(type) {
	case *redis.ClusterClient:
		if err = client.ForEachMaster(ctx, add); err == nil && len(all) == 0 { // "nothing is stored" would not be true
			err = errors.New("no master of the cluster has a slot")
		}
	case *redis.Ring:
		err = client.ForEachShard(ctx, add)
	default:
		all = append(all, s.client)
	}
	return all, err
}

// page reads buckets.
func (s *Store) page(ctx context.Context, buckets []found) (page BucketPage, err error) {
	pipe := s.client.Pipeline()
	replies := map[string]*redis.SliceCmd{}
	for _, b := range buckets {
		for _, key := range b.keys {
			replies[key] = pipe.HMGet(ctx, key, tokensField, sinceField)
		}
	}
	if _, err := pipe.Exec(ctx); err != nil && !redis.HasErrorPrefix(err, wrongType) {
		return BucketPage{}, s.told(ctx, err)
	}
	for _, b := range buckets {
		next := StoredBucket{Entity: b.entity, Root: b.root}
		for _, key := range b.keys {
			_, limit, _, _, _ := s.keys.parse(key)
			what, err := decodeBucket(replies[key].Result())
			switch {
			case err != nil:
				page.Malformed = append(page.Malformed, malformed(key, err))
			case what != nil: // it is not gone since
				next.Limits = append(next.Limits, StoredLimit{limit, what.Tokens, what.Refilled})
			}
		}
		if len(next.Limits) > 0 {
			page.Buckets = append(page.Buckets, next)
		}
	}
	return page, nil
}

// glob writes text such that a pattern of SCAN matches nothing else.
func glob(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}
