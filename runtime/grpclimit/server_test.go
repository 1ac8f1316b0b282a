package grpclimit_test

import (
	"context"
	"log/slog"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/grpclimit"
	"github.com/sluice-go/sluice/runtime/limittest"
)

// service is what handlers a test has. UnaryCall answers without one.
type service struct {
	pb.UnimplementedTestServiceServer

	unary   func(context.Context) error
	replies func(grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error
	duplex  func(grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]) error
}

func (*service) EmptyCall(context.Context, *pb.Empty) (*pb.Empty, error) { return &pb.Empty{}, nil }

func (s *service) UnaryCall(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	if s.unary != nil {
		if err := s.unary(ctx); err != nil {
			return nil, err
		}
	}
	return &pb.SimpleResponse{}, nil
}

func (s *service) StreamingOutputCall(
	_ *pb.StreamingOutputCallRequest, stream grpc.ServerStreamingServer[pb.StreamingOutputCallResponse],
) error {
	return s.replies(stream)
}

func (s *service) FullDuplexCall(
	stream grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse],
) error {
	return s.duplex(stream)
}

// serve returns a client of a server with s, in the process, both of which end with the test.
func serve(t testing.TB, s *service, interceptors []grpc.ServerOption,
	opts ...grpc.DialOption) pb.TestServiceClient {
	t.Helper()
	pipes := bufconn.Listen(1 << 16)
	server := grpc.NewServer(interceptors...)
	pb.RegisterTestServiceServer(server, s)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(pipes) }()
	opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn,
			error) {
			return pipes.DialContext(ctx)
		}))
	conn, err := grpc.NewClient("passthrough:///gateway", opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return pb.NewTestServiceClient(conn)
}

// userOf is who calls: the client says it.
func userOf(ctx context.Context) limits.User {
	user := limits.User{ID: "1", Project: limits.Project{ID: "1"}}
	if ids := metadata.ValueFromIncomingContext(ctx, "user"); len(ids) > 0 {
		user.ID = ids[0]
	}
	return user
}

// ask charges for what a unary request says; empty ones cost nothing.
func ask(ctx context.Context, req any, _ *grpc.UnaryServerInfo) (limits.GPT4Entity, limits.GPT4Cost, error) {
	if r, ok := req.(*pb.SimpleRequest); ok {
		return userOf(ctx), limits.GPT4Cost{TPM: int64(r.GetResponseSize())}, nil
	}
	return nil, limits.GPT4Cost{}, grpclimit.ErrUnlimited
}

// askStream charges 700 for a stream.
func askStream(ctx context.Context, _ *grpc.StreamServerInfo) (limits.GPT4Entity, limits.GPT4Cost, error) {
	return userOf(ctx), limits.GPT4Cost{TPM: 700}, nil
}

// askMessage charges for what a message says; messages that say nothing cost nothing.
func askMessage(ctx context.Context, msg any, _ *grpc.StreamServerInfo) (limits.GPT4Entity, limits.GPT4Cost,
	error) {
	for _, p := range msg.(*pb.StreamingOutputCallRequest).GetResponseParameters() {
		return userOf(ctx), limits.GPT4Cost{TPM: int64(p.GetSize())}, nil
	}
	return nil, limits.GPT4Cost{}, grpclimit.ErrUnlimited
}

func unary(gpt4 limits.GPT4Acquirer, opts ...grpclimit.Option) []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(recovered, grpclimit.Unary(gpt4, ask, opts...))}
}

func stream(gpt4 limits.GPT4Acquirer, opts ...grpclimit.Option) []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainStreamInterceptor(recoveredStream,
		grpclimit.Stream(gpt4, askStream, opts...))}
}

func messages(gpt4 limits.GPT4Acquirer, opts ...grpclimit.Option) []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainStreamInterceptor(recoveredStream,
		grpclimit.StreamMessages(gpt4, askMessage, opts...))}
}

// message is one that costs so many tokens, or with 0 nothing.
func message(tpm int32) *pb.StreamingOutputCallRequest {
	if tpm == 0 {
		return &pb.StreamingOutputCallRequest{}
	}
	return &pb.StreamingOutputCallRequest{ResponseParameters: []*pb.ResponseParameters{{Size: tpm}}}
}

// request is one that costs so many tokens.
func request(tpm int32) *pb.SimpleRequest { return &pb.SimpleRequest{ResponseSize: tpm} }

// open returns a limiter on store.
func open(t testing.TB, store runtime.Store) *limits.Limiter {
	t.Helper()
	lim, err := limits.New(store, runtime.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

func newFake() *limittest.Fake[limits.GPT4Entity, limits.GPT4Cost] {
	return limittest.NewFake((*limits.GPT4Resource)(nil))
}

type replies = grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]

func lease(ctx context.Context) *limits.GPT4Lease { return grpclimit.Lease[limits.GPT4Cost](ctx) }

// interceptors are a server's.
type interceptors struct {
	unary  grpc.UnaryServerInterceptor
	stream grpc.StreamServerInterceptor
}

// failingAsk limits all methods, and streams that go both ways by message; an err is ask's.
func failingAsk(gpt4 limits.GPT4Acquirer, err error) interceptors {
	whole := grpclimit.Stream(gpt4, func(ctx context.Context, i *grpc.StreamServerInfo) (limits.GPT4Entity,
		limits.GPT4Cost, error) {
		user, cost, _ := askStream(ctx, i)
		return user, cost, err
	})
	each := grpclimit.StreamMessages(gpt4, func(
		ctx context.Context, msg any, i *grpc.StreamServerInfo,
	) (limits.GPT4Entity, limits.GPT4Cost, error) {
		user, cost, _ := askMessage(ctx, msg, i)
		return user, cost, err
	})
	return interceptors{
		unary: grpclimit.Unary(gpt4, func(
			ctx context.Context, req any, i *grpc.UnaryServerInfo,
		) (limits.GPT4Entity, limits.GPT4Cost, error) {
			user, cost, _ := ask(ctx, req, i)
			return user, cost, err
		}),
		stream: func(srv any, s grpc.ServerStream, i *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			if i.IsClientStream {
				return each(srv, s, i, handler)
			}
			return whole(srv, s, i, handler)
		},
	}
}

// noting are interceptors that note with what errors calls end.
func noting(errs *[]error) (grpc.UnaryServerInterceptor, grpc.StreamServerInterceptor) {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			reply, err := handler(ctx, req)
			*errs = append(*errs, err)
			return reply, err
		}, func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			err := handler(srv, s)
			*errs = append(*errs, err)
			return err
		}
}
