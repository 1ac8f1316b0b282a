package prefetch

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/prefetch/blocks"
	"github.com/sluice-go/sluice/runtime/store"
)

// question is what a call asks the store for one bucket, since the bucket's pool has too few tokens.
type question struct {
	resource *resource
	pool     *pool
	prefetch time.Duration // of the call
	at       int           // index of the bucket in its part
	cost     []int64       // of the call
	had      []int64       // the tokens of cost that the pool had
	draws    []blocks.Draw // that add up to had
	call     *store.Call   // asks the store for the other tokens; nil if there are none
	err      error
}

// need returns the tokens of the cost that the pool did not have.
func (q *question) need() []int64 {
	need := slices.Clone(q.cost)
	for i, n := range q.had {
		need[i] -= n
	}
	return need
}

// ask takes the cost of call's buckets from the at-th on: from pools and, for tokens that they do not have,
// from the store. Buckets before the at-th have been taken from already. If the store denies one bucket, all
// others get their tokens back.
func (r *resource) ask(ctx context.Context, call *store.Call, at int) error {
	part, now := &call.Parts[0], call.Called.Sub(r.began)
	before := make([]any, len(part.Buckets)) // their sources before this call, from acquires of the same lease
	var questions []*question
	for i := range part.Buckets {
		before[i] = earlier(part.Buckets[i].Source, i < at)
		if i == at || i > at && !r.take(call, i, now) {
			questions = append(questions, r.question(call, i, now))
		}
	}
	var running sync.WaitGroup
	for i, q := range questions {
		if i == len(questions)-1 { // the last one, mostly the only one, on this goroutine
			q.answer(ctx)
			break
		}
		running.Go(func() { q.answer(ctx) })
	}
	running.Wait()
	now = r.now()
	err := decide(questions)
	for _, q := range questions {
		q.finish(part, err == nil, now)
		if err != nil && q.call != nil && q.err == nil { // it became a block
			r.observe(store.OperationTake, &q.call.Parts[0], q.call.Parts[0].Cost)
		}
		r.flush(q.pool)
	}
	if err != nil {
		for i := range part.Buckets {
			r.putBack(part, i, questions, now)
			part.Buckets[i].Source = before[i]
		}
	}
	return err
}

// earlier returns the source of a bucket before this call. from is the present one. taken reports whether
// this call has taken from the bucket's pool, and so has changed the source.
func earlier(from any, taken bool) any {
	if !taken {
		return from
	}
	if s, ok := from.(*source); ok {
		return s.before
	}
	return nil
}

// question prepares a question for the i-th bucket. It takes what the pool has, before a later call does.
func (r *resource) question(call *store.Call, i int, now time.Duration) *question {
	part := &call.Parts[0]
	p := r.pool(part, &part.Buckets[i])
	q := &question{resource: r, pool: p, prefetch: call.Prefetch, at: i, cost: slices.Clone(p.own(part.Cost))}
	q.had = make([]int64, len(q.cost))
	p.name(part, &part.Buckets[i])
	if p.blocks.Expire(now); !p.tooLarge(q.cost) {
		q.draws = p.blocks.TakeSome(q.cost, call.Prefetch, now)
		for _, d := range q.draws {
			for j, n := range d.Cost {
				q.had[j] += n
			}
		}
	}
	var rests []blocks.Rest
	if need := q.need(); some(need) {
		rests = p.blocks.Rests()
		q.call = &store.Call{Parts: []store.Part{p.part(need)}, Called: call.Called, Deadline: call.Deadline}
		p.wait(need, 1)
	}
	p.asking++
	size := p.due(now)
	p.mu.Unlock()
	r.deferRests(p, rests, call.Called)
	if size != nil {
		p.start(size, call.Prefetch)
	}
	return q
}

// wait notes that a call waits for the store to give need (sign 1), or no longer waits (sign -1).
func (p *pool) wait(need []int64, sign int64) {
	for i, n := range need {
		p.waiting[i] = bucket.Add(p.waiting[i], sign*n)
	}
}

// answer asks the store.
func (q *question) answer(ctx context.Context) {
	if q.call != nil {
		q.err = q.resource.Session.Acquire(ctx, q.call)
	}
}

// finish notes the answer in the pool, and in part's bucket. If the call is not admitted, what the pool and
// the store gave goes back to the pool: what the store gave is a block.
func (q *question) finish(part *store.Part, admitted bool, now time.Duration) {
	p, b := q.pool, &part.Buckets[q.at]
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking--
	b.After, b.Limits, b.Dropped, b.Ends, b.Epochs = p.image, p.limits, nil, nil, nil
	if q.call != nil {
		own, need := &q.call.Parts[0].Buckets[0], q.call.Parts[0].Cost
		p.wait(need, -1)
		p.seen(own, now)
		b.After, b.Limits, b.Dropped, b.Ends = own.After, own.Limits, own.Dropped, own.Ends
		if !admitted && q.err == nil {
			p.add(own, need, q.prefetch, q.call.Called, now)
		}
	} else if n := len(q.draws); n > 0 {
		b.Ends = q.draws[n-1].Block.Ends
	}
	switch {
	case !admitted:
		p.putBack(q.draws, now)
	case len(q.draws) > 0 || b.Source != nil:
		b.Source = &source{cost: q.cost, draws: q.draws, before: b.Source}
	}
}

// putBack gives what the call took from the i-th bucket's pool back. It does nothing if the bucket had a
// question, whose finish does that.
func (r *resource) putBack(part *store.Part, i int, questions []*question, now time.Duration) {
	if slices.ContainsFunc(questions, func(q *question) bool { return q.at == i }) {
		return
	}
	b := &part.Buckets[i]
	cost := r.spec.CostOf(b.Kind, part.Cost)
	p := r.pool(part, b)
	p.putBack(acquires(b.Source, cost)[0].draws, now)
	p.mu.Unlock()
	r.flush(p)
}

// putBack gives draws back to their blocks.
func (p *pool) putBack(draws []blocks.Draw, now time.Duration) {
	p.blocks.Expire(now)
	for _, d := range draws {
		p.blocks.Return(d.Block, d.Cost, now)
	}
}
