package redisstore

import (
	"slices"
	"strconv"
	"sync"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// bucketKey identifies a bucket in the cache. The bucket's keys in Redis follow from it.
type bucketKey struct {
	*resource
	root, entity string // as stored
}

// cachedBucket is a bucket as the session last saw it, with the limits in force for it.
type cachedBucket struct {
	*resource
	kind   int
	entity string
	keys   []any // its hashes, by limit: strings, as a command takes them

	mu      sync.Mutex
	own     *override // last read for the entity
	ofKind  *override // the kind's override from which inForce was made, together with own
	inForce *limitSet // nil until the overrides have been read
	img     *bucket.Image
}

// limitSet is the limits in force for a bucket. As long as they stay the same, the pointer stays the same, so
// requests compare pointers to find out whether they can share a script call.
type limitSet struct {
	*cachedBucket
	limits []bucket.Limit
	// of each limit, its burst in tokens and its refill in tokens per ms: strings, as ARGV has them
	params []any
}

// lookup returns the cached bucket of a chain that ends with root; it adds one to the cache if there is none.
func (s *session) lookup(r *resource, kind int, root, entity string) *cachedBucket {
	key := bucketKey{r, root, entity}
	if b, ok := s.buckets.Get(key); ok {
		return b
	}
	b := &cachedBucket{resource: r, kind: kind, entity: entity}
	for _, limit := range r.spec.Limits {
		b.keys = append(b.keys, s.keys.bucket(r.spec.Resource, limit, root, entity))
	}
	if cached, ok, _ := s.buckets.PeekOrAdd(key, b); ok {
		return cached
	}
	return b
}

// snapshot returns what was last seen of b: either may be nil.
func (b *cachedBucket) snapshot() (*limitSet, *bucket.Image) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.inForce, b.img
}

// update records img as the bucket's latest state.
func (b *cachedBucket) update(img *bucket.Image) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.img = img
}

// setOverrides computes b's limits from own and ofKind, unless they were computed from these already. The
// caller holds the lock.
func (b *cachedBucket) setOverrides(own, ofKind *override) {
	if b.inForce != nil && b.own == own && b.ofKind == ofKind {
		return
	}
	b.own, b.ofKind = own, ofKind
	limits := store.Resolve(b.spec.Kinds[b.kind].Limits, own.Stored, ofKind.Stored)
	if b.inForce != nil && slices.Equal(b.inForce.limits, limits) {
		return
	}
	next := &limitSet{cachedBucket: b, limits: limits}
	for _, l := range limits {
		burst := float64(l.Burst) / bucket.Milli
		perMillisecond := float64(l.Refill) / bucket.Milli / float64(l.Period)
		next.params = append(next.params, formatFloat(burst), formatFloat(perMillisecond))
	}
	b.inForce = next
}

// formatFloat writes f so that it parses back to the same number, and without an exponent: miniredis does not
// take 1e+06 for a number.
func formatFloat(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
