// Package pipenet is a network that stays in the process, for servers and clients of net/http in a bubble of
// testing/synctest. Real sockets do not serve there: time stands still while a goroutine waits for one.
package pipenet

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// Listener is a net.Listener that Dial, and clients of Transport, connect to, whatever the address.
type Listener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// Listen returns a Listener. It need not be closed if no server does.
func Listen() *Listener { return &Listener{conns: make(chan net.Conn), done: make(chan struct{})} }

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. Connections stay.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr implements net.Listener.
func (*Listener) Addr() net.Addr { return addr{} }

// Dial connects to l, once it accepts.
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Transport returns a transport whose connections all lead to l. In a bubble its CloseIdleConnections is to
// be called at the end.
func (l *Listener) Transport() *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return l.Dial(ctx)
	}}
}

// addr is the address of every Listener.
type addr struct{}

func (addr) Network() string { return "pipe" }
func (addr) String() string  { return "pipe" }
