package program_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
)

// TestGiveUp: a command gives up once it has waited 8 s for a server, and not while it waits for none.
func TestGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := program.Env{Stderr: &bytes.Buffer{}, Now: time.Now}
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
