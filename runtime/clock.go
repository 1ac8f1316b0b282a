package runtime

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/runtime/store"
)

// left returns the time until deadline, by the system's clock, whatever the Clock.
func left(deadline time.Time) time.Duration { return time.Until(deadline) }

// deadline returns d after now, by the system's clock. c has just returned now.
func deadline(c Clock, now time.Time, d time.Duration) time.Time {
	if c != store.SystemClock() {
		now = time.Now()
	}
	return now.Add(d)
}

// stopwatch returns a function that returns the time since now, by the system's clock. It never goes back.
func stopwatch() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

// pastDeadline reports whether d from now is not before ctx's deadline.
func pastDeadline(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && d >= left(deadline)
}
