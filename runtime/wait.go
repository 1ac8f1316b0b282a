package runtime

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// Wait is Acquire that sleeps until the tokens are there. In one process, waiters for a bucket are served first come
// first served, and what the process gives back there is noticed at once. It fails at once, with a *DeniedError that is also context.DeadlineExceeded, when the tokens will not be
// there before ctx's deadline or the end of MaxWait; where ctx ends first after all, with the last denial or ctx's error.
func (r *Resource[E, C]) Wait(ctx context.Context, entity E, cost C, opts ...CallOption) (*Lease[C], error) {
	call, err := r.call(entity, cost)
	var by settler
	if err == nil {
		o := r.defaults.with(opts)
		if err = r.ready(ctx, call, o); err == nil {
			by, err = r.wait(ctx, call, o)
		}
	}
	return r.lease(call, by, err)
}

// contendedPause is how long a Wait leaves a bucket alone on which all its attempts lost their races.
const contendedPause = 50 * time.Millisecond

func (r *resource) wait(ctx context.Context, call *Call, o callOptions) (settler, error) {
	if o.maxWait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.maxWait)
		defer cancel()
	}
	started := call.Called
	defer func() { call.Called = started }() // what the observer times
	part := &call.Parts[0]
	t := r.core.lines.join(line{r.spec.Resource, part.Buckets[0].Entity}, part.Cost)
	// Whoever was served leaves together with news of what it left: apart, those behind would count its cost twice.
	defer func() { r.core.lines.leave(t, part.Buckets[0].After) }()

	var last *DeniedError // the newest reason to be waiting
	for ask := true; ; {
		first, ahead, seen, news := r.core.lines.look(t)
		switch {
		case first && ask:
			call.Called = r.core.env.Clock.Now() // each try is an acquire of its own
			by, err := r.acquire(ctx, call, o)
			if _, contended := errors.AsType[*ContendedError](err); contended {
				select {
				case <-r.core.env.Clock.After(contendedPause):
					continue
				case <-ctx.Done():
					return nil, r.ended(ctx, call, last)
				}
			}
			denied, ok := errors.AsType[*DeniedError](err)
			if !ok {
				return by, err
			}
			last, ask = denied, false
			r.core.lines.saw(t, part.Buckets[0].After, news)
		case seen != nil:
			// Those ahead are served first: what they leave is what this one can have.
			balances := Bucket{Entity: t.line.entity, Kind: part.Buckets[0].Kind, After: seen}
			last = r.outlook(balances, ahead, part.Cost)
			if first && last == nil { // something was given back
				ask = true
				continue
			}
		}
		if last != nil && beyond(ctx, last.RetryAfter) {
			last.deadline = true
			return nil, last
		}
		var ready <-chan time.Time
		if first {
			ready = r.core.env.Clock.After(last.RetryAfter)
		}
		select {
		case <-ready:
			ask = true
		case <-news:
		case <-ctx.Done():
			return nil, r.ended(ctx, call, last)
		}
	}
}

// ended returns the error of a wait whose ctx is over: the last denial if that was for want of time.
func (r *resource) ended(ctx context.Context, call *Call, last *DeniedError) error {
	if last != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		last.deadline = true
		return last
	}
	return r.gone(ctx, call)
}

// outlook returns how a waiter that wants cost stands behind others who want ahead in all, or nil if it need not wait.
func (r *resource) outlook(b Bucket, ahead, cost []int64) *DeniedError {
	balances, refilled := r.balances(&b)
	now := r.now()
	// What others want comes off the level of now, which the burst caps, not off all the refill since the last write.
	img := &bucket.Image{Refilled: max(now, refilled), Balances: balances, Missing: b.After.Missing}
	for i, balance := range balances {
		balances[i].Tokens = bucket.Sub(bucket.Available(balance, refilled, now), ahead[i])
	}
	return Refuse(nil, r.spec, b.Entity, img, cost, now)
}

// lines holds the waiters of each bucket that has some, first come first.
type lines struct {
	mu sync.Mutex
	by map[line][]*ticket
}

type line struct{ resource, entity string }

// ticket is a place in a line.
type ticket struct {
	line line
	cost []int64
	seen *bucket.Image // the bucket as it was last seen by who was first then
	news chan struct{} // closed when the place or seen has changed
}

func newLines() lines { return lines{by: map[line][]*ticket{}} }

func (l *lines) join(at line, cost []int64) *ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := &ticket{line: at, cost: cost, news: make(chan struct{})}
	if queue := l.by[at]; len(queue) > 0 {
		t.seen = queue[0].seen
	}
	l.by[at] = append(l.by[at], t)
	return t
}

// look reports whether t is first, what all ahead of it want, how the bucket was last seen, and a channel that is closed
// when any of that changes.
func (l *lines) look(t *ticket) (first bool, ahead []int64, seen *bucket.Image, news <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.by[t.line]
	ahead = make([]int64, len(t.cost))
	for _, other := range queue {
		if other == t {
			break
		}
		for i, c := range other.cost {
			ahead[i] = bucket.Add(ahead[i], c)
		}
	}
	return queue[0] == t, ahead, t.seen, t.news
}

// saw tells t's line how t, who is first, found the bucket, unless there has been news since it looked.
func (l *lines) saw(t *ticket, img *bucket.Image, since <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.news != since {
		return
	}
	t.seen = img
	l.tell(l.by[t.line][1:], img)
}

// gaveBack tells who waits at a bucket, if anybody does, how a settle or release has left it.
func (l *lines) gaveBack(at line, img *bucket.Image) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tell(l.by[at], img)
}

// leave takes t out of its line, and tells those who stay what it left of the bucket, nil if it never was first.
func (l *lines) leave(t *ticket, left *bucket.Image) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.by[t.line]
	for i, other := range queue {
		if other == t {
			queue = append(queue[:i:i], queue[i+1:]...)
			break
		}
	}
	if len(queue) == 0 {
		delete(l.by, t.line)
		return
	}
	l.by[t.line] = queue
	l.tell(queue, left)
}

// tell wakes everyone in queue to look again, at seen if that is news. The caller holds l.mu.
func (l *lines) tell(queue []*ticket, seen *bucket.Image) {
	for _, t := range queue {
		if seen != nil {
			t.seen = seen
		}
		close(t.news)
		t.news = make(chan struct{})
	}
}
