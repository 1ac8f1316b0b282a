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

// Wait is Acquire that sleeps until the tokens are there. In one process, those who wait for an entity are served first
// come first served, and what the process gives back, to the entity or to an ancestor, is noticed at once. It fails at
// once, with a *DeniedError that is also context.DeadlineExceeded, when the tokens will not be there before ctx's deadline
// or the end of MaxWait; where one of these comes first after all, with the last denial or, before any, an error that is
// context.DeadlineExceeded, and ErrMaxWait where it is MaxWait that has ended; and with ctx's error where it is cancelled. In shadow it
// does not sleep.
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

// contendedPause is how long a Wait leaves a bucket alone on which all its attempts lost their races.
const contendedPause = 50 * time.Millisecond

func (r *resource) wait(ctx context.Context, call *request, o *callOptions) (by settler, err error) {
	waiting, cancel := o.waiting(ctx)
	defer cancel()
	started := call.Called
	defer func() { call.Called = started }() // what the observer times
	part := &call.Parts[0]
	if call.chains[0].above != nil { // who is not known has nothing to wait for
		by, err := r.admit(ctx, call, r.core.resolve, o.until(ctx, waiting))
		if _, denied := errors.AsType[*DeniedError](err); !denied && (err != nil || degraded(by)) {
			return by, err
		}
	}
	t := r.core.lines.join(r.spec.Resource, part)
	defer func() {
		// Whoever was served leaves together with news of what it left: apart, those behind would count its cost twice.
		var left []store.Bucket
		if err == nil {
			left = part.Buckets
		}
		r.core.lines.leave(t, left)
	}()

	var last *DeniedError // the newest reason to be waiting
	answered := false     // the store has said that there is one
	for ask := true; ; {
		first, ahead, seen, news := r.core.lines.look(t)
		switch {
		case first && ask:
			call.Called = r.core.env.Clock.Now() // each try is an acquire of its own
			if waiting.Err() != nil {
				return nil, r.ended(ctx, call, last, o)
			}
			// MaxWait bounds the store's first answer as a Budget does, so that the failure policy decides where there is
			// none. Later its end is that of the wait: a try that it cuts short is no outage to decide on.
			within, budgeted := waiting, o
			if !answered && seen == nil {
				within, budgeted = ctx, o.until(ctx, waiting)
			}
			by, err := r.try(within, call, budgeted)
			if err != nil && within == waiting && waiting.Err() != nil && errors.Is(err, waiting.Err()) {
				return nil, r.ended(ctx, call, last, o)
			}
			answered = true
			if _, contended := errors.AsType[*ContendedError](err); contended {
				select {
				case <-r.core.env.Clock.After(contendedPause):
					continue
				case <-waiting.Done():
					return nil, r.ended(ctx, call, last, o)
				}
			}
			denied, ok := errors.AsType[*DeniedError](err)
			if !ok {
				return by, err
			}
			last, ask = denied, false
			r.core.lines.saw(t, part.Buckets, news)
		case seen != nil:
			// Those ahead are served first: what they leave is what this one can have.
			last = outlook(r.spec, r.now(), seen, ahead, part.Cost)
			if first && last == nil { // something was given back
				ask = true
				continue
			}
		}
		if last != nil && pastDeadline(waiting, last.RetryAfter) {
			return nil, store.PastDeadline(last)
		}
		var ready <-chan time.Time
		if first {
			ready = r.core.env.Clock.After(last.RetryAfter)
		}
		select {
		case <-ready:
			ask = true
		case <-news:
		case <-waiting.Done():
			return nil, r.ended(ctx, call, last, o)
		}
	}
}

// try is one acquire of a wait's.
func (r *resource) try(ctx context.Context, call *request, o *callOptions) (settler, error) {
	if denied := r.refusedAgain(call); denied != nil {
		return nil, denied
	}
	return r.admit(ctx, call, r.core.charge, o)
}

// ended returns the error of a wait whose ctx is over, or else its MaxWait: the last denial if that was for want of time.
func (r *resource) ended(ctx context.Context, call *request, last *DeniedError, o *callOptions) error {
	switch err := ctx.Err(); {
	case last != nil && !errors.Is(err, context.Canceled):
		return store.PastDeadline(last)
	case err == nil:
		return &maxWaitError{r.spec.Resource, call.Parts[0].Buckets[0].Entity, o.maxWait}
	}
	return r.gone(ctx, call)
}

