package redisstore

import (
	"sync/atomic"
	"time"
)

// serverClock is Redis's clock as far as a session knows it. The boundaries of windows are computed from it,
// and holds end by it.
type serverClock struct {
	ahead atomic.Int64 // of the session's, ms; 0 until a reply has shown that it is off
}

// tolerated is how far Redis's clock may be off the session's before it counts, in ms.
const tolerated = 1000

// at returns Redis's time at the session's now, both in ms.
func (c *serverClock) at(now int64) int64 { return now + c.ahead.Load() }

// set records that Redis's time was server at the session's now, both in ms.
func (c *serverClock) set(now, server int64) { c.ahead.Store(server - now) }

// bound takes in Redis's time in a reply to a request that began and ended at these instants of the
// session's, all in ms. It was between them, so it shows by how much at least the clock is off.
func (c *serverClock) bound(began, ended, server int64) {
	switch {
	case server-c.at(ended) > tolerated:
		c.set(ended, server)
	case c.at(began)-server > tolerated:
		c.set(began, server)
	}
}

// The queue's timeouts are compared with context deadlines, which use the system clock whatever the Clock is.

// until returns the time until deadline.
func until(deadline time.Time) time.Duration {
	return time.Until(deadline) //nolint:forbidigo // as above
}

// fromNow returns the instant d from now.
func fromNow(d time.Duration) time.Time {
	return time.Now().Add(d) //nolint:forbidigo // as above
}

// afterFunc calls f on its own goroutine once d has passed.
func afterFunc(d time.Duration, f func()) {
	time.AfterFunc(d, f) //nolint:forbidigo // as above
}

// timerAt returns a timer that fires at deadline.
func timerAt(deadline time.Time) *time.Timer {
	return time.NewTimer(until(deadline)) //nolint:forbidigo // as above
}
