package program

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Timeouts are how long a command waits for a server that takes connections and does not answer.
type Timeouts struct {
	Attempt time.Duration // for each attempt, until its next byte
	Note    time.Duration // before the command says what it waits for
	End     time.Duration // before the command gives up
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
	env     Env
	command context.Context //nolint:containedctx // for requests whose context does not end with it
	end     context.CancelCauseFunc
	patient bool
}

type silenceKey struct{}

// WithTimeouts returns a context for a command, which ends when the command gives up waiting: GaveUp then
// returns why.
func WithTimeouts(ctx context.Context, t Timeouts, env Env) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	ctx = context.WithValue(ctx, silenceKey{}, &silence{t, env, ctx, end, false})
	return ctx, func() { end(nil) }
}

// Patient returns a context for a command that goes on for long, and so waits for a server that has answered
// before: an outage ends. It still says what it waits for, and bounds each attempt.
func Patient(ctx context.Context) context.Context {
	by, ok := ctx.Value(silenceKey{}).(*silence)
	if !ok {
		return ctx
	}
	patient := *by
	patient.patient = true
	return context.WithValue(ctx, silenceKey{}, &patient)
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

	mu       sync.Mutex
	answered bool          // ever
	noted    bool          // since the last answer
	asking   int           // requests under way
	since    time.Time     // since when there is one, or that of the last answer if that is later
	waited   time.Duration // for an answer, before that
	watched  bool          // a timer is to call look
}

// NewServer returns a server at a place, as the note says it. silent returns the error of giving up: that the
// server does not answer, and what to do about it.
func NewServer(place string, silent func(why string) error) *Server {
	return &Server{place: place, silent: silent}
}

// Ask bounds one request of the command that ctx belongs to. The returned context ends if there is no answer
// in time: its cause is ErrSilent then. Alive, a part of an answer, starts that time anew. Done ends the
// request: answered tells whether the server has answered it, or at least refused it.
func (s *Server) Ask(ctx context.Context) (bounded context.Context, alive func(), done func(answered bool)) {
	by, ok := ctx.Value(silenceKey{}).(*silence)
	if !ok {
		return ctx, func() {}, func(bool) {}
	}
	bounded, cancel := context.WithCancelCause(ctx)
	ended := func() bool { return true }
	if ctx.Done() == nil { // the SDK gets credentials for several requests
		ended = context.AfterFunc(by.command, func() { cancel(context.Cause(by.command)) })
	}
	attempt := time.AfterFunc(by.Attempt, func() { cancel(ErrSilent) })
	s.begin(by)
	alive = func() {
		attempt.Reset(by.Attempt)
		s.answer()
	}
	return bounded, alive, func(answered bool) {
		ended()
		attempt.Stop()
		s.stop()
		if answered {
			s.answer()
		}
		cancel(nil)
	}
}

// begin counts a request. Pauses between requests are no waiting.
func (s *Server) begin(by *silence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asking++; s.asking > 1 {
		return
	}
	s.since = time.Now()
	if !s.watched {
		s.watch(by, s.waited)
	}
}

// watch has the server looked at when the command has to say what it waits for, or to give up, unless an
// answer comes first. silent is for how long none has come. The caller has locked s.
func (s *Server) watch(by *silence, silent time.Duration) {
	next := by.Note - silent
	if s.noted {
		next = by.End - silent
	}
	if next <= 0 { // it waits on
		next = by.Note
	}
	s.watched = true
	time.AfterFunc(next, func() {
		if s.look(by) {
			by.end(silentError{s.silent(fmt.Sprintf("nothing came within %v", by.End))})
		}
	})
}

// look says once what the command waits for, and reports whether the command gives up.
func (s *Server) look(by *silence) (ends bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched = false
	if s.asking == 0 {
		return false
	}
	silent := s.waited + time.Since(s.since)
	if silent >= by.Note && !s.noted {
		s.noted = true
		by.env.Note("waiting for %s\n", s.place)
	}
	if silent >= by.End && (!by.patient || !s.answered) {
		return true
	}
	s.watch(by, silent)
	return false
}

// stop ends a request.
func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asking--; s.asking == 0 {
		s.waited += time.Since(s.since)
	}
}

// answer starts the waiting for other requests anew.
func (s *Server) answer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered, s.noted, s.waited, s.since = true, false, 0, time.Now()
}
