package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// front is a gateway that listens, and what its clients need.
type front struct {
	server *http.Server
	ended  chan error
	url    string
	client *http.Client
	close  func() // connections that are idle
}

// network says how gateways are reached.
type network func(ctx context.Context) (net.Listener, *http.Transport, error)

// tcp returns the network that is there.
func tcp(address string) network {
	return func(ctx context.Context) (net.Listener, *http.Transport, error) {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot serve at %s: %w: pass another address, such as -serve :8080",
				address, err)
		}
		return l, &http.Transport{MaxIdleConnsPerHost: 100}, nil
	}
}

// open serves handler. The log has what the server says.
func open(ctx context.Context, on network, handler http.Handler, log *slog.Logger) (*front, error) {
	listener, transport, err := on(ctx)
	if err != nil {
		return nil, err
	}
	f := &front{
		server: &http.Server{
			Handler: handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute,
			ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelError),
		},
		ended: make(chan error, 1), url: "http://" + listener.Addr().String(),
		client: &http.Client{Transport: transport}, close: transport.CloseIdleConnections,
	}
	go func() { f.ended <- f.server.Serve(listener) }()
	return f, nil
}

// shut returns when the last handler has.
func (f *front) shut(ctx context.Context) error {
	f.close()
	err := f.server.Shutdown(ctx)
	if ended := <-f.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
