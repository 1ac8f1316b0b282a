package dynamo

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// cache holds the buckets that a session knows. The least recently used one is forgotten first, and costs a
// read when it is used again.
type cache struct {
	buckets *lru.Cache[bucketKey, *cachedBucket]
}

// bucketKey names a bucket within a session, by the entity's kind and id as callers give them.
type bucketKey struct {
	resource *resource
	kind     int
	id       string
}

// lookup returns the cached bucket of an entity, a new one if there is none. entity is as stored.
func (c *cache) lookup(r *resource, kind int, entity string) *cachedBucket {
	key := bucketKey{r, kind, entity[len(r.Spec.Kinds[kind].Prefix):]}
	if cached, ok := c.buckets.Get(key); ok {
		return cached
	}
	fresh := &cachedBucket{at: wire.Bucket{Resource: &r.Resource, Partition: item.EntityPrefix + entity}}
	fresh.at.Entity = fresh.at.Partition[len(item.EntityPrefix):]
	fresh.queue.cached = fresh
	if cached, ok, _ := c.buckets.PeekOrAdd(key, fresh); ok {
		return cached
	}
	return fresh
}

// cachedBucket is what a process knows of one bucket, and the queues of requests that write to it. Concurrent
// calls share it. Of two true images the younger one stays, whichever arrives last. A predicted image
// replaces either.
type cachedBucket struct {
	at wire.Bucket

	mu sync.Mutex // guards what follows, and the queues

	image          *bucket.Image      // nil if unknown or deleted
	seenAt         int64              // when image was true, ms; predicted if it never was
	shape          *override.Resolved // nil if unknown
	slackUntil     int64              // until then Normals leave slack, ms
	contendedUntil int64              // until then other writers are assumed, ms
	lastDenial     *cachedDenial      // of a chain that begins here

	queue       queue       // of writes to this bucket alone
	chains      []*queue    // of writes to this bucket and others; each exists while it has work
	deferred    []*request  // lazy settles that wait for another write
	hasDeferred atomic.Bool // len(deferred) > 0
	giveBacks   int         // lazy settles that give something back, those under way included
	flushing    bool        // a goroutine waits until deferred settles are overdue
}

// Times for which a process goes by what it saw, in milliseconds.
const (
	// slackFor is how long a process leaves slack on a bucket after it lost a Normal.
	slackFor = 1000
	// contendedFor is how long after a lost race other writers are assumed at work on the bucket.
	contendedFor = 10_000
	// staleAfter is the age from which a write that needs refill probably fails on a contended bucket. A younger
	// image is worth the attempt: reading before each write cost half as much again in the simulation's
	// overload.
	staleAfter = 64
	// trustedFor is how long an image may deny. Later on, others may have given something back.
	trustedFor = 1000
)

// predicted stands for the time of an image that DynamoDB did not return.
const predicted = math.MinInt64

// isFresh reports whether an image that was true at seenAt is at most age old at now. It is not if the clock
// was set back.
func isFresh(seenAt, now, age int64) bool {
	return seenAt != predicted && now >= seenAt && now-seenAt <= age
}

// snapshot returns the image, the time at which it was true, and the shape.
func (c *cachedBucket) snapshot() (img *bucket.Image, seenAt int64, shape *override.Resolved) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.image, c.seenAt, c.shape
}

// update stores an image, nil for a missing bucket, that was true at seenAt, or is predicted. An older one is
// ignored: replies may overtake each other. One much older is stored: the clock was set back, or else the
// next write costs one more attempt.
func (c *cachedBucket) update(img *bucket.Image, seenAt int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	older := c.seenAt - seenAt
	if seenAt == predicted || c.seenAt == predicted || c.image == nil || older <= 0 || older > trustedFor {
		c.image, c.seenAt = img, seenAt
	}
}

// invalidate makes the next call read the bucket first.
func (c *cachedBucket) invalidate() { c.update(nil, predicted) }

// setShape stores the shape that the bucket should have.
func (c *cachedBucket) setShape(shape *override.Resolved) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shape = shape
}

// addGiveBacks changes the number of lazy settles that give something back.
func (c *cachedBucket) addGiveBacks(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.giveBacks += n
}

// noteConflict notes that a write lost to another writer at now. After a lost Normal, this process leaves
// slack.
func (c *cachedBucket) noteConflict(now int64, lostNormal bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.contendedUntil = now + contendedFor
	if lostNormal {
		c.slackUntil = now + slackFor
	}
}

