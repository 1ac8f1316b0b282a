package runtime

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Wait is Acquire that sleeps until the tokens are there. In one process, those who wait for an entity are
// served first come first served. Tokens that the process gives back, to the entity or to an ancestor, wake
// them at once. In shadow it does not sleep. Beside Acquire's errors it fails:
//   - at once, with a *DeniedError that is also context.DeadlineExceeded, if the tokens will not be there
//     before ctx's deadline or the end of MaxWait;
//   - with the last such denial, if one of these comes first after all;
//   - with an error that is context.DeadlineExceeded, if one of these comes before any denial. If it is
//     MaxWait, the error is also ErrMaxWait;
//   - with ctx's error if it is cancelled.
func (r *Resource[E, C]) Wait(ctx context.Context, entity E, cost C, opts ...CallOption) (*Lease[C], error) {
	o := r.defaults.with(opts)
	a, err := r.call(r.core.env.Clock.Now(), entity, cost)
	shadow, wait := r.inShadow(o), r.wait
	if shadow {
		wait = r.glance
	}
	var by settler
	if err == nil {
		if err = r.ready(ctx, &a.call, o); err == nil {
			by, err = wait(ctx, &a.call, o)
		}
	}
	return r.lease(ctx, store.OperationWait, a, o, endOf(&a.call, shadow, by, err))
}

// contendedPause is how long a Wait leaves a bucket alone after all its attempts lost their races.
const contendedPause = 50 * time.Millisecond

func (r *resource) wait(ctx context.Context, call *request, o *callOptions) (by settler, err error) {
	waiting, cancel := o.waiting(ctx)
	defer cancel()
	started := call.Called
	defer func() { call.Called = started }() // the observer measures from it
	part := &call.Parts[0]
	if call.chains[0].above != nil { // an unknown entity has nothing to wait for
		by, err := r.admit(ctx, call, r.core.resolve, o.until(ctx, waiting))
		if _, denied := errors.AsType[*DeniedError](err); !denied && (err != nil || degraded(by)) {
			return by, err
		}
	}
	t := r.core.queues.join(r.spec.Resource, part)
	defer func() {
		// A waiter that was served leaves the queue and announces what it left in one step. In two steps, those
		// behind would count its cost twice.
		var left []store.Bucket
		if err == nil {
			left = part.Buckets
		}
		r.core.queues.leave(t, left)
	}()

	w := waiter{r: r, o: o, ticket: t, ask: true}
	for {
		first, ahead, seen, changed := r.core.queues.look(t)
		switch {
		case first && w.ask:
			by, done, err := w.send(ctx, waiting, call, seen != nil, changed)
			if done {
				return by, err
			}
			if w.ask { // contended
				continue
			}
		case seen != nil:
			// Those ahead are served first. This waiter can have what they leave.
			w.last = outlook(r.spec, r.now(), seen, ahead, part.Cost)
			if first && w.last == nil { // something was given back
				w.ask = true
				continue
			}
		}
		if w.last != nil && pastDeadline(waiting, w.last.RetryAfter) {
			return nil, store.PastDeadline(w.last)
		}
		var ready <-chan time.Time
		if first {
			ready = r.core.env.Clock.After(w.last.RetryAfter)
		}
		select {
		case <-ready:
			w.ask = true
		case <-changed:
		case <-waiting.Done():
			return nil, r.ended(ctx, call, w.last, o)
		}
	}
}

// waiter is the state of a wait. One goroutine uses it.
type waiter struct {
	r        *resource
	o        *callOptions
	ticket   *ticket
	last     *DeniedError // the newest reason to be waiting
	answered bool         // the store has given one
	ask      bool         // the store is to be asked as soon as the waiter is first
}

