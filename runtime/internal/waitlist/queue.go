package waitlist

import (
	"container/heap"
	"slices"
	"sync"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// queue is what the List holds for one bucket: the waiters whose nearest bucket it is, and those that it
// blocks. Locks of several queues are taken along a chain, the nearest first.
type queue struct {
	key     bucketKey
	tickets int // whose chain has the bucket; the List's mu guards it

	mu       sync.Mutex
	order    order
	blocked  []blocked    // by limit
	arrivals int          // at blocked, ever
	seen     store.Bucket // as this process saw it last; After is nil if it never did
	version  int          // rises when seen changes
	answered bool         // the store has answered a waiter of this queue
	warned   int64        // when waiters were last checked for being too late, ms
	reads    reads
}

func newQueue(key bucketKey, limits int) *queue {
	q := &queue{key: key, blocked: make([]blocked, limits)}
	for i := range q.blocked {
		q.blocked[i].limit = i
	}
	return q
}

// set stores how the bucket was seen. It wakes those that watch it, except for except, and reports whether
// there is anything new. The caller holds mu.
func (q *queue) set(b *store.Bucket, except *Ticket) (changed bool) {
	if sameImage(q.seen.After, b.After) && slices.Equal(q.seen.Limits, b.Limits) {
		return false
	}
	q.seen = *b
	q.version++
	for i := range q.blocked {
		if t := q.blocked[i].watcher(); t != nil && t != except {
			t.Wake()
		}
	}
	return true
}

// sameImage reports whether a and b say the same of a bucket.
func sameImage(a, b *bucket.Image) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Refilled == b.Refilled && slices.Equal(a.Balances, b.Balances) && slices.Equal(a.Missing, b.Missing)
}

// warnPause is the least time between two checks of a queue's waiters for being too late, in ms: each check
// looks at all of them.
const warnPause = 1000

// withDeadline returns the waiters that the bucket concerns and that have a deadline, or none if they were
// checked just now. The caller holds mu.
func (q *queue) withDeadline(now int64) (all []*Ticket) {
	if since := now - q.warned; 0 <= since && since < warnPause { // a clock that was set back stops nothing
		return nil
	}
	q.warned = now
	add := func(tickets []*Ticket) {
		for _, t := range tickets {
			if t != nil && t.tooLate != nil {
				all = append(all, t)
			}
		}
	}
	add(q.order.tickets)
	for i := range q.blocked {
		add(q.blocked[i].tickets)
	}
	return all
}

// reads says when the bucket is read again.
type reads struct {
	last    int64 // when the store last showed the bucket to a waiter, ms
	doubled uint  // how often the pause has doubled since then
	count   int   // rises with last
	since   int64 // when a waiter was served last, or else the first denied, ms; 0 if none was
	served  bool  // a waiter was, at since
}

// A bucket is read a second after the store denied a waiter. The pause between reads doubles, up to a tenth
// of the wait that is left or 30 s, whichever is less, and at least a second.
//
// A slot may be free at any moment (slotPause).
const (
	leastPause = time.Second
	mostPause  = 30 * time.Second
	pauses     = 10 // in the wait that is left

	leastSlotPause = 200 * time.Millisecond
	mostSlotPause  = time.Second
	slotPauses     = 50 // in the time since a waiter was served
)

// mostDoublings suffices for the longest pauses.
const mostDoublings = 5

// reset starts the pauses again, but for those for a slot: the store has just shown the bucket.
func (r *reads) reset(now int64) {
	r.last, r.doubled, r.count = now, 0, r.count+1
	if r.since == 0 {
		r.since = now
	}
}

// serve is reset for a waiter that was served.
func (r *reads) serve(now int64) {
	r.reset(now)
	r.since, r.served = now, true
}

// next returns the time from now until the next read, for a waiter that would sleep for wait. slots says that
// an in-flight limit blocks it.
func (r *reads) next(now int64, wait time.Duration, slots bool) time.Duration {
	tenth := (wait / pauses).Truncate(time.Millisecond) // as clocks of stores count
	pause := min(leastPause<<r.doubled, mostPause, max(tenth, leastPause))
	if slots {
		pause = r.slotPause(now)
	}
	since := time.Duration(max(0, now-r.last)) * time.Millisecond
	return max(0, pause-since)
}

// claim starts the next pause. It reports false if the bucket was seen after the count.
func (r *reads) claim(now int64, count int) bool {
	if r.count != count {
		return false
	}
	r.last, r.doubled, r.count = now, min(r.doubled+1, mostDoublings), r.count+1
	return true
}

// slotPause returns the pause before the next read while an in-flight limit blocks a waiter. A process whose
// waiter was just served has slots, which come back without a read, so it leaves those of others to processes
// that have none. These read five times a second, and less often as their wait gets longer.
func (r *reads) slotPause(now int64) time.Duration {
	waited := time.Duration(max(0, now-r.since)) * time.Millisecond
	if r.served && waited < mostSlotPause+leastSlotPause {
		return mostSlotPause
	}
	return min(max((waited/slotPauses).Truncate(time.Millisecond), leastSlotPause), mostSlotPause)
}

// blocked is the tickets that one limit of a bucket refuses for longest: a heap, least cost first, then first
// come first served. The mu of the bucket's queue guards it.
type blocked struct {
	limit   int
	tickets []*Ticket
}

// watcher returns the ticket that has its tokens first, nil if there is none.
func (b *blocked) watcher() *Ticket {
	if len(b.tickets) == 0 {
		return nil
	}
	return b.tickets[0]
}

func (b *blocked) add(t *Ticket)    { heap.Push(b, t) }
func (b *blocked) remove(t *Ticket) { heap.Remove(b, t.index) }

// Len implements heap.Interface.
func (b *blocked) Len() int { return len(b.tickets) }

// Less implements heap.Interface.
func (b *blocked) Less(i, j int) bool {
	one, other := b.tickets[i], b.tickets[j]
	if one.cost[b.limit] != other.cost[b.limit] {
		return one.cost[b.limit] < other.cost[b.limit]
	}
	return one.arrival < other.arrival
}

// Swap implements heap.Interface.
func (b *blocked) Swap(i, j int) {
	b.tickets[i], b.tickets[j] = b.tickets[j], b.tickets[i]
	b.tickets[i].index, b.tickets[j].index = i, j
}

// Push implements heap.Interface.
func (b *blocked) Push(ticket any) {
	t := ticket.(*Ticket)
	t.index = len(b.tickets)
	b.tickets = append(b.tickets, t)
}

// Pop implements heap.Interface.
func (b *blocked) Pop() any {
	last := len(b.tickets) - 1
	t := b.tickets[last]
	b.tickets[last] = nil
	b.tickets = b.tickets[:last]
	return t
}
