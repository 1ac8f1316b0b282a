// Package waitlist keeps the waiters of a Limiter in queues, and wakes those whose outlook has changed
// (docs/design.md, "Waiting").
//
// A waiter stands in the queue of its chain's nearest bucket, first come first served. Only the first of a
// queue asks the store. A denial blocks it at the limit that refuses it for longest, of its own bucket or of
// an ancestor's. A limit may block the first of several queues. The one of them that costs least has its
// tokens first. It alone watches the limit: it sleeps until its tokens are due, and reads the bucket again
// meanwhile.
package waitlist

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/runtime/store"
)

// List holds the queues of a Limiter. It is safe for concurrent use.
type List struct {
	most int // waiters in a queue

	mu      sync.Mutex
	queues  map[bucketKey]*queue
	buckets atomic.Int64 // len(queues)
}

// bucketKey names a bucket. One of a resource that goes on as a name of a template has two in a process that
// calls both: their limits may differ.
type bucketKey struct{ of, resource, entity string }

// keyOf returns the key of b, of a resource with spec.
func keyOf(spec *store.Spec, b *store.Bucket) bucketKey {
	return bucketKey{spec.Template, spec.ResourceOf(b.Kind), b.Entity}
}

// New returns an empty List whose queues hold at most most waiters each.
func New(most int) *List { return &List{most: most, queues: map[bucketKey]*queue{}} }

// Buckets returns how many buckets the chains of all waiters have together. It takes no lock.
func (l *List) Buckets() int { return int(l.buckets.Load()) }

// Join puts a waiter for part, of a resource with spec, behind those who wait for its nearest bucket. ok is
// false if these are as many as there may be. tooLate reports whether a waiter with this view would miss its
// deadline; it is nil for a waiter without a deadline, and called on the goroutines of other waiters. The
// caller leaves the ticket at the end.
func (l *List) Join(spec *store.Spec, part *store.Part, tooLate func(*View) bool) (t *Ticket, ok bool) {
	t = &Ticket{list: l, spec: spec, cost: part.Cost, tooLate: tooLate, news: make(chan struct{}, 1)}
	l.chain(t, part)
	own := t.chain[0]
	own.mu.Lock()
	if ok = own.order.count < l.most; ok {
		own.order.join(t)
	}
	own.mu.Unlock()
	if !ok {
		l.release(t.chain)
	}
	return t, ok
}

// chain gives t the queues of part's buckets.
func (l *List) chain(t *Ticket, part *store.Part) {
	t.versions = make([]int, len(part.Buckets))
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range part.Buckets {
		key := keyOf(t.spec, &part.Buckets[i])
		q := l.queues[key]
		if q == nil {
			q = newQueue(key, len(part.Cost))
			l.queues[key] = q
		}
		q.tickets++
		t.chain = append(t.chain, q)
	}
	l.buckets.Store(int64(len(l.queues)))
}

// release counts one ticket less for each of queues, and deletes those that have none left.
func (l *List) release(queues []*queue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range queues {
		if q.tickets--; q.tickets == 0 {
			delete(l.queues, q.key)
		}
	}
	l.buckets.Store(int64(len(l.queues)))
}

// GaveBack shows how a settle, a release or a reset has left buckets of a resource with spec, and wakes those
// that watch them. A bucket without After has changed in a way that is not known. now is in ms.
func (l *List) GaveBack(spec *store.Spec, buckets []store.Bucket, now int64) {
	l.mu.Lock()
	queues := make([]*queue, len(buckets))
	for i := range buckets {
		queues[i] = l.queues[keyOf(spec, &buckets[i])]
	}
	l.mu.Unlock()
	for i, q := range queues {
		if q != nil {
			q.mu.Lock()
			q.reads.reset(now)
			q.set(&buckets[i], nil)
			q.mu.Unlock()
		}
	}
}

// find returns the bucket of q, nil if buckets have no image of it.
func (t *Ticket) find(buckets []store.Bucket, q *queue) *store.Bucket {
	i := slices.IndexFunc(buckets, func(b store.Bucket) bool {
		return b.Entity == q.key.entity && b.After != nil && keyOf(t.spec, &b) == q.key
	})
	if i < 0 {
		return nil
	}
	return &buckets[i]
}
