package store

import "time"

// Clock is time as the limiter sees it: it dates refills and paces waits. The default is the system's, which
// testing/synctest controls. Deadlines are those of contexts, and so always use the system's clock. A Clock
// is used concurrently.
type Clock interface {
	Now() time.Time
	After(time.Duration) <-chan time.Time
}

// SystemClock returns the default Clock. Programs beside a Limiter can pass it to what takes a Clock.
func SystemClock() Clock { return systemClock{} }

type systemClock struct{}

func (systemClock) Now() time.Time                         { return time.Now() }
func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
