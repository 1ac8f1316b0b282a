package program_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
)

// TestGiveUp: a command gives up once it has waited 8 s for a server, and not while it waits for none.
func TestGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := program.Env{Stderr: &printed{}, Now: time.Now}
		ctx, cancel := program.WithTimeouts(t.Context(), program.DefaultTimeouts(), env)
		defer cancel()
		s := program.NewServer("x", errors.New)
		bounded, end := context.WithTimeout(ctx, time.Second)
		defer end()
		asked, _, done := s.Ask(bounded)
		<-asked.Done()
		done(false)
		<-time.After(20 * time.Second) // a pause, or work elsewhere
		if ctx.Err() != nil {
			t.Fatalf("%v, although it waited for nothing", ctx.Err())
		}
		began := time.Now()
		for ctx.Err() == nil { // each attempt is bounded by 5 s
			asked, _, done := s.Ask(ctx)
			<-asked.Done()
			done(false)
		}
		if took := time.Since(began); took != 7*time.Second || program.GaveUp(ctx) == nil {
			t.Errorf("%v after %v, want to give up after 7s more", program.GaveUp(ctx), took)
		}
	})
}

// printed is what a command has printed. Goroutines of timers write to it.
type printed struct {
	mu   sync.Mutex
	text string
}

func (n *printed) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.text += string(p)
	return len(p), nil
}

// take returns what was printed since it was last called.
func (n *printed) take() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	text := n.text
	n.text = ""
	return text
}

// asked is a request that the server does not answer, for as long as the command waits, or d.
func asked(ctx context.Context, s *program.Server, d time.Duration) {
	bounded, _, done := s.Ask(ctx)
	select {
	case <-bounded.Done():
	case <-time.After(d):
	}
	done(false)
}

// TestSilentAgain: a server that answers and then hangs is waited for as one that never answered: a note
// after 2 s, and an end after 8 s. A patient command does not give up, and notes each silence.
func TestSilentAgain(t *testing.T) {
	for _, patient := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var notes printed
			ctx, cancel := program.WithTimeouts(t.Context(), program.DefaultTimeouts(),
				program.Env{Stderr: &notes, Now: time.Now})
			defer cancel()
			asking := ctx
			if patient {
				asking = program.Patient(ctx)
			}
			s := program.NewServer("x", errors.New)
			for range 2 {
				_, _, done := s.Ask(asking)
				<-time.After(time.Second)
				done(true)
				notes.take()
				began := time.Now()
				asked(asking, s, 2*time.Second-time.Nanosecond)
				if noted := notes.take(); noted != "" {
					t.Errorf("noted %q before 2s", noted)
				}
				for ctx.Err() == nil && time.Since(began) < time.Minute { // as a retrier does
					asked(asking, s, time.Minute)
				}
				took := time.Since(began)
				if noted := notes.take(); noted != "waiting for x\n" || patient == (took == 8*time.Second) {
					t.Errorf("patient %v: noted %q, ended after %v", patient, noted, took)
				}
				if !patient {
					return
				}
			}
		})
	}
}

// TestAttempts: each attempt is bounded by 5 s without a byte, and a part of an answer counts as one.
func TestAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notes printed
		ctx, cancel := program.WithTimeouts(t.Context(), program.DefaultTimeouts(),
			program.Env{Stderr: &notes, Now: time.Now})
		defer cancel()
		s := program.NewServer("x", errors.New)
		bounded, alive, done := s.Ask(ctx)
		for range 10 {
			<-time.After(2*time.Second - time.Nanosecond)
			alive()
		}
		if noted := notes.take(); bounded.Err() != nil || noted != "" {
			t.Errorf("%v, noted %q, although parts of an answer came", context.Cause(bounded), noted)
		}
		began := time.Now()
		<-bounded.Done()
		cause := context.Cause(bounded)
		if took := time.Since(began); took != 5*time.Second || !errors.Is(cause, program.ErrSilent) {
			t.Errorf("%v after %v, want ErrSilent after 5s", cause, took)
		}
		done(false)
	})
}
