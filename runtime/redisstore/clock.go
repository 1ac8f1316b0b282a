package redisstore

import "time"

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