// outlook returns how a waiter that wants cost stands behind others who want ahead of each of the buckets, or nil if it
// need not wait. A bucket that nobody has seen yet is no reason to.
func outlook(spec *store.Spec, now int64, seen []store.Bucket, ahead [][]int64, cost []int64) (denied *DeniedError) {
	for i := range seen {
		b := &seen[i]
		if b.After == nil {
			continue
		}
		balances, refilled := balancesOf(b, spec)
		// What others want comes off the level of now, which the burst caps, not off all the refill since the last write.
		img := &bucket.Image{Refilled: max(now, refilled), Balances: balances, Missing: b.After.Missing}
		for j, balance := range balances {
			balances[j].Tokens = bucket.Sub(bucket.Available(balance, refilled, now), ahead[i][j])
		}
		denied = store.Refuse(denied, spec, b.Entity, img, cost, now)
	}
	return denied
}

// lines holds the waiters of each bucket that has some. A waiter stands in the line of its chain's nearest bucket, first
// come first, and hears what happens to the others.
type lines struct {
	mu    sync.Mutex
	by    map[line][]*ticket
	below map[line][]*ticket // who waits for a chain that leads to this bucket
}

type line struct{ resource, entity string }

// ticket is a place in a line.
type ticket struct {
	resource string
	cost     []int64
	chain    []store.Bucket // nearest first; each as it was last seen by somebody here. Replaced, never written to
	seen     bool           // by somebody: chain has an image
	news     chan struct{}  // closed when the place or chain has changed
}

// at is the line of the i-th bucket of t's chain.
func (t *ticket) at(i int) line { return line{t.resource, t.chain[i].Entity} }

// leadsTo reports whether t's chain has entity's bucket.
func (t *ticket) leadsTo(entity string) bool {
	return slices.ContainsFunc(t.chain, func(b store.Bucket) bool { return b.Entity == entity })
}

// note takes over what buckets show of t's chain.
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

// wake has t look again. The caller holds the lines' mu.
func (t *ticket) wake() {
	close(t.news)
	t.news = make(chan struct{})
}

func newLines() lines { return lines{by: map[line][]*ticket{}, below: map[line][]*ticket{}} }

// empty reports that nobody waits.
func (l *lines) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.by) == 0
}

// join has a waiter for part, of resource, stand behind those who wait already.
func (l *lines) join(resource string, part *store.Part) *ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := &ticket{resource: resource, cost: part.Cost, chain: slices.Clone(part.Buckets), news: make(chan struct{})}
	for i := range t.chain {
		t.chain[i].After = nil
	}
	if queue := l.by[t.at(0)]; len(queue) > 0 {
		t.note(queue[0].chain)
	}
	l.by[t.at(0)] = append(l.by[t.at(0)], t)
	for i := 1; i < len(t.chain); i++ {
		l.below[t.at(i)] = append(l.below[t.at(i)], t)
	}
	return t
}

// look reports whether t is first, what all ahead of it want of each bucket of its chain, how those were last seen, nil if
// they never were, and a channel that is closed when any of that changes.
func (l *lines) look(t *ticket) (first bool, ahead [][]int64, seen []store.Bucket, news <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.by[t.at(0)]
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

// saw tells t's line how t, who is first, found its chain, unless there has been news since it looked.
func (l *lines) saw(t *ticket, found []store.Bucket, since <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.news != since {
		return
	}
	t.note(found)
	announce(l.by[t.at(0)][1:], found)
}

// gaveBack tells who waits for one of buckets, if anybody does, how a settle or release has left them.
func (l *lines) gaveBack(resource string, buckets []store.Bucket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range buckets { // whoever waits for several hears of all before it can look: mu is held
		at := line{resource, buckets[i].Entity}
		announce(l.by[at], buckets)
		announce(l.below[at], buckets)
	}
}

// leave takes t out of its line, and tells those who stay what it left of its chain, nil if it was not served.
func (l *lines) leave(t *ticket, left []store.Bucket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := 1; i < len(t.chain); i++ {
		remove(l.below, t.at(i), t)
	}
	remove(l.by, t.at(0), t)
	announce(l.by[t.at(0)], left)
}

// remove takes t from at's list.
func remove(from map[line][]*ticket, at line, t *ticket) {
	list := from[at]
	i := slices.Index(list, t)
	if list = slices.Concat(list[:i], list[i+1:]); len(list) == 0 {
		delete(from, at)
		return
	}
	from[at] = list
}

// announce wakes everyone in queue to look again, at what buckets show if that is news. The caller holds the lines' mu.
func announce(queue []*ticket, buckets []store.Bucket) {
	for _, t := range queue {
		t.note(buckets)
		t.wake()
	}
}
