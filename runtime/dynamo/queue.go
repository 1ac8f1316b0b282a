package dynamo

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/background"
)

// queue holds the requests that write to one bucket, or to one chain. It has one write under way at a time,
// which serves as many of the requests as it can. The lock of its first cached bucket guards it.
type queue struct {
	cached *cachedBucket   // the bucket, or the first of the chain
	others []*cachedBucket // the chain's other buckets

	busy    bool       // a worker serves it
	waiting []*request // for the next write, in order of arrival
	lastErr error      // of the last attempt, until another one succeeds

	arrival chan struct{} // closed when a request arrives; nil while nobody waits for one
}

// submit has r written, alone or with others of its queue. It returns once r has ended or its caller's time
// is over. A request that is alone is served at once, on its caller's goroutine.
func (s *scheduler) submit(r *request) error {
	cached := r.portions[0].cached
	cached.mu.Lock()
	q := cached.queueFor(r)
	if !q.busy && !q.hasDeferred() {
		q.busy = true
		cached.mu.Unlock()
		return s.serveAlone(q, r)
	}
	r.done = make(chan struct{})
	q.waiting = append(q.waiting, r)
	if q.arrival != nil {
		close(q.arrival)
		q.arrival = nil
	}
	s.startWorker(q)
	cached.mu.Unlock()
	return q.await(r)
}

// startWorker starts a worker for q unless it has one. The caller holds the lock.
func (s *scheduler) startWorker(q *queue) {
	if !q.busy {
		q.busy = true
		s.background.Start(s.newBatch(q, nil).run)
	}
}

// serveAlone serves r until it has ended, or until others wait, who must not wait for all of r's attempts.
func (s *scheduler) serveAlone(q *queue, r *request) error {
	b := s.newBatch(q, r)
	mine := true
	defer func() {
		// Also if an observer panics: the caller may recover, and the next requests must not wait for ever.
		if mine {
			s.release(q)
		}
	}()
	for !r.ended {
		b.step(r.ctx)
		if !r.ended && q.handOver(b, r) {
			mine = false
			return q.await(r)
		}
	}
	return r.err
}

// release ends a caller's work for q, and starts a worker if requests have arrived meanwhile.
func (s *scheduler) release(q *queue) {
	q.cached.mu.Lock()
	defer q.cached.mu.Unlock()
	q.busy = false
	if len(q.waiting) > 0 {
		s.startWorker(q)
	} else {
		q.retire()
	}
}

// retire forgets a chain's queue that has no work. The caller holds the lock.
func (q *queue) retire() {
	if first := q.cached; q != &first.queue {
		first.chains = slices.DeleteFunc(first.chains, func(other *queue) bool { return other == q })
	}
}

