package program

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestFinish: a call that is under way has three seconds after an interrupt, and none if the server is
// silent.
func TestFinish(t *testing.T) {
	for name, test := range map[string]struct {
		cause error
		lasts time.Duration
	}{
		"interrupted": {context.Canceled, 3 * time.Second},
		"gave up":     {silentError{errors.New("silent")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, interrupt := context.WithCancelCause(t.Context())
				on, end := Finish(ctx)
				defer end()
				synctest.Wait()
				if on.Err() != nil {
					t.Fatal("it ends before the interrupt")
				}
				interrupt(test.cause)
				began := time.Now()
				if <-on.Done(); time.Since(began) != test.lasts {
					t.Errorf("it lasts for %v, want %v", time.Since(began), test.lasts)
				}
			})
		})
	}
}