// send asks the store for call. done reports that the wait has ended, with by or err. Otherwise the call was
// denied, and last is the denial, or it was contended, and ask is still true. seen reports that the buckets
// had images before.
func (w *waiter) send(
	ctx, waiting context.Context, call *request, seen bool, changed <-chan struct{},
) (by settler, done bool, err error) {
	r := w.r
	call.Called = r.core.env.Clock.Now() // each attempt is an acquire of its own
	if waiting.Err() != nil {
		return nil, true, r.ended(ctx, call, w.last, w.o)
	}
	// MaxWait bounds the store's first answer as a Budget does: without an answer the failure policy decides.
	// Later it ends the wait: an attempt that it cuts short is no outage for the policy to decide on.
	within, budgeted := waiting, w.o
	if !w.answered && !seen {
		within, budgeted = ctx, w.o.until(ctx, waiting)
	}
	by, err = r.attempt(within, call, budgeted)
	if err != nil && within == waiting && waiting.Err() != nil && errors.Is(err, waiting.Err()) {
		return nil, true, r.ended(ctx, call, w.last, w.o)
	}
	w.answered = true
	if _, contended := errors.AsType[*ContendedError](err); contended {
		select {
		case <-r.core.env.Clock.After(contendedPause):
			return nil, false, nil
		case <-waiting.Done():
			return nil, true, r.ended(ctx, call, w.last, w.o)
		}
	}
	denied, ok := errors.AsType[*DeniedError](err)
	if !ok {
		return by, true, err
	}
	w.last, w.ask = denied, false
	r.core.queues.saw(w.ticket, call.Parts[0].Buckets, changed)
	return nil, false, nil
}

// attempt is one acquire of a wait.
func (r *resource) attempt(ctx context.Context, call *request, o *callOptions) (settler, error) {
	if denied := r.refusedAgain(call); denied != nil {
		return nil, denied
	}
	return r.admit(ctx, call, r.core.acquire, o)
}

// ended returns the error of a wait whose ctx or MaxWait has ended: the last denial, if time ran out.
func (r *resource) ended(ctx context.Context, call *request, last *DeniedError, o *callOptions) error {
	switch err := ctx.Err(); {
	case last != nil && !errors.Is(err, context.Canceled):
		return store.PastDeadline(last)
	case err == nil:
		return &maxWaitError{r.spec.Resource, call.Parts[0].Buckets[0].Entity, o.maxWait}
	}
	return r.abandoned(ctx, call)
}

// outlook returns the denial of a waiter that wants cost behind others who want ahead of each bucket, or nil
// if it need not wait. A bucket without an image is no reason to wait.
func outlook(
	spec *store.Spec, now int64, seen []store.Bucket, ahead [][]int64, cost []int64,
) (denied *DeniedError) {
	for i := range seen {
		b := &seen[i]
		if b.After == nil {
			continue
		}
		balances, refilled := balancesOf(b, spec)
		// The demand of others comes off the balance of now, which the burst caps, not off all the refill since the
		// last write.
		img := &bucket.Image{Refilled: max(now, refilled), Balances: balances, Missing: b.After.Missing}
		for j, balance := range balances {
			balances[j].Tokens = bucket.Sub(bucket.Available(balance, refilled, now), ahead[i][j])
		}
		denied = store.Refuse(denied, spec, b.Entity, img, cost, now)
	}
	return denied
}

// queues holds the waiters of each bucket that has any. A waiter stands in the queue of its chain's nearest
// bucket, first come first served. It is woken by changes of the chain's other buckets too.
type queues struct {
	mu    sync.Mutex
	by    map[queueKey][]*ticket
	below map[queueKey][]*ticket // by bucket: waiters whose chain continues to it
}

type queueKey struct{ resource, entity string }

// ticket is a place in a queue.
type ticket struct {
	resource string
	cost     []int64
	chain    []store.Bucket // nearest first, each as last seen in this process; replaced, never written to
	seen     bool           // chain has an image
	news     chan struct{}  // closed when the place or chain has changed
}

// at returns the key of the i-th bucket of t's chain.
func (t *ticket) at(i int) queueKey { return queueKey{t.resource, t.chain[i].Entity} }

