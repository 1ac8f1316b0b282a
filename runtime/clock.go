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

type systemClock struct{}

func (systemClock) Now() time.Time                         { return time.Now() }
func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// beyond reports that d from now does not lie before ctx's deadline, which is the system's, whatever the Clock.
func beyond(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && d >= time.Until(deadline)
}
