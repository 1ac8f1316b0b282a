package prefetch

import (
	"errors"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Refused implements store.Session. A bucket whose pool has the cost denies nothing. For other buckets, the
// cached image decides about the tokens that are missing in the pool.
func (s *session) Refused(
	def store.Definition, chain []store.Link, cost []int64, now int64,
) *store.DeniedError {
	denied := s.Session.Refused(def, chain, cost, now)
	r := s.of(def)
	switch {
	case r == nil || !r.used.Load() || s.closed.Load():
		return denied
	case denied == nil:
		return r.withhold(def, chain, cost, now)
	case !r.holds(def, chain):
		return denied
	}
	var all []*question
	for i := range chain {
		q := r.missing(def, &chain[i], cost)
		if need := q.need(); some(need) {
			if one := s.Session.Refused(def, chain[i:i+1], need, now); one != nil {
				q.err = one
			}
			all = append(all, q)
		}
	}
	denied, _ = decide(all).(*store.DeniedError) //nolint:errorlint // it is not wrapped
	return denied
}

// holds reports whether the pool of any bucket of chain has a block.
func (r *resource) holds(def store.Definition, chain []store.Link) (some bool) {
	now := r.now()
	for _, link := range chain {
		if p := r.find(keyOf(def, link.Kind, link.ID)); p != nil {
			p.blocks.Expire(now)
			some = some || p.blocks.Live()
			p.mu.Unlock()
		}
	}
	return some
}

// missing returns the question that a call would ask of a bucket, without taking anything.
func (r *resource) missing(def store.Definition, link *store.Link, cost []int64) *question {
	p := r.find(keyOf(def, link.Kind, link.ID))
	if p == nil {
		return &question{resource: r, cost: r.spec.CostOf(link.Kind, cost), had: make([]int64, len(cost))}
	}
	defer p.mu.Unlock()
	return p.missing(cost)
}

// missing is resource.missing for p's bucket. The caller has locked p.
func (p *pool) missing(cost []int64) *question {
	r := p.resource
	own := slices.Clone(r.spec.CostOf(p.key.kind, cost))
	q := &question{resource: r, cost: own, had: make([]int64, len(cost))}
	if !p.tooLarge(q.cost) {
		for i, n := range q.cost {
			q.had[i] = min(n, p.blocks.Left(i))
		}
	}
	return q
}

// decide returns the answer to a call: the error that says most, nil if there is none. A denial says more
// than that another bucket could not be asked.
func decide(questions []*question) error {
	var denied *store.DeniedError
	var other error
	for _, q := range questions {
		err := q.explained()
		if _, ok := errors.AsType[*store.CostTooLargeError](err); ok {
			return err
		}
		if one, ok := errors.AsType[*store.DeniedError](err); ok {
			denied = both(denied, one)
		} else if other == nil {
			other = err
		}
	}
	if denied != nil {
		return denied
	}
	return other
}

// both returns a denial with the refusals of a, which may be nil, and of b.
func both(a, b *store.DeniedError) *store.DeniedError {
	if a == nil {
		return b
	}
	sum := &store.DeniedError{Unsynced: a.Unsynced || b.Unsynced}
	for _, refusal := range slices.Concat(a.Refusals, b.Refusals) {
		sum = store.AddRefusal(sum, refusal)
	}
	return sum
}

// explained returns q's error with the numbers of the whole call. The store was asked for less if the pool
// had some of the cost.
func (q *question) explained() error {
	denied, ok := errors.AsType[*store.DeniedError](q.err)
	if !ok || !some(q.had) {
		return q.err
	}
	spec, own := q.resource.spec, &store.DeniedError{Unsynced: denied.Unsynced}
	for _, refusal := range denied.Refusals {
		if i := slices.Index(spec.Limits, refusal.Limit); i >= 0 {
			refusal.Requested = spec.Whole(i, q.cost[i])
			refusal.Available = bucket.Add(refusal.Available, spec.Whole(i, q.had[i]))
		}
		own = store.AddRefusal(own, refusal)
	}
	return own
}
