package window

import "sync/atomic"

// Clock is Redis's clock as far as a session knows it. The boundaries of windows are computed from it, and
// holds end by it. The zero Clock is that of the session.
type Clock struct {
	off atomic.Int64 // how far it is ahead of the session's, ms; 0 until a reply has shown that it is off
}

// tolerated is how far Redis's clock may be off the session's before it counts, in ms.
const tolerated = 1000

// At returns Redis's time at the session's now, both in ms.
func (c *Clock) At(now int64) int64 { return now + c.off.Load() }

// Set records that Redis's time was server at the session's now, both in ms.
func (c *Clock) Set(now, server int64) { c.off.Store(server - now) }

// Bound takes in Redis's time in a reply to a request that began and ended at these instants of the
// session's, all in ms. It was between them, so it shows by how much at least the clock is off.
func (c *Clock) Bound(began, ended, server int64) {
	switch {
	case server-c.At(ended) > tolerated:
		c.Set(ended, server)
	case c.At(began)-server > tolerated:
		c.Set(began, server)
	}
}
