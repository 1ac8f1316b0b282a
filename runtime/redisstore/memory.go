package redisstore

import (
	"slices"
	"strconv"
	"sync"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// bucketKey is what a bucket is remembered by: its keys in Redis depend on these.
type bucketKey struct {
	*resource
	root, entity string // as stored
}

// memory is what is remembered of a bucket.
type memory struct {
	*resource
	kind   int
	entity string
	keys   []any // its hashes, by limit: strings, as a command takes them

	mu     sync.Mutex
	own    *level // what was last read of the entity
	ofKind *level // what shape was made of, beside own
	shape  *shape // nil until the overrides are known
	img    *bucket.Image
}

// shape is what a bucket is charged by. As long as that stays the same, it is the same shape.
type shape struct {
	*memory
	limits []bucket.Limit
	params []any // of each limit, its burst in tokens and its refill in tokens per ms: strings, as ARGV has them
}

// recall returns the memory of a bucket of a chain that ends with root.
func (s *session) recall(r *resource, kind int, root, entity string) *memory {
	key := bucketKey{r, root, entity}
	if m, ok := s.buckets.Get(key); ok {
		return m
	}
	m := &memory{resource: r, kind: kind, entity: entity}
	for _, limit := range r.spec.Limits {
		m.keys = append(m.keys, s.keys.bucket(r.spec.Resource, limit, root, entity))
	}
	if known, ok, _ := s.buckets.PeekOrAdd(key, m); ok {
		return known
	}
	return m
}

// known returns what was last seen of m: either may be nil.
func (m *memory) known() (*shape, *bucket.Image) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.shape, m.img
}

// saw remembers a bucket as it was just left.
func (m *memory) saw(img *bucket.Image) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.img = img
}

// resolve makes m's shape of own and ofKind, if it is not made of these. The caller holds the lock.
func (m *memory) resolve(own, ofKind *level) {
	if m.shape != nil && m.own == own && m.ofKind == ofKind {
		return
	}
	m.own, m.ofKind = own, ofKind
	limits := runtime.Resolve(m.spec.Kinds[m.kind].Limits, own.Stored, ofKind.Stored)
	if m.shape != nil && slices.Equal(m.shape.limits, limits) {
		return
	}
	next := &shape{memory: m, limits: limits}
	for _, l := range limits {
		next.params = append(next.params, float(float64(l.Burst)/bucket.Milli), float(float64(l.Refill)/bucket.Milli/float64(l.Period)))
	}
	m.shape = next
}

// float writes f such that it is read back as it is: without an exponent, for to miniredis 1e+06 is no number.
func float(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