// await returns how r has ended, or that its caller's time is over. A charge that is applied after its caller
// has left is given back.
func (q *queue) await(r *request) error {
	ctx := r.ctx
	if !r.deadline.IsZero() {
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

// hasDeferred reports whether lazy settles wait for a write to one of q's buckets.
func (q *queue) hasDeferred() bool {
	has := q.cached.hasDeferred.Load()
	for _, other := range q.others {
		has = has || other.hasDeferred.Load()
	}
	return has
}

// handOver moves b to a goroutine of its own if other requests wait, so that r's caller waits like them. It
// reports whether it does.
func (q *queue) handOver(b *batch, r *request) bool {
	q.cached.mu.Lock()
	defer q.cached.mu.Unlock()
	if len(q.waiting) == 0 {
		return false
	}
	r.done = make(chan struct{})
	b.scheduler.background.Start(b.run)
	return true
}

// run serves the queue until no request is left. No caller can end the work, since it serves several. The
// context's values are those of the caller who came first.
func (b *batch) run() {
	for b.collect() {
		b.step(context.WithoutCancel(b.roster.pending[0].ctx))
	}
}

// collect adds the waiting requests and deferred settles, and drops requests whose callers have left. It
// reports whether any are left. Nobody joins while the outcome of a write is unknown: its op stands for the
// requests that it included.
func (b *batch) collect() bool {
	q := b.roster.queue
	if b.targets.unknown() {
		if b.roster.awaitsUnknown(cmp.Or(b.attempt.err, b.attempt.lastErr), len(b.targets) == 1) {
			return true
		}
		b.dropUnknown()
	}
	q.cached.mu.Lock()
	all := slices.Clone(b.roster.pending) // the old slice is still in use
	if len(q.waiting) > 0 {
		all, q.waiting = append(all, q.waiting...), nil
		b.attempt.newOpForJoiners(b.roster.pending)
	}
	b.roster.pending = slices.DeleteFunc(all, func(r *request) bool { return r.abandoned || r.ended })
	if !slices.ContainsFunc(b.roster.pending, (*request).isUrgent) {
		q.busy, q.lastErr = false, nil
		q.retire()
		q.cached.mu.Unlock()
		b.scheduler.deferSettles(b.roster.pending)
		return false
	}
	q.lastErr = cmp.Or(b.attempt.err, b.attempt.lastErr)
	q.cached.mu.Unlock()
	b.init()
	before := b.roster.pending
	if b.roster.attachLazy(b.targets) {
		b.attempt.newOpForJoiners(before)
	}
	return true
}

// A lazy settle is deferred: the bucket's next write includes it, be it of the bucket alone or of a chain,
// and costs no more for it. If no write comes in time, the settle is overdue and gets a write of its own.

// deferFor is how long a lazy settle waits for another write.
const deferFor = 100 * time.Millisecond

// deferSettles defers settles of one bucket each.
func (s *scheduler) deferSettles(all []*request) {
	for _, r := range all {
		cached := r.portions[0].cached
		cached.mu.Lock()
		r.firstTarget = 0 // a chain that included it may have had the bucket elsewhere
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
	for wait := deferFor; ; {
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
		if wait > 0 { // the settles of now may have come later, and the clock may have been set back
			since := time.Duration(s.conn.Now()-cached.deferred[0].called) * time.Millisecond
			wait = min(deferFor, deferFor-since)
		}
		if wait <= 0 {
			for _, r := range cached.deferred {
				r.overdue = true
			}
			cached.queue.waiting, cached.deferred = append(cached.queue.waiting, cached.deferred...), nil
			cached.hasDeferred.Store(false)
			s.startWorker(&cached.queue)
			wait = deferFor
		}
		cached.mu.Unlock()
	}
}

// attachLazy adds the deferred settles of the targets' buckets, and reports whether there are any.
func (o *roster) attachLazy(ts targets) (found bool) {
	for i, t := range ts {
		cached := t.cached
		cached.mu.Lock()
		for _, r := range cached.deferred {
			r.firstTarget, found = i, true
			o.pending = append(o.pending, r)
		}
		cached.deferred = nil
		cached.hasDeferred.Store(false)
		cached.mu.Unlock()
	}
	return found
}

// detachLazy leaves a chain's lazy settles to other writes, after an attempt that was not applied.
func (o *roster) detachLazy(ts targets) {
	if len(ts) == 1 || ts.unknown() {
		return
	}
	var stay, leave []*request
	for _, r := range o.pending {
		if r.isLazy() {
			leave = append(leave, r)
		} else {
			stay = append(stay, r)
		}
	}
	if len(leave) > 0 {
		// Other workers write to those that leave from now on, and the next attempt is planned anew.
		o.pending, o.included = stay, nil
		o.scheduler.deferSettles(leave)
	}
}

// scheduler serves a session's requests. Each bucket and each chain has a queue; a batch serves a queue, one
// write at a time. It is safe for concurrent use.
type scheduler struct {
	conn       *wire.Conn
	cache      *cache
	background *background.Tasks
	closing    <-chan struct{}                    // closed when nothing may wait any more
	attempts   int                                // of an acquire
	heartbeat  atomic.Pointer[override.Heartbeat] // as last read; nil before, and if no resource has regions
	onReshape  func(context.Context)              // called after each Reshape or uncharged Create

	seams
}

// seams are what tests replace.
type seams struct {
	jitter  func() float64 // in [0, 1)
	choose  func(*plan.Demand, plan.State, int64) plan.Plan
	onWrite func(context.Context, []*request) context.Context // nil, or called before each attempt for requests
}

// recordApplied notes for all what p did, which was applied to t, their batch's i-th target.
func (s *scheduler) recordApplied(ctx context.Context, t *target, all []*request, i int, p *plan.Plan) {
	t.recordApplied(all, i, p)
	if p.Path == plan.Reshape {
		s.onReshape(ctx)
	}
}

// peek reads r's buckets for which unread holds, and the overrides that are due. The error is r's.
func (s *scheduler) peek(r *request, unread func(*target) bool) (*batch, error) {
	b := s.newDetachedBatch(r)
	b.init()
	for (reader{s, b.targets}).needs(unread) && !r.ended {
		if b.attempt.err != nil {
			b.pause(r.ctx)
			continue
		}
		b.readMissing(r.ctx)
	}
	b.targets.recordFound(r, s.conn.Now())
	return b, r.err
}
