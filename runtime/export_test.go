package runtime

import (
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/breaker"
	"github.com/sluice-go/sluice/runtime/internal/deadlines"
	"github.com/sluice-go/sluice/runtime/internal/outage"
)

// Waiting returns how many buckets the chains of l's waiters have together.
func Waiting(l *Limiter) int { return l.core.waiters.Buckets() }

// LocalImage returns the bucket that stands in for the store's, nil if none does.
func LocalImage(l *Limiter, resource, entity string) *bucket.Image {
	return l.core.fallback.Locals.Image(resource, entity)
}

// Unrecorded reports that l took nothing, neither from the store nor from a bucket in this process.
func Unrecorded[C any](l *Lease[C]) bool {
	_, ok := l.record.by.(outage.Unrecorded)
	return ok
}

// InvalidateAnswers breaks l: it has no note of any answer, as before Allow went by them.
func InvalidateAnswers(l *Limiter) { l.core.fallback.Breaker = breaker.New(deadlines.Stopwatch()) }

// OpenContexts returns how many contexts a lease keeps, to end them.
func OpenContexts[C any](l *Lease[C]) int { return l.bound.Len() }
