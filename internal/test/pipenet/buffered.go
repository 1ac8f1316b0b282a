package pipenet

import (
	"net"
	"slices"
	"sync"
	"time"
)

// buffered is a net.Conn whose writes do not wait for the other side.
type buffered struct {
	net.Conn

	writes chan []byte
	closed chan struct{}
	once   sync.Once
}

// Buffered returns conn, one end of a net.Pipe, with writes that do not wait for the other side to read, like
// those of a socket. A client that sends a pipeline of commands needs that: the server answers the first ones
// before it reads the rest. Deadlines are for reads alone.
func Buffered(conn net.Conn) net.Conn {
	b := &buffered{Conn: conn, writes: make(chan []byte, 1024), closed: make(chan struct{})}
	go b.send()
	return b
}

// send writes to the other side until b is closed.
func (b *buffered) send() {
	for {
		select {
		case p := <-b.writes:
			if _, err := b.Conn.Write(p); err != nil {
				return
			}
		case <-b.closed:
			return
		}
	}
}

// Write implements net.Conn.
func (b *buffered) Write(p []byte) (int, error) {
	select {
	case <-b.closed:
		return 0, net.ErrClosed
	default:
	}
	select {
	case b.writes <- slices.Clone(p):
		return len(p), nil
	case <-b.closed:
		return 0, net.ErrClosed
	}
}

// Close implements net.Conn. Data that is not written yet is lost.
func (b *buffered) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Conn.Close()
}

// SetDeadline implements net.Conn.
func (b *buffered) SetDeadline(t time.Time) error { return b.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn.
func (*buffered) SetWriteDeadline(time.Time) error { return nil }
