// Package deadlines computes with deadlines, which are the system's clock's, whatever the Clock of a Limiter.
package deadlines

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/runtime/store"
)

// Left returns the time until deadline.
func Left(deadline time.Time) time.Duration { return time.Until(deadline) }

// Of returns d after now. c has just returned now.
func Of(c store.Clock, now time.Time, d time.Duration) time.Time {
	if c != store.SystemClock() {
		now = time.Now()
	}
	return now.Add(d)
}

// Stopwatch returns a function that returns the time since now. It never goes back.
func Stopwatch() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

// Past reports whether d from now is not before ctx's deadline.
func Past(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && d >= Left(deadline)
}
