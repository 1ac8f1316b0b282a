// Package lookups remembers what stores read, and reports the writes of overrides.
package lookups

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/sluice-go/sluice/runtime/internal/background"
	"github.com/sluice-go/sluice/runtime/store"
)

// TTL is how long what was read may be used.
type TTL time.Duration

// Fresh reports whether what was read at an instant, in ms, may still be used. After a clock was set back,
// nothing is fresh for longer.
func (t TTL) Fresh(read, now int64) bool {
	age := now - read
	return age >= 0 && age < time.Duration(t).Milliseconds()
}

// GraceRead returns the read time to record when a refresh is due but failed. With it the old value is fresh
// for one more second, in which no call waits for another attempt.
func (t TTL) GraceRead(now int64) int64 {
	return now - (time.Duration(t) - min(time.Duration(t), time.Second)).Milliseconds()
}

// Cache remembers what a store has under keys, also that it has nothing, for a bounded number of keys. It is
// safe for concurrent use.
type Cache[V any] struct {
	env        *store.Env
	read       func(ctx context.Context, key string) (V, error)
	subject    func(key string) string // of a look-up, for errors
	enter      func(key string) error
	background *background.Tasks
	answers    *lru.Cache[string, answer[V]]
	turns      chan struct{} // holds one for each read under way

	mu      sync.Mutex
	changes int                    // that this process made
	reads   map[string]*reading[V] // by key: those that a call may join
}

// reading is one read of a key, for all calls that wait for it.
type reading[V any] struct {
	done      chan struct{} // closed once answer or err is set
	answer    answer[V]
	err       error
	abandoned chan struct{} // closed if all calls leave before it is sent; then it never is

	calls int  // that wait for it; the mu of the Cache guards calls and sent
	sent  bool // it has a turn
}

// answer is what was read of a key.
type answer[V any] struct {
	value V
	read  int64 // when, ms
}

// DefaultTurns is how many reads may be under way at once, where no option says so.
const DefaultTurns = 64

// Options of a Cache.
type Options struct {
	Size, Turns int // how many keys are remembered, and how many are read at a time
	// Tasks counts reads: one may outlive the calls that wait for it.
	Tasks   *background.Tasks
	Subject func(key string) string // of a look-up, for errors
	// Enter is called before each read, under a lock: an error refuses the read. It is nil if none is refused.
	Enter func(key string) error
}

// NewCache returns a Cache of what read returns for a key.
func NewCache[V any](
	env *store.Env, o Options, read func(ctx context.Context, key string) (V, error),
) (*Cache[V], error) {
	answers, err := lru.New[string, answer[V]](o.Size)
	if err != nil {
		return nil, err
	}
	return &Cache[V]{
		env: env, read: read, subject: o.Subject, enter: o.Enter, background: o.Tasks, answers: answers,
		turns: make(chan struct{}, o.Turns), reads: map[string]*reading[V]{},
	}, nil
}

// Len returns how many keys are remembered.
func (c *Cache[V]) Len() int { return c.answers.Len() }

// Invalidate makes the next look-up of key read. The result of a read under way, which may precede the
// change, is not remembered.
func (c *Cache[V]) Invalidate(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	c.answers.Remove(key)
	delete(c.reads, key)
}

// changed counts the changes.
func (c *Cache[V]) changed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changes
}

// remember keeps a, unless something was changed since changed returned changes.
func (c *Cache[V]) remember(key string, a answer[V], changes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes == changes {
		c.answers.Add(key, a)
	}
}

func (c *Cache[V]) now() int64 { return c.env.Clock.Now().UnixMilli() }

// Get returns what is stored under key. Calls during a read of the same key wait for that read, which
// continues when the first of them gives up. If the store does not answer, an answer that is due to be read
// again stays in use. It rarely changes, and without it even the failure policy could not decide.
//
// A read waits for a turn: keys may be invented, and each is read. Without calls that wait for it, it gives
// up its place. A call that leaves before the read is sent fails with store.ErrNotSent.
func (c *Cache[V]) Get(ctx context.Context, key string) (value V, err error) {
	old, known := c.answers.Get(key)
	if known && TTL(c.env.CacheTTL).Fresh(old.read, c.now()) {
		return old.value, nil
	}
	return c.wait(ctx, key, old, known)
}