// leadsTo reports whether t's chain has entity's bucket.
func (t *ticket) leadsTo(entity string) bool {
	return slices.ContainsFunc(t.chain, func(b store.Bucket) bool { return b.Entity == entity })
}

// note takes over the images that buckets have of t's chain.
func (t *ticket) note(buckets []store.Bucket) {
	chain := slices.Clone(t.chain)
	for i := range chain {
		for j := range buckets {
			if b := &buckets[j]; b.After != nil && b.Entity == chain[i].Entity {
				chain[i], t.seen = *b, true
			}
		}
	}
	t.chain = chain
}

// wake makes t look again. The caller holds the mu of queues.
func (t *ticket) wake() {
	close(t.news)
	t.news = make(chan struct{})
}

func newQueues() queues {
	return queues{by: map[queueKey][]*ticket{}, below: map[queueKey][]*ticket{}}
}

// empty reports whether there is no waiter.
func (q *queues) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.by) == 0
}

// join puts a waiter for part, of resource, behind those who wait already.
func (q *queues) join(resource string, part *store.Part) *ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := &ticket{
		resource: resource, cost: part.Cost, chain: slices.Clone(part.Buckets), news: make(chan struct{}),
	}
	for i := range t.chain {
		t.chain[i].After = nil
	}
	if queue := q.by[t.at(0)]; len(queue) > 0 {
		t.note(queue[0].chain)
	}
	q.by[t.at(0)] = append(q.by[t.at(0)], t)
	for i := 1; i < len(t.chain); i++ {
		q.below[t.at(i)] = append(q.below[t.at(i)], t)
	}
	return t
}

// look reports whether t is first, and what all ahead of it want of each bucket of its chain. seen is how
// those buckets were last seen, nil if never. changed is closed when any of that changes.
func (q *queues) look(t *ticket) (first bool, ahead [][]int64, seen []store.Bucket, changed <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	queue := q.by[t.at(0)]
	queue = queue[:slices.Index(queue, t)]
	if t.seen {
		seen = t.chain
		ahead = make([][]int64, len(seen))
		for i := range seen {
			ahead[i] = make([]int64, len(t.cost))
			for _, other := range queue {
				if !other.leadsTo(seen[i].Entity) {
					continue
				}
				for j, c := range other.cost {
					ahead[i][j] = bucket.Add(ahead[i][j], c)
				}
			}
		}
	}
	return len(queue) == 0, ahead, seen, t.news
}

// saw shows the queue of t how t, which is first, found its chain, unless something has changed since it
// looked.
func (q *queues) saw(t *ticket, found []store.Bucket, since <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.news != since {
		return
	}
	t.note(found)
	announce(q.by[t.at(0)][1:], found)
}

// gaveBack wakes the waiters for any of buckets, and shows them how a settle or release left these.
func (q *queues) gaveBack(resource string, buckets []store.Bucket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range buckets { // a waiter of several buckets sees all of them at once: mu is held
		at := queueKey{resource, buckets[i].Entity}
		announce(q.by[at], buckets)
		announce(q.below[at], buckets)
	}
}

// leave takes t out of its queue, and shows those behind what it left of its chain: nil if it was not served.
func (q *queues) leave(t *ticket, left []store.Bucket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := 1; i < len(t.chain); i++ {
		remove(q.below, t.at(i), t)
	}
	remove(q.by, t.at(0), t)
	announce(q.by[t.at(0)], left)
}

// remove takes t from at's list.
func remove(from map[queueKey][]*ticket, at queueKey, t *ticket) {
	list := from[at]
	i := slices.Index(list, t)
	if list = slices.Concat(list[:i], list[i+1:]); len(list) == 0 {
		delete(from, at)
		return
	}
	from[at] = list
}

// announce wakes everyone in queue to look again, after noting the images of buckets. The caller holds the mu
// of queues.
func announce(queue []*ticket, buckets []store.Bucket) {
	for _, t := range queue {
		t.note(buckets)
		t.wake()
	}
}
