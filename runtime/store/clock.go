package store

import "time"

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
