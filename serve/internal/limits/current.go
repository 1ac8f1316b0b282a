package limits

import (
	"context"
	"sync"
	"sync/atomic"
)

// Current has the Limits in force, and those before them whose leases are still open. It is safe for
// concurrent use.
type Current struct {
	mu      sync.RWMutex
	now     *Limits
	all     map[*Limits]struct{} // that are not closed
	closing sync.WaitGroup
	onError func(error)
}

// NewCurrent returns a Current. onError is called with the error of closing Limits that were replaced.
func NewCurrent(l *Limits, onError func(error)) *Current {
	c := &Current{all: map[*Limits]struct{}{}, onError: onError}
	c.Replace(l)
	return c
}

// use counts what needs Limits: requests, open leases, and the Current while they are in force.
type use struct {
	n    atomic.Int64
	idle func() // is called once n is 0
}

// Use returns the Limits in force, for one request, which calls Drop when it ends.
func (c *Current) Use() *Limits {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.now.Hold()
}

// Hold counts another user of l, which calls Drop. The caller is one itself.
func (l *Limits) Hold() *Limits {
	l.use.n.Add(1)
	return l
}

// Drop ends what Use or Hold began. Limits that are no longer in force are closed once nothing uses them.
func (l *Limits) Drop() {
	if l.use.n.Add(-1) == 0 {
		l.use.idle()
	}
}

// Replace puts l in force.
func (c *Current) Replace(l *Limits) {
	l.use.n.Store(1)
	l.use.idle = func() { c.retire(l) }
	c.mu.Lock()
	before := c.now
	c.now = l
	c.all[l] = struct{}{}
	c.mu.Unlock()
	if before != nil {
		before.Drop()
	}
}

// retire closes l, which nothing uses any more.
func (c *Current) retire(l *Limits) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, open := c.all[l]; !open {
		return // Close does it
	}
	delete(c.all, l)
	c.closing.Go(func() {
		if err := l.Close(context.Background()); err != nil { // each of its writes has a time-out
			c.onError(err)
		}
	})
}

// Close closes all Limits: leases that hold something end, and lazy settles are written. Calls afterwards are
// undefined. It fails with ctx's error if that ends first.
func (c *Current) Close(ctx context.Context) error {
	c.mu.Lock()
	all := c.all
	c.all = nil
	c.mu.Unlock()
	var failed error
	for l := range all {
		if err := l.Close(ctx); err != nil {
			failed = err
		}
	}
	c.closing.Wait()
	return failed
}
