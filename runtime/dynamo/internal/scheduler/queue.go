package scheduler

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/semaphore"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/known"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/pace"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/background"
	"github.com/sluice-go/sluice/runtime/store"
)

// cache holds the buckets that a session knows. The least recently used one is forgotten first, and costs a
// read when it is used again.
type cache struct {
	buckets *lru.Cache[bucketKey, *cachedBucket]
	onQueue func(*sync.Mutex, *[]*Request) // see Seams
}

// bucketKey names a bucket within a session, by the entity's kind and id as callers give them.
type bucketKey struct {
	resource *known.Resource
	kind     int
	id       string
}

// keyOf returns the key of a bucket. A bucket of all names of a template has one key, whichever name r is.
func keyOf(r *known.Resource, kind int, id string) bucketKey {
	if r.Spec.Kinds[kind].AllNames {
		r = r.Opened()
	}
	return bucketKey{r, kind, id}
}

// lookup returns the cached bucket of an entity, a new one if there is none. entity is as stored.
func (c *cache) lookup(r *known.Resource, kind int, entity string) *cachedBucket {
	key := keyOf(r, kind, entity[len(r.Spec.Kinds[kind].Prefix):])
	if cached, ok := c.buckets.Get(key); ok {
		return cached
	}
	fresh := &cachedBucket{}
	fresh.known.Init(r, kind, entity)
	fresh.queue.cached = fresh
	if cached, ok, _ := c.buckets.PeekOrAdd(key, fresh); ok {
		return cached
	}
	if c.onQueue != nil {
		c.onQueue(&fresh.mu, &fresh.queue.waiting)
	}
	return fresh
}

// peek returns what is known of a bucket, nil if it is not cached. It does not take the LRU's lock for
// writing: the bucket does not move to the front.
func (c *cache) peek(r *known.Resource, kind int, id string) *known.Bucket {
	if cached, ok := c.buckets.Peek(keyOf(r, kind, id)); ok {
		return &cached.known
	}
	return nil
}

// cachedBucket is a bucket that a process knows, and the queues of requests that write to it. Concurrent
// calls share it.
type cachedBucket struct {
	known known.Bucket
	pacer pace.Pacer

	mu          sync.Mutex  // guards what follows, and the queues
	queue       queue       // of writes to this bucket alone
	chainQueue  *queue      // of writes to this bucket and others before it; nil while it has no work
	deferred    []*Request  // lazy settles that wait for another write
	hasDeferred atomic.Bool // len(deferred) > 0
	flushing    bool        // a goroutine waits until deferred settles are overdue
}

// queueFor returns the queue that r belongs to, whose last bucket this is. The caller holds mu.
func (c *cachedBucket) queueFor(r *Request) *queue {
	if len(r.portions) == 1 {
		return &c.queue
	}
	if c.chainQueue == nil {
		c.chainQueue = &queue{cached: c, chained: true}
	}
	return c.chainQueue
}

// queue holds the requests that write to one bucket alone, or the chains whose last bucket it is. Such
// chains are siblings: they have their root in common. A queue has one write under way at a time, which
// serves as many of the requests as it can. The cached bucket's lock guards it.
type queue struct {
	cached  *cachedBucket
	chained bool // requests of several buckets

	busy    bool       // a worker serves it
	waiting []*Request // for the next write, in order of arrival
	lastErr error      // of the last attempt, until another one succeeds

	arrival chan struct{} // closed at the next arrival; nil if no batch has paused for one since
}

// scheduler serves a session's requests. Each bucket has a queue, and so have all chains with the same
// root; a batch serves a queue, one write at a time. It is safe for concurrent use.
type scheduler struct {
	conn       *wire.Conn
	resources  []*known.Resource
	reader     *known.Reader
	cache      *cache
	background *background.Tasks
	closing    <-chan struct{}       // closed when nothing may wait any more
	attempts   int                   // of an acquire
	turns      *semaphore.Weighted   // for reads and writes under way
	onReshape  func(context.Context) // called after each Reshape or uncharged Create
	reversals  pace.Reversals
	seams      Seams
}

