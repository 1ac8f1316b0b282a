package outage_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime/internal/breaker"
	"github.com/sluice-go/sluice/runtime/internal/outage"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestBreakerTurns: an observer that is called late gets each turn once, or none if the breaker has turned
// back. Otherwise its count of open breakers would not come back to 0.
func TestBreakerTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("connection refused")
		start := time.Now()
		b := breaker.New(func() time.Duration { return time.Since(start) })
		f := outage.New(&store.Env{Clock: store.SystemClock()}, b, nil)
		turn := func(n int, says error) {
			for range n {
				pass, ok := b.Enter()
				if !ok {
					t.Fatal("it is open")
				}
				b.Leave(pass, says == nil, says)
			}
		}
		reported := func(want string) {
			t.Helper()
			if got := f.Report(); got != want {
				t.Errorf("reported %q, want %q", got, want)
			}
		}
		turn(5, down)
		<-time.After(time.Second + 1) // on the bubble's clock
		turn(1, nil)
		reported("") // opened and closed
		turn(5, down)
		reported("open: true")
		reported("")
		<-time.After(time.Second + 1)
		turn(1, nil)
		turn(5, down)
		reported("") // closed and opened
		<-time.After(time.Second + 1)
		turn(1, nil)
		reported("open: false")
	})
}
