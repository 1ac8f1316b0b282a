package redisstore

import "time"

// The time-outs of the line are deadlines, and those are the system's, whatever the Clock.

// left returns the time until a context's deadline.
func left(deadline time.Time) time.Duration {
	return time.Until(deadline) //nolint:forbidigo // as above
}

// after returns the instant that is d from now.
func after(d time.Duration) time.Time {
	return time.Now().Add(d) //nolint:forbidigo // as above
}

// alarm calls f on its own goroutine once d has passed.
func alarm(d time.Duration, f func()) {
	time.AfterFunc(d, f) //nolint:forbidigo // as above
}

// timerAt returns a timer that goes off at deadline.
func timerAt(deadline time.Time) *time.Timer {
	return time.NewTimer(left(deadline)) //nolint:forbidigo // as above
}
