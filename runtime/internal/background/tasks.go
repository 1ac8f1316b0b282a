// Package background counts goroutines, so that a closing Limiter can wait for them.
package background

import (
	"context"
	"sync"
)

// Tasks counts goroutines that can be waited for. Unlike with a sync.WaitGroup, they may start during a Wait:
// a service that shuts down closes its Limiter while its last calls still end. The zero Tasks has none.
type Tasks struct {
	Within *Tasks // nil, or Tasks that count these too

	mu      sync.Mutex
	running int
	idle    chan struct{} // closed when none is running; nil if none ever was
}

// Start runs f on a goroutine of its own.
func (t *Tasks) Start(f func()) {
	t.Begin()
	go func() {
		defer t.End()
		f()
	}()
}

// Begin counts a task that the caller runs, until End.
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

// End ends a task.
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