// Refresh is Get of an answer that is due to be read again.
func (c *Cache[V]) Refresh(ctx context.Context, key string) (value V, err error) {
	old, known := c.answers.Get(key)
	return c.wait(ctx, key, old, known)
}

// wait waits for a read of key. If known, old is in use until there is a newer answer.
func (c *Cache[V]) wait(ctx context.Context, key string, old answer[V], known bool) (value V, err error) {
	r, err := c.join(ctx, key)
	if err != nil {
		return value, err
	}
	select {
	case <-r.done:
		return r.answer.value, r.err
	case <-ctx.Done():
	}
	sent, what := c.leave(key, r), c.subject(key)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return value, fmt.Errorf("sluice: %s: %w", what, ctx.Err())
	case known:
		return old.value, nil
	case !sent:
		err = fmt.Errorf("%w: %w", store.ErrNotSent, ctx.Err())
		return value, &store.UnavailableError{Resource: what, Err: err}
	}
	return value, &store.UnavailableError{Resource: what, Attempts: 1, Err: ctx.Err()}
}

// join returns the read of key that calls wait for, a new one if there is none. The caller leaves it,
// unless it is done. The error is that of Enter.
func (c *Cache[V]) join(ctx context.Context, key string) (*reading[V], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.reads[key]
	if r == nil {
		if c.enter != nil {
			if err := c.enter(key); err != nil {
				return nil, err
			}
		}
		r = &reading[V]{done: make(chan struct{}), abandoned: make(chan struct{})}
		c.reads[key] = r
		ctx = context.WithoutCancel(ctx)
		c.background.Start(func() { c.serve(ctx, key, r) })
	}
	r.calls++
	return r, nil
}

// leave ends a call's wait for r, and reports whether r was sent.
func (c *Cache[V]) leave(key string, r *reading[V]) (sent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.calls--; r.calls == 0 && !r.sent {
		close(r.abandoned)
		c.dropReading(key, r)
	}
	return r.sent
}

// dropReading lets no further call join r. The caller holds mu.
func (c *Cache[V]) dropReading(key string, r *reading[V]) {
	if c.reads[key] == r { // else it has changed since r began
		delete(c.reads, key)
	}
}

// serve reads key for r once there is a turn, unless all calls have left. If reads that nobody answers have
// all turns for the SettleTimeout, r fails.
func (c *Cache[V]) serve(ctx context.Context, key string, r *reading[V]) {
	defer close(r.done)
	bound, cancel := context.WithTimeout(ctx, c.env.SettleTimeout)
	defer cancel()
	select {
	case c.turns <- struct{}{}:
		defer func() { <-c.turns }()
	case <-r.abandoned:
		return
	case <-bound.Done():
		err := fmt.Errorf("%w: %w", store.ErrNotSent, bound.Err())
		r.err = &store.UnavailableError{Resource: c.subject(key), Err: err}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.dropReading(key, r)
		return
	}
	c.mu.Lock()
	r.sent = r.calls > 0
	c.mu.Unlock()
	if !r.sent {
		return
	}
	r.answer, r.err = c.lookUp(ctx, key)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropReading(key, r)
}

// lookUp reads key for all calls that wait for it, and remembers the answer.
func (c *Cache[V]) lookUp(ctx context.Context, key string) (answer[V], error) {
	ctx, cancel := context.WithTimeout(ctx, c.env.SettleTimeout)
	defer cancel()
	changes, now := c.changed(), c.now()
	a := answer[V]{read: now}
	var err error
	if a.value, err = c.read(ctx, key); err != nil {
		old, known := c.answers.Peek(key)
		if _, unavailable := errors.AsType[*store.UnavailableError](err); !unavailable || !known {
			return answer[V]{}, err
		}
		a = old
		a.read = TTL(c.env.CacheTTL).GraceRead(now)
	}
	c.remember(key, a, changes)
	return a, nil
}
