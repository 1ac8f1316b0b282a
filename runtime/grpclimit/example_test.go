package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/grpclimit"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// gateway is a service with one method that is limited.
type gateway struct {
	pb.UnimplementedTestServiceServer
}

func (*gateway) UnaryCall(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	_ = grpclimit.Lease[limits.GPT4Cost](ctx).Settle(ctx, limits.GPT4Cost{TPM: 7_500})
	return &pb.SimpleResponse{}, nil
}

// A handler that is charged what its request may use before it is called, and settles for what it has used.
func Example() {
	lim := newLimiter()
	limited := grpclimit.Unary(lim.GPT4, func(ctx context.Context, req any,
		_ *grpc.UnaryServerInfo) (limits.GPT4Entity, limits.GPT4Cost, error) {
		chat, ok := req.(*pb.SimpleRequest)
		if !ok {
			return nil, limits.GPT4Cost{}, grpclimit.ErrUnlimited // health checks, reflection
		}
		return userOf(ctx), limits.GPT4Cost{TPM: int64(chat.GetResponseSize())}, nil
	}, grpclimit.Metadata())
	server := grpc.NewServer(grpc.UnaryInterceptor(limited))
	pb.RegisterTestServiceServer(server, &gateway{})
	client, stop := connect(server)
	defer stop()

	for range 2 {
		var header metadata.MD
		_, err := client.UnaryCall(context.Background(), &pb.SimpleRequest{ResponseSize: 9_000},
			grpc.Header(&header))
		fmt.Println(status.Code(err), header["ratelimit-policy"])
		for _, detail := range status.Convert(err).Details() {
			switch d := detail.(type) {
			case *errdetails.QuotaFailure:
				fmt.Println(d.GetViolations()[0].GetSubject(), d.GetViolations()[0].GetQuotaId())
			case *errdetails.RetryInfo:
				fmt.Println("retry later:", d.GetRetryDelay().AsDuration() > 0)
			}
		}
	}
	// Output:
	// OK ["rpm";q=100;w=60, "tpm";q=10000;w=60]
	// ResourceExhausted []
	// gpt-4 tpm
	// retry later: true
}

// A handler that acquires by itself, as it knows the cost late, returns what Error makes of the error.
func ExampleError() {
	fake := limittest.NewFake((*limits.GPT4Resource)(nil))
	handler := func(ctx context.Context) (*pb.SimpleResponse, error) {
		lease, err := fake.Acquire(ctx, limits.User{ID: "123"}, limits.GPT4Cost{TPM: 500})
		if err != nil {
			return nil, grpclimit.Error(ctx, err)
		}
		defer lease.Release(ctx)
		return &pb.SimpleResponse{}, nil
	}
	fake.Fail(store.AddRefusal(nil, runtime.Refusal{
		Resource: limits.GPT4, Entity: "user-123", Limit: limits.GPT4TPM.String(), Requested: 500, Available: 20,
		RetryAfter: 2880 * time.Millisecond,
	}))
	_, err := handler(context.Background())
	fmt.Println(err)
	denied, _ := errors.AsType[*runtime.DeniedError](err) // for logs; clients have the status alone
	fmt.Println(denied.Entity, denied.Limit, denied.RetryAfter)
	// Output:
	// rpc error: code = ResourceExhausted desc = tpm has 20 of the 500 that the request needs: retry after 3 s.
	// user-123 tpm 2.88s
}

func newLimiter() *limits.Limiter {
	client := memdynamo.New().Client() // in production: dynamodb.NewFromConfig
	_, _ = operator.CreateTable(context.Background(), client, "rate_limits")
	lim, _ := limits.New(dynamo.New(client, "rate_limits"))
	return lim
}

// connect returns a client of server, in the process.
func connect(server *grpc.Server) (client pb.TestServiceClient, stop func()) {
	pipes := bufconn.Listen(1 << 16)
	go func() { _ = server.Serve(pipes) }()
	conn, _ := grpc.NewClient("passthrough:///gateway", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn,
			error) {
			return pipes.DialContext(ctx)
		}))
	return pb.NewTestServiceClient(conn), func() {
		_ = conn.Close()
		server.Stop()
	}
}
