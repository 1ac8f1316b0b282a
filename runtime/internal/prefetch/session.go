// Package prefetch takes tokens of hot buckets in blocks, and admits calls from them without a request
// (docs/design.md, "Prefetch").
//
// Wrap wraps the session of a store. For resources with a prefetch it has a pool for each bucket that calls
// use. A block is an ordinary acquire of that bucket, and what is left of one is an ordinary give-back. So
// stores know nothing of prefetch.
//
// A call takes from the pools of its chain's buckets. The store is asked for the tokens that a pool does not
// have, bucket by bucket. The arithmetic is in package blocks.
package prefetch

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/runtime/internal/background"
	"github.com/sluice-go/sluice/runtime/internal/prefetch/blocks"
	"github.com/sluice-go/sluice/runtime/store"
)

// session is the session of a store, with pools. The methods that it does not have are the inner session's.
type session struct {
	store.Session

	env        *store.Env
	began      time.Time // instants are since then
	resources  map[store.Definition]*resource
	background background.Tasks
	closing    chan struct{}
	closed     atomic.Bool

	mu       sync.Mutex
	sweeping bool // a goroutine ends blocks and pools
}

// resource has the pools of one resource.
type resource struct {
	*session

	def      store.Definition
	spec     *store.Spec
	prefetch time.Duration

	mu    sync.RWMutex
	pools map[poolKey]*pool
}

// poolKey names a bucket of a resource.
type poolKey struct {
	kind int
	id   string // without the kind's prefix
}

// Wrap returns inner with pools for those of defs that have a prefetch, or inner itself if none has.
func Wrap(env *store.Env, inner store.Session, defs []store.Definition) store.Session {
	s := &session{
		Session: inner, env: env, began: env.Clock.Now(), resources: map[store.Definition]*resource{},
		closing: make(chan struct{}),
	}
	for _, def := range defs {
		if spec := def.Spec(); spec.Prefetch > 0 {
			s.resources[def] = &resource{
				session: s, def: def, spec: spec, prefetch: spec.Prefetch, pools: map[poolKey]*pool{},
			}
		}
	}
	if len(s.resources) == 0 {
		return inner
	}
	return s
}

// now returns the present instant.
func (s *session) now() time.Duration { return s.env.Clock.Now().Sub(s.began) }

// Acquire implements store.Session. A call of several parts asks the store, as does a call of a resource
// without prefetch.
func (s *session) Acquire(ctx context.Context, call *store.Call) error {
	r := s.resources[call.Parts[0].Def]
	if r == nil || len(call.Parts) > 1 || s.closed.Load() {
		return s.Session.Acquire(ctx, call)
	}
	part, now := &call.Parts[0], call.Called.Sub(s.began)
	for i := range part.Buckets {
		if !r.take(part, i, now) {
			return r.ask(ctx, call, i)
		}
	}
	call.Pooled = true
	return nil
}

// take takes the cost of part's i-th bucket from that bucket's pool. It reports false if the pool has less.
func (r *resource) take(part *store.Part, i int, now time.Duration) bool {
	b := &part.Buckets[i]
	p := r.pool(b)
	cost := p.own(part.Cost)
	p.blocks.Expire(now)
	p.meter.Add(cost, now)
	from := p.blocks.Take(cost)
	if from == nil {
		p.mu.Unlock()
		return false
	}
	b.After, b.Limits, b.Dropped, b.Ends, b.Epochs = p.image, p.limits, nil, from.Ends, nil
	if b.Source == nil {
		b.Source = from
	} else {
		b.Source = whole(from, cost, b.Source)
	}
	size := p.due(now)
	p.mu.Unlock()
	if size != nil {
		p.start(part, i, size)
	}
	return true
}

// Peek implements store.Session. It also finds what the pools hold. The images that it finds may end blocks.
func (s *session) Peek(ctx context.Context, call *store.Call) error {
	err := s.Session.Peek(ctx, call)
	if err == nil {
		s.seen(call)
	}
	return err
}

// seen notes in the pools of call's buckets how the store has found or left these.
func (s *session) seen(call *store.Call) {
	now := s.now()
	for i := range call.Parts {
		r := s.resources[call.Parts[i].Def]
		if r == nil {
			continue
		}
		for j := range call.Parts[i].Buckets {
			b := &call.Parts[i].Buckets[j]
			if p := r.find(r.key(b)); p != nil {
				p.seen(b, now)
				if b.Prefetched = make([]int64, len(r.spec.Limits)); p.blocks.Live() {
					for k := range b.Prefetched {
						b.Prefetched[k] = p.blocks.Left(k)
					}
				}
				p.mu.Unlock()
			}
		}
	}
}

var _ store.Session = (*session)(nil)

// whole returns the source of a call that took all of cost from a block, after those of before.
func whole(from *blocks.Block, cost []int64, before any) *source {
	cost = append([]int64(nil), cost...)
	return &source{cost: cost, draws: []blocks.Draw{{Block: from, Cost: cost}}, before: before}
}
