package runtime

import (
	"fmt"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/breaker"
	"github.com/sluice-go/sluice/runtime/store"
)

// Waiting returns how many buckets the chains of l's waiters have together.
func Waiting(l *Limiter) int { return l.core.waiters.Buckets() }

// LocalImage returns the bucket that stands in for the store's, nil if none does.
func LocalImage(l *Limiter, resource, entity string) *bucket.Image {
	return l.core.fallback.locals.Image(resource, entity)
}

// Unrecorded reports that l took nothing, neither from the store nor from a bucket in this process.
func Unrecorded[C any](l *Lease[C]) bool {
	_, ok := l.by.(unrecorded)
	return ok
}

// InvalidateAnswers breaks l: it has no note of any answer, as before Allow went by them.
func InvalidateAnswers(l *Limiter) { l.core.fallback.breaker = breaker.New(stopwatch()) }

// Breaker is a Limiter's, with its reports.
type Breaker struct{ *fallback }

// NewBreaker returns a closed one.
func NewBreaker() Breaker { return Breaker{newFallback(store.SystemClock())} }

// Enter reports whether a call is let through, and if so how to record what it shows of the store: an answer
// (nil) or a failure.
func (b Breaker) Enter() (leave func(shows error), ok bool) {
	p, ok := b.breaker.Enter()
	return func(shows error) { b.breaker.Leave(p, shows == nil, shows) }, ok
}

// Report returns the next report to the observer.
func (b Breaker) Report() string {
	open, changed := b.unreported()
	return map[bool]string{true: fmt.Sprint("open: ", open)}[changed]
}