// resource returns the resource that was opened as def, or the name of one that def is. There are few, and
// to hash an interface takes longer than to compare some.
func (s *scheduler) resource(def store.Definition) *known.Resource {
	name, isName := def.(*store.Named)
	if isName {
		def = name.Of
	}
	for _, r := range s.resources {
		switch {
		case r.Def != def:
		case isName:
			return r.Named(name)
		default:
			return r
		}
	}
	return nil
}

// Seams are what tests replace.
type Seams struct {
	Jitter  func() float64 // in [0, 1)
	Choose  func(*plan.Demand, plan.State, int64) plan.Plan
	Resolve known.Resolve                                     // nil, or in place of override.Resolve
	OnWrite func(context.Context, []*Request) context.Context // nil, or called before each attempt for requests
	OnQueue func(*sync.Mutex, *[]*Request)                    // nil, or called with each bucket's lock and queue

	NewcomersJoin  bool  // requests that lost a race share their next write with newcomers
	RepeatsInDoubt bool  // what a transaction of unknown outcome gives back goes again if a copy is refused
	KeepIdle       int64 // ms
}

// DefaultSeams returns the Seams of a store outside tests.
func DefaultSeams() Seams {
	return Seams{Jitter: rand.Float64, Choose: plan.Choose, KeepIdle: plan.KeepIdle}
}

// Served is what OnWrite sees of a request.
type Served struct {
	Ctx       context.Context
	Called    int64 // ms
	Settle    bool
	GivesBack bool // a settle, of anything
	Lazy      bool // a settle that another write may include
}

// Served describes r.
func (r *Request) Served() Served {
	return Served{r.ctx, r.called, r.settle, r.givesBack(), r.isLazy()}
}

// Costs yields what r takes of each bucket, in millitokens by limit: negative where it gives back. entity is
// as stored.
func (r *Request) Costs(yield func(of *store.Spec, entity string, cost []int64)) {
	for i := range r.portions {
		pn := &r.portions[i]
		yield(pn.resource.Spec, pn.entity, pn.cost)
	}
}

// submit has r written, alone or with others of its queue. It returns once r has ended or its caller's time
// is over. A request that is alone is served at once, on its caller's goroutine.
func (s *scheduler) submit(r *Request) error {
	cached := r.portions[len(r.portions)-1].cached
	cached.mu.Lock()
	q := cached.queueFor(r)
	if !q.busy && !r.meetsDeferred() && !mayLeaveSlot(r) {
		q.busy = true
		cached.mu.Unlock()
		return s.serveAlone(q, r)
	}
	r.done = make(chan struct{})
	q.enqueue(r)
	s.startWorker(q)
	cached.mu.Unlock()
	return q.await(r)
}

// enqueue adds requests to q, and wakes a batch that pauses for arrivals. The caller holds the lock.
func (q *queue) enqueue(all ...*Request) {
	q.waiting = append(q.waiting, all...)
	if q.arrival != nil {
		close(q.arrival)
		q.arrival = nil
	}
}

// startWorker starts a worker for q unless it has one. The caller holds the lock.
func (s *scheduler) startWorker(q *queue) {
	if !q.busy {
		q.busy = true
		s.background.Start(s.newBatch(q, nil).run)
	}
}

// serveAlone serves r until it has ended, or until others wait, who must not wait for all of r's attempts.
func (s *scheduler) serveAlone(q *queue, r *Request) error {
	b, mine := s.newBatch(q, r), true
	defer func() {
		// Also if an observer panics: the caller may recover, and the next requests must not wait for ever.
		if mine {
			q.release(s)
		}
	}()
	for !r.ended {
		b.step(r.ctx)
		if !r.ended && q.handOver(s, b, r) {
			mine = false
			return q.await(r)
		}
	}
	return r.err
}

