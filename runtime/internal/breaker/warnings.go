package breaker

import (
	"sync"
	"time"
)

// Warnings keeps an outage from flooding the log. Its zero value is ready. It is safe for concurrent use.
type Warnings struct {
	mu       sync.Mutex
	last     time.Time
	admitted int // since then
}

// warningPause is the least time between two warnings.
const warningPause = time.Second

// Due counts an admission. If it is time for the next warning, it returns how many there were since the last.
func (w *Warnings) Due(now time.Time) (admitted int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.admitted++
	// A clock that was set back silences nothing.
	if since := now.Sub(w.last); 0 <= since && since < warningPause {
		return 0, false
	}
	admitted, w.last, w.admitted = w.admitted, now, 0
	return admitted, true
}
