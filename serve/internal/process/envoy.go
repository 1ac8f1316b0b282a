package process

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/sluice-go/sluice/serve/internal/envoy"
	"github.com/sluice-go/sluice/serve/internal/server"
)

// envoyServer serves Envoy. nil is that of a process without --envoy.
type envoyServer struct {
	*envoy.Server

	listener net.Listener
	bound    net.Listener
}

// newEnvoyServer listens at --grpc. It returns nil without --envoy.
func newEnvoyServer(
	ctx context.Context, f *files, s *server.Server, secure *tls.Config,
) (*envoyServer, error) {
	if f.envoy == nil {
		return nil, nil
	}
	l, err := listen(ctx, "grpc", f.flags.GRPC)
	if err != nil {
		return nil, err
	}
	service := &envoy.Service{Config: envoy.Config{
		Current: f.envoy, Leases: s.Leases, LeaseLife: f.flags.LeaseMax, Logger: f.log,
		Count: f.telemetry.Descriptor, Draining: s.Draining(), Trace: f.telemetry.TraceRPC(),
	}}
	valid := func() []string { return *f.tokens.Load() }
	return &envoyServer{Server: envoy.NewServer(service, secure, valid), listener: l, bound: s.Bound(l)}, nil
}

// addr returns the address of --grpc, or nil.
func (e *envoyServer) addr() net.Addr {
	if e == nil {
		return nil
	}
	return e.listener.Addr()
}

// address is addr for the log: empty without --envoy.
func (e *envoyServer) address() string {
	if e == nil {
		return ""
	}
	return e.listener.Addr().String()
}

// serving returns what serves until end: nothing without --envoy.
func (e *envoyServer) serving() []func() error {
	if e == nil {
		return nil
	}
	return []func() error{func() error { return e.Serve(e.bound) }}
}

// end ends connections.
func (e *envoyServer) end(ctx context.Context) {
	if e != nil {
		e.End(ctx)
	}
}
