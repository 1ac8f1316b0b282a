package redisstore

import (
	"context"
	"sync"
)

// tasks are goroutines that somebody waits for. Unlike a sync.WaitGroup's, they may start while somebody waits: a service
// that shuts down closes its Limiter while its last calls still end.
type tasks struct {
	mu      sync.Mutex
	running int
	idle    chan struct{} // closed when none is running; nil if none ever was
}

func (t *tasks) start(f func()) {
	t.begin()
	go func() {
		defer t.end()
		f()
	}()
}

func (t *tasks) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running == 0 {
		t.idle = make(chan struct{})
	}
	t.running++
}

func (t *tasks) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running--; t.running == 0 {
		close(t.idle)
	}
}

// wait returns when no task is running, or with ctx's error.
func (t *tasks) wait(ctx context.Context) error {
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
