package conformance

import (
	"context"
	"slices"
	"sync"

	"github.com/sluice-go/sluice/runtime/store"
)

// spy is a store that takes note of what another one says.
type spy struct {
	store.Store

	mu       sync.Mutex
	asked    int          // calls to charge, settle or read
	last     []store.Part // of the newest call, as it was left
	reported func([]store.Part)
	extended chan struct{} // has an element for each write that extends holds, once it has ended
}

// Open implements store.Store.
func (s *spy) Open(env *store.Env, defs ...store.Definition) (store.Session, error) {
	session, err := s.Store.Open(withoutPauses(env), defs...)
	return &spied{session, s}, err
}

// withoutPauses returns env for a store, whose pauses take no time.
func withoutPauses(env *store.Env) *store.Env {
	own, ok := env.Clock.(*pauses)
	if !ok {
		return env
	}
	of := *env
	of.Clock = own.Clock
	return &of
}

// note takes note of call as it was left.
func (s *spy) note(call *store.Call) {
	parts := slices.Clone(call.Parts)
	for i := range parts {
		parts[i].Buckets = slices.Clone(parts[i].Buckets)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	s.last = parts
	if s.reported != nil {
		s.reported(parts)
	}
}

// calls returns how often the store was asked.
func (s *spy) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// newest returns how the newest call was left.
func (s *spy) newest() []store.Part {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// seen returns how the newest call was left, once.
func (s *spy) seen() []store.Part {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.last
	s.last = nil
	return last
}

// spied is a session of a spy.
type spied struct {
	store.Session
	spy *spy
}

// Acquire implements store.Session.
func (s *spied) Acquire(ctx context.Context, call *store.Call) error {
	err := s.Session.Acquire(ctx, call)
	s.spy.note(call)
	return err
}

// Settle implements store.Session. One that is left for later is the store's, and nobody looks at it.
func (s *spied) Settle(ctx context.Context, call *store.Call) error {
	lazy := call.Later != nil
	err := s.Session.Settle(ctx, call)
	if !lazy {
		s.spy.note(call)
	}
	if end, ok := ctx.Value(settled{}).(*error); ok {
		*end = err
	}
	return err
}

// settled is the key of a *error in a context: how the settle or release with it ended, which Release does
// not tell.
type settled struct{}

// Extend implements store.Session.
func (s *spied) Extend(ctx context.Context, call *store.Call) error {
	defer func() { s.spy.extended <- struct{}{} }()
	return s.Session.Extend(ctx, call)
}

// Peek implements store.Session.
func (s *spied) Peek(ctx context.Context, call *store.Call) error {
	err := s.Session.Peek(ctx, call)
	s.spy.note(call)
	return err
}