// isContended reports whether other writers are assumed at work on the bucket at now.
func (c *cachedBucket) isContended(now int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return lasts(c.contendedUntil, now, contendedFor)
}

// leavesSlack reports whether Normals leave slack at now.
func (c *cachedBucket) leavesSlack(now int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return lasts(c.slackUntil, now, slackFor)
}

// lasts reports whether what was noted for a time still holds at now. It does not if the clock was set back.
func lasts(until, now, noted int64) bool { return until > now && until-now <= noted }

// queueFor returns the queue that r belongs to: of the bucket alone, or of the chain that begins here. The
// caller holds mu.
func (c *cachedBucket) queueFor(r *request) *queue {
	if len(r.portions) == 1 {
		return &c.queue
	}
	isBucketOf := func(other *cachedBucket, pn portion) bool { return other == pn.cached }
	same := func(q *queue) bool { return slices.EqualFunc(q.others, r.portions[1:], isBucketOf) }
	if i := slices.IndexFunc(c.chains, same); i >= 0 {
		return c.chains[i]
	}
	q := &queue{cached: c}
	for i := range r.portions[1:] {
		q.others = append(q.others, r.portions[1+i].cached)
	}
	c.chains = append(c.chains, q)
	return q
}

// resource is a generated resource, opened for a session.
type resource struct {
	wire.Resource

	def   store.Definition
	kinds []atomic.Pointer[override.Override] // by kind, the override of the kind as last read
}

// cachedDenial is a denial from the cache alone. The calls of one millisecond share it: a flood of them makes
// no garbage, and retry after is exact for each.
type cachedDenial struct {
	now    int64
	cost   []int64
	images []*bucket.Image // of the chain
	err    *store.DeniedError
}

// maxCachedChain is the longest chain that the cache alone denies.
const maxCachedChain = 8

// Refused implements store.Session. It returns nil if a bucket is to be reshaped or a lazy settle is to give
// something back: the next write changes what there is.
func (s *session) Refused(
	def store.Definition, chain []store.Link, cost []int64, now int64,
) *store.DeniedError {
	r := s.resource(def)
	var all [maxCachedChain]*cachedBucket
	var images [maxCachedChain]*bucket.Image
	if len(chain) > len(images) {
		return nil
	}
	denies, last := false, (*cachedDenial)(nil)
	for i := range chain {
		// Peek does not take the LRU's lock for writing. A bucket that denies again and again moves to the front
		// once a second, when its image is too old to deny and an acquire reads it.
		cached, ok := s.scheduler.cache.buckets.Peek(bucketKey{r, chain[i].Kind, chain[i].ID})
		if !ok {
			return nil
		}
		cached.mu.Lock()
		mayDeny, img, shape := s.scheduler.mayDeny(r, cached, now), cached.image, cached.shape
		if i == 0 {
			last = cached.lastDenial
		}
		cached.mu.Unlock()
		if !mayDeny {
			return nil
		}
		all[i], images[i] = cached, img
		for j := range img.Balances {
			b := &img.Balances[j]
			switch {
			case cost[j] <= 0, img.Missing[j]:
			case shape.Ceiling != nil && store.ExceedsQuota(b.Limit, cost[j]) && cost[j] <= shape.Ceiling[j].Burst:
				denies = true
			case cost[j] > b.Burst: // it can never be served: an error of its own
				return nil
			case !denies:
				denies = bucket.Available(*b, img.Refilled, now) < cost[j]
			}
		}
	}
	if !denies {
		return nil
	}
	seen := images[:len(chain)]
	if last != nil && last.now == now && slices.Equal(last.cost, cost) && slices.Equal(last.images, seen) {
		return last.err
	}
	next := &cachedDenial{now: now, cost: slices.Clone(cost), images: slices.Clone(seen)}
	for i, img := range seen {
		next.err = store.Refuse(next.err, r.Spec, all[i].at.Entity, img, cost, now)
	}
	first := all[0]
	first.mu.Lock()
	defer first.mu.Unlock()
	first.lastDenial = next
	return next.err
}

// mayDeny reports whether the cached image may deny at now. The caller holds the bucket's lock.
func (s *scheduler) mayDeny(r *resource, cached *cachedBucket, now int64) bool {
	shape := cached.shape
	if cached.image == nil || shape == nil || cached.giveBacks != 0 || !isFresh(cached.seenAt, now, trustedFor) {
		return false
	}
	return s.isFresh(r.Spec, shape.ReadAt, now) && !shape.Expired(r.Spec, now) &&
		!plan.Outdated(cached.image, &shape.Shape)
}
