package waitlist

import (
	"time"

	"github.com/sluice-go/sluice/runtime/store"
)

// Ticket is one waiter's. Its methods are called by one goroutine, except Wake.
type Ticket struct {
	list    *List
	spec    *store.Spec
	chain   []*queue // of its chain's buckets, nearest first
	cost    []int64
	tooLate func(*View) bool
	news    chan struct{} // holds one if anything has changed

	place int // in the queue of its nearest bucket, whose mu guards it; or left

	versions []int    // of the chain's buckets, as its goroutine last saw them
	at       *queue   // whose bucket blocks it; nil for none
	by       *blocked // of at
	reads    int      // of at, when it last became a watcher

	// The mu of at guards its place there.
	index, arrival int
}

// left is the place of a ticket that has left.
const left = -1

// View is what a waiter knows of its chance.
type View struct {
	First    bool           // it may ask the store
	Answered bool           // the store has answered a waiter of its queue before
	Seen     []store.Bucket // the chain, each bucket as this process last saw it
	Ahead    [][]int64      // what the waiters ahead of it want of each of these
}

// News returns a channel that has something to receive when the waiter has to look again.
func (t *Ticket) News() <-chan struct{} { return t.news }

// Wake makes the waiter look again. It is safe for concurrent use.
func (t *Ticket) Wake() {
	select {
	case t.news <- struct{}{}:
	default: // it has to look anyway
	}
}

// Look returns what t knows now.
func (t *Ticket) Look() *View { return t.view(t.versions) }

// view returns what a waiter with t knows now, and notes the versions. It returns nil if t has left.
func (t *Ticket) view(versions []int) *View {
	own := t.chain[0]
	v := &View{Seen: make([]store.Bucket, len(t.chain)), Ahead: make([][]int64, len(t.chain))}
	own.mu.Lock()
	defer own.mu.Unlock()
	if t.place == left {
		return nil
	}
	v.First, v.Answered = own.order.first() == t, own.answered
	for i, q := range t.chain {
		if q != own {
			q.mu.Lock()
		}
		v.Seen[i], versions[i] = q.seen, q.version
		if q != own {
			q.mu.Unlock()
		}
		v.Seen[i].Entity = q.key.entity
		v.Ahead[i] = own.order.ahead(t, q)
	}
	return v
}

// Denied shows buckets as a denial of t's call has found them. A bucket that has changed since t looked stays
// as it is. now is in ms.
func (t *Ticket) Denied(buckets []store.Bucket, now int64) {
	own := t.chain[0]
	own.mu.Lock()
	own.answered = true
	own.mu.Unlock()
	for _, q := range t.chain {
		q.mu.Lock()
		q.reads.reset(now)
		q.mu.Unlock()
	}
	t.show(buckets, now)
}

// Read shows a bucket of the chain as t has read it, unless it has changed since t looked. now is in ms.
func (t *Ticket) Read(b store.Bucket, now int64) { t.show([]store.Bucket{b}, now) }

// show stores buckets, and wakes the waiters that these make too late.
func (t *Ticket) show(buckets []store.Bucket, now int64) {
	var concerned []*Ticket
	changed := false
	for i, q := range t.chain {
		b := t.find(buckets, q)
		if b == nil {
			continue
		}
		q.mu.Lock()
		if q.version == t.versions[i] && q.set(b, t) {
			t.versions[i], changed = q.version, true
			concerned = append(concerned, q.withDeadline(now)...)
		}
		q.mu.Unlock()
	}
	if changed {
		own := t.chain[0] // its waiters have the other buckets in their chains too
		own.mu.Lock()
		concerned = append(concerned, own.withDeadline(now)...)
		own.mu.Unlock()
	}
	for _, other := range concerned {
		if v := other.view(make([]int, len(other.chain))); other != t && v != nil && other.tooLate(v) {
			other.Wake()
		}
	}
}

// Block notes that a limit of the chain's i-th bucket refuses t for longest, for wait from now (ms) on.
// watches reports whether t watches the limit; otherwise it is woken when it is next to do so. read is the
// time until the bucket is to be read, unless wait ends first. slots says that it is an in-flight limit, for
// which wait is a hint.
func (t *Ticket) Block(
	i, limit int, now int64, wait time.Duration, slots bool,
) (watches bool, read time.Duration) {
	q := t.chain[i]
	if t.by != &q.blocked[limit] {
		t.unblock()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.by == nil {
		q.arrivals++
		t.at, t.by, t.arrival = q, &q.blocked[limit], q.arrivals
		t.by.add(t)
	}
	if q.version != t.versions[i] { // since t looked, when nobody knew that it would wait here
		t.Wake()
	}
	if t.by.watcher() != t {
		return false, 0
	}
	t.reads = q.reads.count
	if q.seen.After == nil { // the denial did not say how the bucket is, so a read tells nothing
		return true, wait
	}
	return true, q.reads.next(now, wait, slots)
}

// unblock ends t's place at the limit that blocks it, if there is one, and wakes the next one there.
func (t *Ticket) unblock() {
	if t.by == nil {
		return
	}
	t.at.mu.Lock()
	defer t.at.mu.Unlock()
	watched := t.by.watcher() == t
	t.by.remove(t)
	if next := t.by.watcher(); watched && next != nil {
		next.Wake()
	}
	t.at, t.by = nil, nil
}

// ClaimRead reports whether t has to read the bucket that blocks it, at now (ms): nobody has seen it since t
// began to watch it.
func (t *Ticket) ClaimRead(now int64) bool {
	t.at.mu.Lock()
	defer t.at.mu.Unlock()
	return t.at.reads.claim(now, t.reads)
}

// Extend returns a ticket for part that has t's place, and ends t. It is for a call whose look-ups have added
// ancestors to part since t joined, the nearest bucket being the same. The waiter stays ahead of all who came
// after it. From now on, its cost counts in the new ancestors for those behind it. Extend returns t itself if
// part has no more buckets than t's chain.
func (t *Ticket) Extend(part *store.Part) *Ticket {
	if len(part.Buckets) == len(t.chain) {
		return t
	}
	own := t.chain[0]
	longer := &Ticket{list: t.list, spec: t.spec, cost: t.cost, tooLate: t.tooLate, news: t.news}
	t.list.chain(longer, part)
	// It has seen nothing yet of the buckets that others may have shown in the queues of its new ancestors.
	copy(longer.versions, t.versions)
	own.mu.Lock()
	own.order.replace(t, longer)
	own.mu.Unlock()
	t.unblock()
	t.list.release(t.chain)
	return longer
}

// Leave ends t. served is how its call has left the chain's buckets, nil if it was not served. now is in ms.
//
// A served waiter leaves its queue and shows what it left in one step. In two steps, those behind would count
// its cost twice.
func (t *Ticket) Leave(served []store.Bucket, now int64) {
	own := t.chain[0]
	own.mu.Lock()
	for i, q := range t.chain {
		b := t.find(served, q)
		if b == nil {
			continue
		}
		if q != own {
			q.mu.Lock()
		}
		if q.reads.serve(now); q.version == t.versions[i] {
			q.set(b, t)
		}
		if q != own {
			q.mu.Unlock()
		}
	}
	first := own.order.leave(t)
	own.mu.Unlock()
	if first != nil {
		first.Wake()
	}
	t.unblock()
	t.list.release(t.chain)
}
