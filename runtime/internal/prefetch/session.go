// Package prefetch takes tokens of hot buckets in blocks, and admits calls from them without a request
// (docs/design.md, "Prefetch").
//
// Wrap wraps the session of a store. It has a pool for each bucket that calls with a prefetch use. A block is
// an ordinary acquire of that bucket, and what is left of one is an ordinary give-back. So stores know
// nothing of prefetch.
//
// A call takes from the pools of its chain's buckets. The store is asked for the tokens that a pool does not
// have, bucket by bucket. The arithmetic is in package blocks.
package prefetch

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/background"
	"github.com/sluice-go/sluice/runtime/internal/prefetch/blocks"
	"github.com/sluice-go/sluice/runtime/store"
)

// session is the session of a store, with pools. The methods that it does not have are the inner session's.
type session struct {
	store.Session

	env        *store.Env
	began      time.Time                      // instants are since then
	resources  map[store.Definition]*resource // that may have pools; one for all names of a template
	background background.Tasks
	closing    chan struct{}
	closed     atomic.Bool
	wheel      wheel
}

// resource has the pools of one resource, or of all names of a template.
type resource struct {
	*session

	spec *store.Spec // of the template
	used atomic.Bool // a pool was ever made

	mu    sync.RWMutex
	pools map[poolKey]*pool
}

// poolKey names a bucket of a resource.
type poolKey struct {
	name string // the resource that the bucket is stored under; "" if calls are not on names of a template
	kind int
	id   string // without the kind's prefix
}

// Wrap returns inner with pools for those of defs that can have a prefetch, or inner itself if none can.
func Wrap(env *store.Env, inner store.Session, defs []store.Definition) store.Session {
	s := &session{
		Session: inner, env: env, began: env.Clock.Now(), resources: map[store.Definition]*resource{},
		closing: make(chan struct{}), wheel: wheel{ticks: map[int64][]*pool{}},
	}
	for _, def := range defs {
		if spec := def.Spec(); Barred(spec) == "" {
			s.resources[def] = &resource{session: s, spec: spec, pools: map[poolKey]*pool{}}
		}
	}
	if len(s.resources) == 0 {
		return inner
	}
	return s
}

// of returns the resource of def, or nil if it cannot have pools.
func (s *session) of(def store.Definition) *resource {
	if name, ok := def.(*store.Named); ok {
		def = name.Of
	}
	return s.resources[def]
}

// now returns the present instant.
func (s *session) now() time.Duration { return s.env.Clock.Now().Sub(s.began) }

// Acquire implements store.Session. Calls of several parts and calls without a prefetch use no pool.
func (s *session) Acquire(ctx context.Context, call *store.Call) error {
	r := s.of(call.Parts[0].Def)
	if r == nil || call.Prefetch == 0 || len(call.Parts) > 1 || s.closed.Load() {
		return s.Session.Acquire(ctx, call)
	}
	part, now := &call.Parts[0], call.Called.Sub(s.began)
	for i := range part.Buckets {
		if !r.take(call, i, now) {
			return r.ask(ctx, call, i)
		}
	}
	call.Pooled = true
	return nil
}

// take takes the cost of call's i-th bucket from that bucket's pool. It reports false if the pool has less.
func (r *resource) take(call *store.Call, i int, now time.Duration) bool {
	part := &call.Parts[0]
	b := &part.Buckets[i]
	p := r.pool(part, b)
	cost := p.own(part.Cost)
	p.blocks.Expire(now)
	p.meter.Add(cost, now)
	p.prefetch = call.Prefetch
	from := p.blocks.Take(cost, call.Prefetch, now)
	if from == nil {
		p.mu.Unlock()
		return false
	}
	b.After, b.Limits, b.Dropped, b.Ends, b.Epochs = p.image, p.limits, nil, from.Ends, nil
	if b.Source == nil && !call.Again {
		b.Source = from
	} else {
		b.Source = whole(from, cost, b.Source)
	}
	size := p.due(now)
	if size != nil {
		p.name(part, b)
	}
	p.mu.Unlock()
	if size != nil {
		p.start(size, call.Prefetch)
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

// seen notes in the pools of call's buckets the images that the store has returned, and in the buckets what
// the pools hold.
func (s *session) seen(call *store.Call) {
	now := s.now()
	for i := range call.Parts {
		part := &call.Parts[i]
		r := s.of(part.Def)
		if r == nil || !r.used.Load() {
			continue
		}
		for j := range part.Buckets {
			b := &part.Buckets[j]
			if p := r.find(r.key(part.Def, b)); p != nil {
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

// Shortest and Longest are the bounds of a prefetch.
const (
	Shortest = 100 * time.Millisecond
	Longest  = 5 * time.Second
)

// Allows says, for an error, which durations the prefetch of a call can have.
const Allows = "want 0, or whole milliseconds from 100ms to 5s"

// Allowed reports whether d can be the prefetch of a call, 0 included.
func Allowed(d time.Duration) bool {
	return d == 0 || d >= Shortest && d <= Longest && d%time.Millisecond == 0
}

// Barred returns why calls of a resource have no prefetch, as the end of a sentence that begins with "the
// resource", or "" if they may have one.
func Barred(spec *store.Spec) string {
	prepaid := func(k store.Kind) bool { return slices.ContainsFunc(k.Limits, bucket.Limit.Prepaid) }
	switch {
	case spec.Held != nil:
		return "has in_flight or on_crash: release, for which each call needs a write"
	case slices.ContainsFunc(spec.Kinds, prepaid):
		return "has window: never, and a process that is killed would lose credits for good"
	}
	return ""
}

// whole returns the source of a call that took all of cost from one block. before is the lease's earlier
// source; nil if its earlier acquires took nothing of blocks.
func whole(from *blocks.Block, cost []int64, before any) *source {
	cost = append([]int64(nil), cost...)
	return &source{cost: cost, draws: []blocks.Draw{{Block: from, Cost: cost}}, before: before}
}
