package dynamo

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/sluice-go/sluice/runtime"
)

// lookupTries is how often a look-up is tried: an acquire waits for it.
const lookupTries = 3

// recent remembers what entity items say, that there is none too: at most so many as it was made for. It is safe for
// concurrent use.
type recent struct {
	answers *lru.Cache[string, memberRead]
	reads   singleflight.Group // by entity

	mu      sync.Mutex
	changes int // that this session made
}

// memberRead is what was read of an entity.
type memberRead struct {
	member runtime.Member
	found  bool
	read   int64 // when, ms
}

func newRecent(size int) (*recent, error) {
	answers, err := lru.New[string, memberRead](size)
	if err != nil {
		return nil, err
	}
	return &recent{answers: answers}, nil
}

// forget makes the next look-up of entity read. A read under way, which may have come before the change, is remembered by
// nobody.
func (r *recent) forget(entity string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes++
	r.answers.Remove(entity)
	r.reads.Forget(entity)
}

// changed counts the changes.
func (r *recent) changed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changes
}

// remember keeps a, unless something was changed since changed returned changes.
func (r *recent) remember(entity string, a memberRead, changes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changes == changes {
		r.answers.Add(entity, a)
	}
}

// Member implements runtime.Session. Who asks while the same entity is being read waits for that read, which goes on when
// the first of them gives up. An answer that is due to be read again goes on serving where the table does not answer: who
// an entity's parents are rarely changes, and a call that does not know them could not even be decided by its policy.
func (s *session) Member(ctx context.Context, entity string) (m runtime.Member, found bool, err error) {
	old, known := s.recent.answers.Get(entity)
	if known && s.fresh(old.read, s.now()) {
		return old.member, old.found, nil
	}
	reading := s.recent.reads.DoChan(entity, func() (any, error) { return s.lookUp(ctx, entity) })
	select {
	case r := <-reading:
		if r.Err != nil {
			return runtime.Member{}, false, r.Err
		}
		a := r.Val.(memberRead)
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
func (s *session) lookUp(ctx context.Context, entity string) (memberRead, error) {
	s.background.begin()
	defer s.background.end()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.env.SettleTimeout)
	defer cancel()
	changes := s.recent.changed()
	now := s.now()
	a := memberRead{read: now}
	var err error
	if a.member, a.found, err = s.readMember(ctx, entity); err != nil {
		old, known := s.recent.answers.Peek(entity)
		if _, unavailable := errors.AsType[*runtime.UnavailableError](err); !unavailable || !known {
			return memberRead{}, err
		}
		a = old
		a.read = s.spared(now)
	}
	s.recent.remember(entity, a, changes)
	return a, nil
}

// readMember reads an entity's item.
func (s *session) readMember(ctx context.Context, entity string) (m runtime.Member, found bool, err error) {
	members, p := NewMembers(s.api, s.table), s.patience(lookupTries)
	p.budget = s.retries // an outage is not to be met by more reads than were asked for
	var out *dynamodb.GetItemOutput
	err = p.call(ctx, func() (err error) {
		began := s.env.Clock.Now()
		out, err = members.get(ctx, entity)
		event := runtime.StoreEvent{Path: "member", Outcome: "found", Took: s.env.Clock.Now().Sub(began)}
		switch {
		case err != nil:
			event.Outcome = "failed"
		case len(out.Item) == 0:
			event.Outcome = "missing"
		}
		if err == nil && out.ConsumedCapacity != nil {
			event.Read = aws.ToFloat64(out.ConsumedCapacity.CapacityUnits)
		}
		if f := s.env.Observer.Store; f != nil {
			f(event)
		}
		return err
	})
	if err != nil {
		return runtime.Member{}, false, err
	}
	return decodeMember(entity, out.Item)
}
