// Package contexts ends the contexts of a lease together.
package contexts

import (
	"context"
	"slices"
	"sync"
)

// Set is the contexts of a lease. It is not of the lease's record: each refers to the context that it is a
// copy of, which may have the lease among its values. It is safe for concurrent use.
type Set struct {
	mu    sync.Mutex
	open  []bound
	cause error // why they have ended; nil if they have not
	all   bool  // those that outlast the lease, too
}

// bound is one context: what ends it, and whether it outlasts its lease.
type bound struct {
	ctx      context.Context
	cancel   context.CancelCauseFunc
	outlasts bool
}

// Add returns a copy of ctx that ends with the others, at once if they have ended, and what ends it earlier.
// If it outlasts the lease, it ends only with all.
func (s *Set) Add(ctx context.Context, outlasts bool) (context.Context, context.CancelCauseFunc) {
	own, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	cause, all := s.cause, s.all
	if cause == nil {
		if len(s.open) == cap(s.open) { // it would grow
			s.open = slices.DeleteFunc(s.open, func(b bound) bool { return b.ctx.Err() != nil })
		}
		s.open = append(s.open, bound{own, cancel, outlasts})
	}
	s.mu.Unlock()
	if cause != nil && (all || !outlasts) {
		cancel(cause)
	}
	return own, cancel
}

// End ends the contexts: those that outlast the lease only if all. They have ended once it returns, also if
// another call of it began earlier.
func (s *Set) End(cause error, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := s.open
	if s.open = nil; s.cause == nil {
		s.cause, s.all = cause, all
	}
	for _, b := range open {
		if all || !b.outlasts {
			b.cancel(cause)
		}
	}
}

// Len returns how many contexts s keeps, to end them.
func (s *Set) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}
