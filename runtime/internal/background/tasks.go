// Package background keeps count of goroutines that somebody waits for.
package background

import (
	"context"
	"sync"
)

// Tasks are goroutines that somebody waits for. Unlike a sync.WaitGroup's, they may start while somebody
// waits: a service that shuts down closes its Limiter while its last calls still end. The zero Tasks are
// none.
type Tasks struct {
	Within *Tasks // nil, or those that these are counted among too

	mu      sync.Mutex
	running int
	idle    chan struct{} // closed when none is running; nil if none ever was
}

// Start has f run.
func (t *Tasks) Start(f func()) {
	t.Begin()
	go func() {
		defer t.End()
		f()
	}()
}

// Begin counts a task that somebody else runs, until End.
func (t *Tasks) Begin() {
	if t.Within != nil {
		t.Within.Begin()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running == 0 {
		t.idle = make(chan struct{})
	}
	t.running++
}

// End says that a task has ended.
func (t *Tasks) End() {
	if t.Within != nil {
		defer t.Within.End()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running--; t.running == 0 {
		close(t.idle)
	}
}

// Wait returns when no task is running, or with ctx's error.
func (t *Tasks) Wait(ctx context.Context) error {
	t.mu.Lock()
	running, idle := t.running, t.idle
	t.mu.Unlock()
	if running == 0 {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
