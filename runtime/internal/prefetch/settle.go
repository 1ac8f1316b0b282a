package prefetch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/prefetch/blocks"
	"github.com/sluice-go/sluice/runtime/store"
)

// source is what one acquire, or one More, of a lease took of a bucket, unless one block gave it all. Tokens
// of cost that no draw has are from the bucket itself.
type source struct {
	cost   []int64
	draws  []blocks.Draw // of the oldest block first
	before any           // the Source of what the lease took before: nil, a *blocks.Block or a *source
}

// acquires returns what the acquires of a lease took of a bucket, the newest first. They add up to cost.
func acquires(from any, cost []int64) (all []source) {
	for cost = slices.Clone(cost); ; {
		switch s := from.(type) {
		case *source:
			all, from = append(all, *s), s.before
			for i, n := range s.cost {
				cost[i] -= n
			}
			continue
		case *blocks.Block:
			return append(all, source{cost: cost, draws: []blocks.Draw{{Block: s, Cost: cost}}})
		}
		return append(all, source{cost: cost})
	}
}

// Settle implements store.Session. Tokens that a call took of a block come back to that block while it lives;
// later they go with the bucket's next write. Tokens beyond the estimate are taken from the pool, else from
// the store. The store is asked for each bucket of which anything is left to be done.
func (s *session) Settle(ctx context.Context, call *store.Call) error {
	r := s.of(call.Parts[0].Def)
	if r == nil || len(call.Parts) > 1 || s.closed.Load() || !r.concerns(&call.Parts[0]) {
		return s.Session.Settle(ctx, call)
	}
	inner := &store.Call{Called: call.Called, Deadline: call.Deadline}
	var of []*settling
	var errs []error
	for i := range call.Parts[0].Buckets {
		one := r.settle(&call.Parts[0], i, call.Later != nil)
		if one.part != nil {
			inner.Parts, of = append(inner.Parts, *one.part), append(of, one)
		}
		if len(one.rests) > 0 {
			errs = append(errs, r.giveBackNow(ctx, one.pool, one.rests))
			one.shows(nil)
		}
		r.flush(one.pool)
	}
	if len(inner.Parts) == 0 {
		return errors.Join(errs...)
	}
	report := func() {
		for i, one := range of {
			one.shows(&inner.Parts[i].Buckets[0])
		}
	}
	later := call.Later
	if later != nil {
		inner.Later = func(err error) {
			report()
			later(err)
		}
	}
	errs = append(errs, s.Session.Settle(ctx, inner))
	if later != nil && inner.Later == nil {
		call.Later = nil
	} else {
		report()
	}
	return errors.Join(errs...)
}

// concerns reports whether a lease of part took tokens of a pool, or one of its buckets has a pool.
func (r *resource) concerns(part *store.Part) bool {
	if !r.used.Load() {
		return false
	}
	for i := range part.Buckets {
		b := &part.Buckets[i]
		if b.Source != nil {
			return true
		}
		if p := r.find(r.key(part.Def, b)); p != nil {
			p.mu.Unlock()
			return true
		}
	}
	return false
}

// settling is the settle of one bucket.
type settling struct {
	pool   *pool
	bucket *store.Bucket
	part   *store.Part   // for the store; nil if nothing is left to be done
	rests  []blocks.Rest // to be given back at once
}

// settle settles the i-th bucket of part in its pool. Rests go back at once if the pool expects no write of
// the bucket soon, unless the settle is lazy.
func (r *resource) settle(part *store.Part, i int, lazy bool) *settling {
	b, now := &part.Buckets[i], r.now()
	cost, change := r.spec.CostOf(b.Kind, part.Cost), slices.Clone(r.spec.CostOf(b.Kind, part.Difference(b)))
	p := r.pool(part, b)
	defer p.mu.Unlock()
	one := &settling{pool: p, bucket: b}
	if !some(change) {
		return one
	}
	p.name(part, b)
	p.blocks.Expire(now)
	all := acquires(b.Source, cost)
	p.takeBack(all, change, now)
	for j, n := range p.takeMore(change, now) {
		change[j] -= n
	}
	if p.image != nil {
		b.After = p.shown()
	}
	if !p.blocks.Live() && !p.fetching && !lazy {
		one.rests = p.blocks.Rests()
	}
	if some(change) {
		left := p.part(cost)
		left.Buckets[0].Charges, left.Buckets[0].Dropped = direct(b, all), b.Dropped
		left.Actual = slices.Clone(cost)
		for j, n := range change {
			left.Actual[j] = bucket.Add(left.Actual[j], n)
		}
		one.part = &left
	}
	return one
}

// takeBack gives tokens that change gives back to the blocks that all took them from, those of the newest
// acquire first. It takes these tokens out of change.
func (p *pool) takeBack(all []source, change []int64, now time.Duration) {
	give := make([]int64, len(change))
	for i, n := range change {
		give[i] = max(0, -n)
	}
	for _, s := range all {
		own := slices.Clone(s.cost) // of the bucket itself
		for _, d := range slices.Backward(s.draws) {
			back := make([]int64, len(give))
			for i, n := range d.Cost {
				back[i], own[i] = min(give[i], n), own[i]-n
				give[i], change[i] = give[i]-back[i], change[i]+back[i]
			}
			p.blocks.Return(d.Block, back, now)
		}
		for i, n := range own {
			give[i] -= min(give[i], n)
		}
	}
}

// takeMore takes the tokens that change takes from the pool, as far as the pool has them, and returns these.
func (p *pool) takeMore(change []int64, now time.Duration) []int64 {
	more, taken := make([]int64, len(change)), make([]int64, len(change))
	for i, n := range change {
		more[i] = max(0, n)
	}
	if some(more) {
		for _, d := range p.blocks.TakeSome(more, p.prefetch, now) {
			for i, n := range d.Cost {
				taken[i] += n
			}
		}
	}
	return taken
}

// direct returns the charges of b that are of the bucket itself: without what all, the acquires of its lease,
// took of blocks. The last of all stands for all acquires before the first one that took of a block.
func direct(b *store.Bucket, all []source) []bucket.Charge {
	own := slices.Clone(b.Charges)
	for i := range own { // oldest first
		at := len(own) - 1 - i
		if at >= len(all) || len(all[at].draws) == 0 {
			continue
		}
		own[i].Cost = slices.Clone(all[at].cost)
		for _, d := range all[at].draws {
			for j, n := range d.Cost {
				own[i].Cost[j] -= n
			}
		}
	}
	return own
}

// shown returns the bucket as last seen, plus what p holds: calls of this process can use both.
func (p *pool) shown() *bucket.Image {
	img := *p.image
	img.Balances = slices.Clone(img.Balances)
	for i := range img.Balances {
		img.Balances[i].Tokens = bucket.Add(img.Balances[i].Tokens, p.blocks.Left(i))
	}
	return &img
}

// shows notes the image that a write of the bucket has left, in the call's bucket and in the pool. by is the
// bucket of that write, nil if only rests were given back.
func (s *settling) shows(by *store.Bucket) {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if by != nil {
		s.pool.seen(by, s.pool.resource.now())
	}
	if s.pool.image != nil {
		s.bucket.After = s.pool.shown()
	}
}
