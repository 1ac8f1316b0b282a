package envoy

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/sluice-go/sluice/serve/internal/tokens"
)

// Bounds of connections. They hold off clients that are slow, or ask for too much at once.
const (
	mostStreams = 1_000    // of a connection
	mostHeader  = 16 << 10 // bytes
	handshake   = 5 * time.Second
	slowest     = 10 * time.Second // in which a request arrives, and is answered
	idleConn    = 10 * time.Minute
	deadConn    = time.Minute     // a connection that was silent for so long is pinged
	leastPing   = 5 * time.Second // between two pings of a client; gRPC's own 5 minutes drop an Envoy that pings
)

// Server serves a Service by gRPC, beside gRPC's health service.
type Server struct {
	grpc   *grpc.Server
	health *health.Server
}

// NewServer returns a Server, with TLS unless secure is nil. valid returns the tokens that clients may send;
// if there are none, requests need no token.
func NewServer(s *Service, secure *tls.Config, valid func() []string) *Server {
	opts := []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec()), grpc.MaxRecvMsgSize(mostMessage),
		grpc.MaxConcurrentStreams(mostStreams), grpc.MaxHeaderListSize(mostHeader),
		grpc.ConnectionTimeout(handshake),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleConn, Time: deadConn}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: leastPing, PermitWithoutStream: true}),
		grpc.InTapHandle(admit(valid)), grpc.ChainUnaryInterceptor(s.recovered),
	}
	if s.Trace != nil {
		opts = append(opts, grpc.ChainUnaryInterceptor(s.Trace))
	}
	if secure != nil {
		secure = secure.Clone()
		secure.NextProtos = []string{"h2"}
		opts = append(opts, grpc.Creds(credentials.NewTLS(secure)))
	}
	served := &Server{grpc: grpc.NewServer(opts...), health: health.NewServer()}
	ratelimit.RegisterRateLimitServiceServer(served.grpc, s)
	healthpb.RegisterHealthServer(served.grpc, served.health)
	context.AfterFunc(s.Draining, served.health.Shutdown)
	return served
}

// admit refuses streams without a valid token, health checks aside, before anything of a message is read. A
// stream ends with slowest, or a client could keep messages in memory that it never ends. Only watching the
// health may take longer.
func admit(valid func() []string) tap.ServerInHandle {
	return func(ctx context.Context, stream *tap.Info) (context.Context, error) {
		header := ""
		if values := stream.Header.Get("authorization"); len(values) == 1 {
			header = values[0]
		}
		_, ok := tokens.Caller(valid(), header)
		if !ok && stream.FullMethodName != healthpb.Health_Check_FullMethodName {
			return ctx, status.Error(codes.Unauthenticated,
				"the request has no valid token: send it as `authorization: Bearer TOKEN`")
		}
		if stream.FullMethodName == healthpb.Health_Watch_FullMethodName {
			return ctx, nil
		}
		bounded, cancel := context.WithTimeout(ctx, slowest)
		context.AfterFunc(bounded, cancel) // the stream's own end ends it, too
		return bounded, nil
	}
}

// recovered is next whose panic, a mistake in this program, fails its call alone: gRPC would end the process,
// with all leases. The log has the places in the code, and not the panic's text, which may have a client's.
func (s *Service) recovered(
	ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler,
) (answer any, err error) {
	defer func() {
		if recover() != nil {
			s.Logger.LogAttrs(ctx, slog.LevelError, "a request of Envoy has panicked: report it",
				slog.String("stack", string(debug.Stack())))
			answer, err = nil, errInternal
		}
	}()
	return next(ctx, request)
}

// Serve answers the connections of l until End. It fails if l does.
func (s *Server) Serve(l net.Listener) error {
	if err := s.grpc.Serve(l); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// End waits until no request is under way or ctx ends, and ends connections.
func (s *Server) End(ctx context.Context) {
	defer context.AfterFunc(ctx, s.grpc.Stop)()
	s.grpc.GracefulStop()
}
