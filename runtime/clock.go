package runtime

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/runtime/store"
)

// left is the time until deadline, which is the system's, whatever the Clock.
func left(deadline time.Time) time.Duration { return time.Until(deadline) }

// deadline is d after now, which c has just read, by the system's clock.
func deadline(c Clock, now time.Time, d time.Duration) time.Time {
	if c != store.SystemClock() {
		now = time.Now()
	}
	return now.Add(d)
}

// pastDeadline reports that d from now does not lie before ctx's deadline.
func pastDeadline(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && d >= left(deadline)
}
