package runtime

// Waiting returns how many buckets of l have waiters.
func Waiting(l *Limiter) int {
	l.core.lines.mu.Lock()
	defer l.core.lines.mu.Unlock()
	return len(l.core.lines.by)
}
