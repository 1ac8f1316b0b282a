package runtime

import (
	"fmt"

	"github.com/sony/gobreaker/v2"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// Waiting returns how many buckets of l have waiters, those included above the one in whose line they stand.
func Waiting(l *Limiter) int {
	l.core.queues.mu.Lock()
	defer l.core.queues.mu.Unlock()
	return len(l.core.queues.by) + len(l.core.queues.below)
}

// LocalImage returns the bucket that stands in for the store's, nil if none does.
func LocalImage(l *Limiter, resource, entity string) *bucket.Image {
	locals := l.core.fallback.locals
	locals.mu.Lock()
	defer locals.mu.Unlock()
	if own, ok := locals.buckets.Peek(localKey{resource, entity}); ok {
		return own.image
	}
	return nil
}

// How a Breaker treats its gate.
const (
	Always   = iota // asks it for each call, and passes on each outcome
	AsItDoes        // does as a Limiter's does
	Deaf            // passes on no answer, which is wrong
)

// ErrNeutral is the end of a call that says nothing of the store.
var ErrNeutral = errNeutral

// Breaker is a Limiter's, without the Limiter.
type Breaker struct {
	*breaker
	how int
}

// NewBreaker returns one that treats its gate as how says.
func NewBreaker(how int) *Breaker { return &Breaker{newBreaker(), how} }

// Enter reports whether a call is let through, and if so how to say what it says of the store.
func (b *Breaker) Enter() (leave func(says error), ok bool) {
	if b.how == Always {
		done, err := b.gate.Allow()
		return done, err == nil
	}
	p, err := b.enter()
	return func(says error) {
		if says != nil || b.how != Deaf {
			b.leave(p, says)
		}
	}, err == nil
}

// Closed reports that the gate is, after how many failures in a row, and whether the breaker goes without it.
func (b *Breaker) Closed() (closed bool, failures uint32, calm bool) {
	state, counts := b.gate.State(), b.gate.Counts()
	return state == gobreaker.StateClosed, counts.ConsecutiveFailures, b.calm.Load() != nil
}

// Report returns the next report to the observer.
func (b *Breaker) Report() string {
	open, changed := b.unreported()
	return map[bool]string{true: fmt.Sprint("open: ", open)}[changed]
}
