// Package lookups remembers what stores read of entities, and reports the writes of overrides.
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

// Read reads what is stored of an entity; found is false where that is nothing.
type Read func(ctx context.Context, entity string) (m store.Member, found bool, err error)

// Members remembers what a store has of entities, also that it has nothing, for a bounded number of entities.
// It is safe for concurrent use.
type Members struct {
	env        *store.Env
	read       Read
	background *background.Tasks
	answers    *lru.Cache[string, answer]
	turns      chan struct{} // holds one for each read under way

	mu      sync.Mutex
	changes int                 // that this process made
	reads   map[string]*reading // by entity: those that a call may join
}

// reading is one read of an entity, for all calls that wait for it.
type reading struct {
	done      chan struct{} // closed once answer or err is set
	answer    answer
	err       error
	abandoned chan struct{} // closed if all calls leave before it is sent; then it never is

	calls int  // that wait for it; the mu of Members guards calls and sent
	sent  bool // it has a turn
}

// answer is what was read of an entity.
type answer struct {
	member store.Member
	found  bool
	read   int64 // when, ms
}

// DefaultTurns is how many reads may be under way at once, where no option says so.
const DefaultTurns = 64

// New returns Members of at most size entities that read what they do not remember, turns entities at a time.
// A read may outlive the calls that wait for it; tasks counts it.
func New(size, turns int, env *store.Env, tasks *background.Tasks, read Read) (*Members, error) {
	answers, err := lru.New[string, answer](size)
	if err != nil {
		return nil, err
	}
	return &Members{
		env: env, read: read, background: tasks, answers: answers,
		turns: make(chan struct{}, turns), reads: map[string]*reading{},
	}, nil
}

// Len returns how many entities are remembered.
func (m *Members) Len() int { return m.answers.Len() }

// Invalidate makes the next look-up of entity read. The result of a read under way, which may precede the
// change, is not remembered.
func (m *Members) Invalidate(entity string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes++
	m.answers.Remove(entity)
	delete(m.reads, entity)
}

// changed counts the changes.
func (m *Members) changed() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changes
}

// remember keeps a, unless something was changed since changed returned changes.
func (m *Members) remember(entity string, a answer, changes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changes == changes {
		m.answers.Add(entity, a)
	}
}

func (m *Members) now() int64 { return m.env.Clock.Now().UnixMilli() }

// Member implements store.Session. Calls during a read of the same entity wait for that read, which continues
// when the first of them gives up. If the store does not answer, an answer that is due to be read again stays
// in use. Parents rarely change, and without them even the failure policy could not decide.
//
// A read waits for a turn: ids may be invented, and each is read. Without calls that wait for it, it gives up
// its place. A call that leaves before the read is sent fails with store.ErrNotSent.
func (m *Members) Member(ctx context.Context, entity string) (member store.Member, found bool, err error) {
	old, known := m.answers.Get(entity)
	if known && TTL(m.env.CacheTTL).Fresh(old.read, m.now()) {
		return old.member, old.found, nil
	}
	r := m.join(ctx, entity)
	select {
	case <-r.done:
		return r.answer.member, r.answer.found, r.err
	case <-ctx.Done():
	}
	sent := m.leave(entity, r)
	what := "look-up of " + store.Quote(entity)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return store.Member{}, false, fmt.Errorf("sluice: %s: %w", what, ctx.Err())
	case known:
		return old.member, old.found, nil
	case !sent:
		err = fmt.Errorf("%w: %w", store.ErrNotSent, ctx.Err())
		return store.Member{}, false, &store.UnavailableError{Resource: what, Err: err}
	}
	return store.Member{}, false, &store.UnavailableError{Resource: what, Attempts: 1, Err: ctx.Err()}
}

// join returns the read of entity that calls wait for, a new one if there is none. The caller leaves it,
// unless it is done.
func (m *Members) join(ctx context.Context, entity string) *reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.reads[entity]
	if r == nil {
		r = &reading{done: make(chan struct{}), abandoned: make(chan struct{})}
		m.reads[entity] = r
		ctx = context.WithoutCancel(ctx)
		m.background.Start(func() { m.serve(ctx, entity, r) })
	}
	r.calls++
	return r
}

// leave ends a call's wait for r, and reports whether r was sent.
func (m *Members) leave(entity string, r *reading) (sent bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.calls--; r.calls == 0 && !r.sent {
		close(r.abandoned)
		m.dropReading(entity, r)
	}
	return r.sent
}

// dropReading lets no further call join r. The caller holds mu.
func (m *Members) dropReading(entity string, r *reading) {
	if m.reads[entity] == r { // else the entity has changed since r began
		delete(m.reads, entity)
	}
}

// serve reads entity for r once there is a turn, unless all calls have left.
func (m *Members) serve(ctx context.Context, entity string, r *reading) {
	defer close(r.done)
	select {
	case m.turns <- struct{}{}:
		defer func() { <-m.turns }()
	case <-r.abandoned:
		return
	}
	m.mu.Lock()
	r.sent = r.calls > 0
	m.mu.Unlock()
	if !r.sent {
		return
	}
	r.answer, r.err = m.lookUp(ctx, entity)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dropReading(entity, r)
}

// lookUp reads an entity for all calls that wait for it, and remembers the answer.
func (m *Members) lookUp(ctx context.Context, entity string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, m.env.SettleTimeout)
	defer cancel()
	changes, now := m.changed(), m.now()
	a := answer{read: now}
	var err error
	if a.member, a.found, err = m.read(ctx, entity); err != nil {
		old, known := m.answers.Peek(entity)
		if _, unavailable := errors.AsType[*store.UnavailableError](err); !unavailable || !known {
			return answer{}, err
		}
		a = old
		a.read = TTL(m.env.CacheTTL).GraceRead(now)
	}
	m.remember(entity, a, changes)
	return a, nil
}
