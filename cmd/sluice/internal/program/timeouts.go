package program

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Timeouts are how long a command waits for a server that takes connections and does not answer.
type Timeouts struct {
	Attempt time.Duration // for each attempt, until its next byte
	Note    time.Duration // before the command says what it waits for
	End     time.Duration // before the command gives up, unless the server has answered before
}

// DefaultTimeouts suit people, and a server that starts slowly.
func DefaultTimeouts() Timeouts {
	return Timeouts{Attempt: 5 * time.Second, Note: 2 * time.Second, End: 8 * time.Second}
}

// ErrSilent is in the error of an attempt that had no answer in time.
var ErrSilent = errors.New("no answer in time")

// silence is the timeouts of a command, and how to use it.
type silence struct {
	Timeouts
	env Env
	end context.CancelCauseFunc
}

type silenceKey struct{}

// WithTimeouts returns a context for a command, which ends when the command gives up waiting: GaveUp then
// returns why.
func WithTimeouts(ctx context.Context, t Timeouts, env Env) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	ctx = context.WithValue(ctx, silenceKey{}, &silence{t, env, end})
	return ctx, func() { end(nil) }
}

// silentError is the error of a command that gave up waiting.
type silentError struct{ error }

// Unwrap returns the error.
func (e silentError) Unwrap() error { return e.error }

// GaveUp returns the error of a command that gave up waiting for a server, and else nil.
func GaveUp(ctx context.Context) error {
	if silent, ok := errors.AsType[silentError](context.Cause(ctx)); ok {
		return silent.error
	}
	return nil
}

// Server is a server that may not answer. The zero value is not usable: see NewServer. It is safe for
// concurrent use.
type Server struct {
	place  string
	silent func(why string) error

	answered atomic.Bool
	mu       sync.Mutex
	noted    bool
	asking   int           // requests under way
	since    time.Time     // since when there is one
	waited   time.Duration // for an answer, before that
	end      *time.Timer   // armed while a request is under way and the server has answered none
}

// NewServer returns a server at a place, as the note says it. silent returns the error of giving up: that the
// server does not answer, and what to do about it.
func NewServer(place string, silent func(why string) error) *Server {
	return &Server{place: place, silent: silent}
}

// Ask bounds one request of the command that ctx belongs to. The returned context ends if there is no answer
// in time: its cause is ErrSilent then. Alive starts that time anew. Done ends the request: answered tells
// whether the server has answered it, or at least refused it.
func (s *Server) Ask(ctx context.Context) (bounded context.Context, alive func(), done func(answered bool)) {
	by, ok := ctx.Value(silenceKey{}).(*silence)
	if !ok {
		return ctx, func() {}, func(bool) {}
	}
	bounded, cancel := context.WithCancelCause(ctx)
	attempt := time.AfterFunc(by.Attempt, func() { cancel(ErrSilent) })
	stop := s.arm(by)
	return bounded, func() { attempt.Reset(by.Attempt) }, func(answered bool) {
		attempt.Stop()
		stop()
		if answered {
			s.answer()
		}
		cancel(nil)
	}
}

// note says once what the command waits for.
func (s *Server) note(by *silence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.answered.Load() && !s.noted {
		s.noted = true
		by.env.Note("waiting for %s\n", s.place)
	}
}

// arm starts the times after which the command says what it waits for, and gives up. A server that has
// answered once is there: only attempts are bounded from then on. Pauses between requests do not count. It
// returns what ends the request.
func (s *Server) arm(by *silence) (stop func()) {
	if s.answered.Load() {
		return func() {}
	}
	note := time.AfterFunc(by.Note, func() { s.note(by) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asking++; s.asking == 1 {
		s.since = time.Now()
		s.end = time.AfterFunc(by.End-s.waited, func() {
			s.note(by)
			by.end(silentError{s.silent(fmt.Sprintf("nothing came within %v", by.End))})
		})
	}
	return func() {
		note.Stop()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.asking--; s.asking == 0 {
			s.end.Stop()
			s.waited += time.Since(s.since)
		}
	}
}

// answer keeps the command from giving up.
func (s *Server) answer() {
	if s.answered.Swap(true) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		s.end.Stop()
	}
}
