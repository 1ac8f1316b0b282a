package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/sluice-go/sluice/runtime"
)

// lookups remember what is stored of entities, that nothing is too: at most so many as they were made for. They are safe for
// concurrent use.
type lookups struct {
	answers *lru.Cache[string, lookup]
	reads   singleflight.Group // by entity

	mu      sync.Mutex
	changes int // that this session made
}

// lookup is what was read of an entity.
type lookup struct {
	member runtime.Member
	found  bool
	read   int64 // when, ms
}

func newLookups(size int) (*lookups, error) {
	answers, err := lru.New[string, lookup](size)
	if err != nil {
		return nil, err
	}
	return &lookups{answers: answers}, nil
}

// forget makes the next look-up of entity read. A read under way, which may have come before the change, is remembered by
// nobody.
func (l *lookups) forget(entity string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes++
	l.answers.Remove(entity)
	l.reads.Forget(entity)
}

// changed counts the changes.
func (l *lookups) changed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changes
}

// remember keeps a, unless something was changed since changed returned changes.
func (l *lookups) remember(entity string, a lookup, changes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changes == changes {
		l.answers.Add(entity, a)
	}
}

// Member implements runtime.Session. Who asks while the same entity is being read waits for that read, which goes on when
// the first of them gives up. An answer that is due to be read again goes on serving where Redis does not answer: who
// an entity's parents are rarely changes, and a call that does not know them could not even be decided by its policy.
func (s *session) Member(ctx context.Context, entity string) (m runtime.Member, found bool, err error) {
	old, known := s.lookups.answers.Get(entity)
	if known && s.fresh(old.read, s.now()) {
		return old.member, old.found, nil
	}
	reading := s.lookups.reads.DoChan(entity, func() (any, error) { return s.lookUp(ctx, entity) })
	select {
	case r := <-reading:
		if r.Err != nil {
			return runtime.Member{}, false, r.Err
		}
		a := r.Val.(lookup)
		return a.member, a.found, nil
	case <-ctx.Done():
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return runtime.Member{}, false, fmt.Errorf("sluice: look-up of %s: %w", entity, ctx.Err())
	case known:
		return old.member, old.found, nil
	}
	return runtime.Member{}, false, &runtime.UnavailableError{Resource: "look-up of " + entity, Err: ctx.Err()}
}

// lookUp reads an entity for all who wait for it, and remembers the answer.
func (s *session) lookUp(ctx context.Context, entity string) (lookup, error) {
	s.background.begin()
	defer s.background.end()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.env.SettleTimeout)
	defer cancel()
	changes, now := s.lookups.changed(), s.now()
	var hash map[string]string
	err := s.read(ctx, "member", "", func(ctx context.Context) (_ bool, err error) {
		hash, err = s.client.HGetAll(ctx, s.keys.entity(entity)).Result()
		return len(hash) > 0, err
	})
	a := lookup{read: now}
	if err == nil {
		a.member, a.found = decodeMember(entity, hash)
	} else {
		down, unavailable := errors.AsType[*runtime.UnavailableError](err)
		old, known := s.lookups.answers.Peek(entity)
		switch {
		case unavailable && known:
			a = old
			a.read = s.spared(now)
		case unavailable:
			down.Resource = "look-up of " + entity
			fallthrough
		default:
			return lookup{}, err
		}
	}
	s.lookups.remember(entity, a, changes)
	return a, nil
}
