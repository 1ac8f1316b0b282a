// Package lookups remembers what stores read of entities, and reports the writes of overrides.
package lookups

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

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
	reads      singleflight.Group // by entity

	mu      sync.Mutex
	changes int // that this process made
}

// answer is what was read of an entity.
type answer struct {
	member store.Member
	found  bool
	read   int64 // when, ms
}

// New returns Members that read what they do not remember. A read may outlive the calls that wait for it;
// tasks counts it.
func New(size int, env *store.Env, tasks *background.Tasks, read Read) (*Members, error) {
	answers, err := lru.New[string, answer](size)
	if err != nil {
		return nil, err
	}
	return &Members{env: env, read: read, background: tasks, answers: answers}, nil
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
	m.reads.Forget(entity)
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
func (m *Members) Member(ctx context.Context, entity string) (member store.Member, found bool, err error) {
	old, known := m.answers.Get(entity)
	if known && TTL(m.env.CacheTTL).Fresh(old.read, m.now()) {
		return old.member, old.found, nil
	}
	reading := m.reads.DoChan(entity, func() (any, error) { return m.lookUp(ctx, entity) })
	select {
	case r := <-reading:
		if r.Err != nil {
			return store.Member{}, false, r.Err
		}
		a := r.Val.(answer)
		return a.member, a.found, nil
	case <-ctx.Done():
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return store.Member{}, false, fmt.Errorf("sluice: look-up of %s: %w", store.Quote(entity), ctx.Err())
	case known:
		return old.member, old.found, nil
	}
	what := "look-up of " + store.Quote(entity)
	return store.Member{}, false, &store.UnavailableError{Resource: what, Attempts: 1, Err: ctx.Err()}
}

// lookUp reads an entity for all calls that wait for it, and remembers the answer.
func (m *Members) lookUp(ctx context.Context, entity string) (answer, error) {
	m.background.Begin()
	defer m.background.End()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.env.SettleTimeout)
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
