package dynamo

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/internal/item"
)

// bucketKey names a bucket within a session: by the entity's kind and id, as callers give them.
type bucketKey struct {
	resource *resource
	kind     int
	id       string
}

// memory is what a process remembers of one bucket, and the lines of those who wait to write to it. It is shared by
// concurrent calls: of two true images the younger stays, whichever comes last, and what is predicted replaces either.
type memory struct {
	hash, entity string // the item's partition key, and whose it is, as stored

	mu sync.Mutex

	img   *bucket.Image      // nil: unknown, or gone
	seen  int64              // when img was the truth, ms; predicted where it never was
	shape *override.Resolved // nil: unknown
	yield int64              // until when Normals leave room at the top, ms
	rival int64              // until when others are taken to be at work on the bucket, ms
	last  *refusal           // of a chain that begins here, by memory alone

	lane   lane        // of writes to this bucket alone
	owed   []*request  // lazy settles of this bucket
	owes   atomic.Bool // there are some
	back   int         // how many, those under way included, give something back
	timed  bool        // somebody waits until they are due
	chains []*lane     // of those to this one and others, all or none; each is there while it has something to do
}

// contention is how long a process that lost a Normal leaves room, in milliseconds.
const contention = 1000

// rivalry is how long after a lost race others are taken to be at work on the bucket, in milliseconds.
const rivalry = 10_000

// old is the age of an image, in milliseconds, from which a write that needs refill is likelier to fail than not where others
// are at work. Younger ones are worth the try: reading before each cost half as much again in the simulation's overload.
const old = 64

// trusted is for how long an image may refuse after it was the truth, in milliseconds: others may have given something
// back since.
const trusted = 1000

// recall returns the memory of an entity's bucket, a fresh one where there is none.
func (s *session) recall(r *resource, kind int, entity string) *memory {
	key := bucketKey{r, kind, entity[len(r.spec.Kinds[kind].Prefix):]}
	if m, ok := s.images.Get(key); ok {
		return m
	}
	fresh := &memory{hash: item.EntityPrefix + entity}
	fresh.entity = fresh.hash[len(item.EntityPrefix):]
	fresh.lane.memory = fresh
	if m, ok, _ := s.images.PeekOrAdd(key, fresh); ok {
		return m
	}
	return fresh
}

// known returns what is remembered: an image, when it was the truth, and a shape.
func (m *memory) known() (img *bucket.Image, seen int64, known *override.Resolved) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.img, m.seen, m.shape
}

// predicted stands for no instant at all.
const predicted = math.MinInt64

// learn makes img, nil for a missing bucket, what is remembered: the truth as it was at seen, or predicted.
func (m *memory) learn(img *bucket.Image, seen int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if seen == predicted || m.seen == predicted || m.img == nil || seen >= m.seen { // replies may overtake each other
		m.img, m.seen = img, seen
	}
}

// returned notes that n more lazy settles give something back, fewer where n is negative.
func (m *memory) returned(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.back += n
}

// forget makes the next call read first.
func (m *memory) forget() { m.learn(nil, predicted) }

// take makes s the shape that the bucket should have.
func (m *memory) take(s *override.Resolved) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shape = s
}

// raced notes that a write lost to another writer at now; if it was a Normal, this process's leave room at the top.
func (m *memory) raced(now int64, normal bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rival = now + rivalry
	if normal {
		m.yield = now + contention
	}
}

// contested reports whether others are taken to be at work on the bucket.
func (m *memory) contested(now int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rival > now
}

// yields reports whether Normals leave room now.
func (m *memory) yields(now int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.yield > now
}

// trustworthy reports that an image which was the truth at seen is no older than most at now. A clock that was set back trusts
// nothing.
func trustworthy(seen, now, most int64) bool {
	return seen != predicted && now >= seen && now-seen <= most
}
