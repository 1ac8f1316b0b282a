package runtime

import "github.com/sluice-go/sluice/runtime/bucket"

// Waiting returns how many buckets of l have waiters, those included above the one in whose line they stand.
func Waiting(l *Limiter) int {
	l.core.lines.mu.Lock()
	defer l.core.lines.mu.Unlock()
	return len(l.core.lines.by) + len(l.core.lines.below)
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
