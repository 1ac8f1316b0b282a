package runtime

import (
	"context"
	"time"
)

// Clock is time as the limiter sees it: it dates refills and paces waits. The default is the system's, which
// testing/synctest controls. Deadlines are the contexts', and so always the system's. It is used concurrently.
type Clock interface {
	Now() time.Time
	After(time.Duration) <-chan time.Time
}

// SystemClock returns the default Clock, for what runs beside a Limiter and takes one.
func SystemClock() Clock { return systemClock{} }

type systemClock struct{}

func (systemClock) Now() time.Time                         { return time.Now() }
func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// left is the time until deadline, which is the system's, whatever the Clock.
func left(deadline time.Time) time.Duration { return time.Until(deadline) }

// deadline is d after now, which c has just read, by the system's clock.
func deadline(c Clock, now time.Time, d time.Duration) time.Time {
	if _, ok := c.(systemClock); !ok {
		now = time.Now()
	}
	return now.Add(d)
}

// beyond reports that d from now does not lie before ctx's deadline.
func beyond(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && d >= left(deadline)
}
