package memdynamo

import "time"

// Clock is time as the engine sees it: what expires, refills and lags does so on it, and latency is slept on
// it. It has the methods of sluice's runtime.Clock, so that one value serves both. It is used concurrently.
type Clock interface {
	Now() time.Time
	After(time.Duration) <-chan time.Time
}

// systemClock is the machine's clock, or that of the bubble of testing/synctest it is read in.
type systemClock struct{}

// Now returns the time.
func (systemClock) Now() time.Time { return time.Now() }

// After returns a channel that has the time once d has passed.
func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// later calls f on a goroutine of its own once d has passed. Until then there is none, unless the clock is a
// user's: a bubble of testing/synctest cannot end while it has one.
func later(clock Clock, d time.Duration, f func()) {
	switch _, system := clock.(systemClock); {
	case d <= 0:
		go f()
	case system:
		time.AfterFunc(d, f)
	default:
		go func() {
			<-clock.After(d)
			f()
		}()
	}
}
