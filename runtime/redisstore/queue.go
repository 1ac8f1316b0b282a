package redisstore

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Limits of what is sent together.
const (
	maxPipelines = 2   // pipelines under way at once
	maxCalls     = 64  // script calls in a pipeline
	maxRequests  = 100 // requests in a script call, which blocks everybody else in Redis while it runs
)

// Times of a pipeline.
const (
	minAttempt = 100 * time.Millisecond // an attempt gets this long, however close the caller's deadline
	slowAfter  = 250 * time.Millisecond // then a pipeline no longer counts against maxPipelines
)

// queue holds the requests that wait for Redis. While fewer than maxPipelines are under way, a request is
// sent at once. Otherwise requests collect, and the next pipeline takes them all. Requests for the same
// keys share a script call, first come first served, and each has an outcome of its own; other script calls
// go in the same pipeline.
//
// Two pipelines may carry requests for the same keys at once, since otherwise many requests would wait for
// two round trips. One pipeline may overtake the other. So a request may be served before another one that
// has no reply yet, but never before one whose reply came before it was submitted.
type queue struct {
	*session

	mu        sync.Mutex
	waiting   []*request  // oldest first
	starting  bool        // a goroutine is about to take the waiting requests
	pipelines []*pipeline // under way, the oldest first
	watched   bool        // a timer is set that ends the turns of slow pipelines
}

func newQueue(s *session) *queue { return &queue{session: s} }

// queues is the queues of a session.
type queues struct {
	single   *queue   // of a client that is not a cluster's
	byMaster sync.Map // of a cluster, the queue of each master by its address
}

// of returns the queue for r. Each master of a cluster has its own, so that a master that is down blocks no
// other. If the client knows no master for the key, the single queue serves: the client reports the error.
func (q *queues) of(r *request) *queue {
	cluster, ok := q.single.db.Client.(*redis.ClusterClient)
	if !ok {
		return q.single
	}
	master, err := cluster.MasterForKey(r.ctx, r.portions[0].keys[0].(string))
	if err != nil {
		return q.single
	}
	addr := master.Options().Addr
	if known, ok := q.byMaster.Load(addr); ok {
		return known.(*queue)
	}
	known, _ := q.byMaster.LoadOrStore(addr, newQueue(q.single.session))
	return known.(*queue)
}

// submit adds r to the queue.
func (q *queue) submit(r *request) {
	r.done = make(chan struct{})
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, r)
	q.dispatch()
}

// dispatch starts a pipeline if requests wait and another pipeline may start. The caller holds the lock.
func (q *queue) dispatch() {
	if len(q.waiting) > 0 && !q.starting && len(q.pipelines) < maxPipelines {
		q.starting = true
		q.background.Start(q.run)
	}
}

// run sends the waiting requests, and then those that have come meanwhile. It stays on one goroutine, whose
// stack has already grown to the size that sending takes.
func (q *queue) run() {
	for {
		// Let goroutines that are about to submit, such as those just served, do so: pipelines are 1.5
		// times as full.
		runtime.Gosched()
		p := q.nextPipeline()
		if p == nil {
			return
		}
		p.send()
		q.mu.Lock()
		next := p.endTurn() && !q.starting
		q.starting = q.starting || next
		q.mu.Unlock()
		if !next { // another goroutine has taken over
			return
		}
	}
}

// nextPipeline returns a pipeline with the waiting requests, or nil if all of them were abandoned.
func (q *queue) nextPipeline() *pipeline {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.starting = false
	p, taken := &pipeline{queue: q, began: fromNow(0)}, 0
	for _, r := range q.waiting {
		if !r.abandoned && !p.add(r) {
			break
		}
		taken++
	}
	q.waiting = slices.Delete(q.waiting, 0, taken)
	if p.waiters == 0 {
		return nil
	}
	q.pipelines = append(q.pipelines, p)
	q.watch()
	q.dispatch()
	return p
}

// watch sets a timer that ends the turn of pipelines that take long. One timer serves all pipelines one
// after another: while an early timer is set, the later timers of requests wake no thread. The caller holds
// the lock.
func (q *queue) watch() {
	if q.watched || len(q.pipelines) == 0 {
		return
	}
	q.watched = true
	afterFunc(until(q.pipelines[0].began.Add(q.slowAfter)), func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.watched = false
		for len(q.pipelines) > 0 && until(q.pipelines[0].began.Add(q.slowAfter)) <= 0 {
			q.pipelines[0].release()
		}
		q.watch()
	})
}

// await returns r's outcome, with ended true, or the error of a caller whose time is over. A request
// abandoned this way that is charged nevertheless is refunded.
func (q *queue) await(r *request) (ended bool, err error) {
	deadline := r.deadline
	if r.fromContext {
		deadline = time.Time{}
	}
	if r.wait(deadline) {
		return true, r.result()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if p := r.pipeline; p != nil && !r.ended {
		q.mu.Unlock()
		r.wait(p.began.Add(minAttempt))
		q.mu.Lock()
	}
	if r.ended {
		return true, r.result()
	}
	return false, q.abandon(r)
}

// wait waits for r until its caller's context ends or, unless it is zero, until deadline. It reports
// whether r has ended.
func (r *request) wait(deadline time.Time) bool {
	var expired <-chan time.Time
	if !deadline.IsZero() {
		timer := timerAt(deadline)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-r.done:
		return true
	case <-expired:
	case <-r.ctx.Done():
	}
	return false
}

// abandon marks r, which has not ended, as having no caller any more, and returns the caller's error. A
// pipeline for which no caller waits ends its turn. The caller holds the lock.
func (q *queue) abandon(r *request) error {
	err := r.abandonedError()
	r.abandoned = true
	if p := r.pipeline; p != nil {
		if p.waiters--; p.waiters == 0 {
			p.release()
		}
	}
	return err
}
