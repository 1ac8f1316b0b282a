package httplimit

import (
	"context"
	"errors"
	"net"

	"github.com/sluice-go/sluice/runtime"
)

// heldConn is a hijacked connection, whose end ends a lease.
type heldConn struct {
	net.Conn

	keep func()
}

// hold returns conn with the lease of its request: closing it keeps the lease, and a loss of the lease closes
// it.
func hold[C any](ctx context.Context, conn net.Conn, lease *runtime.Lease[C]) net.Conn {
	ctx = context.WithoutCancel(ctx)
	held := lease.Context(ctx)
	stop := context.AfterFunc(held, func() {
		if errors.Is(context.Cause(held), runtime.ErrLeaseLost) {
			_ = conn.Close()
		}
	})
	return &heldConn{conn, func() {
		stop()
		lease.Keep(ctx)
	}}
}

// Close implements net.Conn.
func (c *heldConn) Close() error {
	err := c.Conn.Close()
	c.keep()
	return err
}

// NetConn returns the connection itself, as that of crypto/tls does.
func (c *heldConn) NetConn() net.Conn { return c.Conn }