// release ends a caller's work for q, and starts a worker if requests have arrived meanwhile.
func (q *queue) release(s *scheduler) {
	q.cached.mu.Lock()
	defer q.cached.mu.Unlock()
	q.busy = false
	if len(q.waiting) > 0 {
		s.startWorker(q)
	} else {
		q.retire()
	}
}

// retire forgets a queue of siblings that has no work. The caller holds the lock.
func (q *queue) retire() {
	if q == q.cached.chainQueue {
		q.cached.chainQueue = nil
	}
}

// await returns how r has ended, or that its caller's time is over. A charge that is applied after its caller
// has left is given back.
func (q *queue) await(r *Request) error {
	ctx := r.ctx
	if !r.deadline.IsZero() && !r.deadlineOfCtx { // ctx fires by itself, and before its caller looks at it
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, r.deadline)
		defer cancel()
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
	}
	q.cached.mu.Lock()
	defer q.cached.mu.Unlock()
	if r.ended {
		return r.err
	}
	r.abandoned = true
	return r.leaveErr(q.lastErr)
}

// nextArrival returns a channel that is closed once a request waits.
func (q *queue) nextArrival() <-chan struct{} {
	q.cached.mu.Lock()
	defer q.cached.mu.Unlock()
	arrived := make(chan struct{})
	if q.arrival = arrived; len(q.waiting) > 0 {
		close(arrived)
		q.arrival = nil
	}
	return arrived
}

// handOver moves b to a goroutine of its own if other requests wait, so that r's caller waits like them. It
// reports whether it does.
func (q *queue) handOver(s *scheduler, b *batch, r *Request) bool {
	q.cached.mu.Lock()
	defer q.cached.mu.Unlock()
	if len(q.waiting) == 0 {
		return false
	}
	r.done = make(chan struct{})
	s.background.Start(b.run)
	return true
}

// A lazy settle is deferred: the bucket's next write includes it, be it of the bucket alone or of a chain,
// and costs no more for it. If no write comes in time, the settle is overdue and gets a write of its own.

// DeferFor is how long a lazy settle waits for another write.
const DeferFor = 100 * time.Millisecond

// deferSettles defers settles of one bucket each.
func (s *scheduler) deferSettles(all []*Request) {
	for _, r := range all {
		cached := r.portions[0].cached
		cached.mu.Lock()
		r.portions[0].target = nil // of a chain that included it
		cached.deferred = append(cached.deferred, r)
		cached.hasDeferred.Store(true)
		if !cached.flushing {
			cached.flushing = true
			s.background.Start(func() { s.flushDeferred(cached) })
		}
		cached.mu.Unlock()
	}
}

// flushDeferred has the bucket's deferred settles written once they are overdue, unless another write has
// included them.
func (s *scheduler) flushDeferred(cached *cachedBucket) {
	for wait := DeferFor; ; {
		select {
		case <-s.conn.Env.Clock.After(wait):
		case <-s.closing:
			wait = 0
		}
		cached.mu.Lock()
		if len(cached.deferred) == 0 {
			cached.flushing = false
			cached.mu.Unlock()
			return
		}
		if wait > 0 { // these settles may be newer than this goroutine
			wait = untilOverdue(cached.deferred[0], s.conn.Now())
		}
		if wait <= 0 {
			cached.writeOverdue(s, cached.deferred...)
			cached.deferred = nil
			cached.hasDeferred.Store(false)
			wait = DeferFor
		}
		cached.mu.Unlock()
	}
}

// untilOverdue returns how long r, a lazy settle, may still wait for another write; now is in ms. It is 0 or
// less if r is overdue, and 0 if the clock was set back.
func untilOverdue(r *Request, now int64) time.Duration {
	since := time.Duration(now-r.called) * time.Millisecond
	if since < 0 {
		return 0
	}
	return DeferFor - since
}

// writeOverdue has overdue settles written by the bucket's own queue. The caller holds the lock.
func (c *cachedBucket) writeOverdue(s *scheduler, all ...*Request) {
	for _, r := range all {
		r.overdue = true
	}
	c.queue.enqueue(all...)
	s.startWorker(&c.queue)
}
