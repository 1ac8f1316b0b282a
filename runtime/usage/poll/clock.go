package poll

import (
	"context"
	"time"
)

// systemClock is the system's.
type systemClock struct{}

// Now implements runtime.Clock.
func (systemClock) Now() time.Time { return time.Now() } //nolint:forbidigo // this is where the clock that is injected comes from

// After implements runtime.Clock.
func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) } //nolint:forbidigo // as above

// wait waits for d and reports whether ctx lasted.
func (p *Poller) wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-p.Clock.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
