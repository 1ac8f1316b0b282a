package main

import (
	"context"
	"errors"
	"io"
	"log"
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
		return l, &http.Transport{MaxIdleConnsPerHost: 100}, err
	}
}

// open serves handler.
func open(ctx context.Context, on network, handler http.Handler) (*front, error) {
	listener, transport, err := on(ctx)
	if err != nil {
		return nil, err
	}
	f := &front{
		server: &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ErrorLog: log.New(io.Discard, "", 0)},
		ended:  make(chan error, 1), url: "http://" + listener.Addr().String(),
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
