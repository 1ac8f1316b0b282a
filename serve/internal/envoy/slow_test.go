package envoy_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/serve/internal/envoy"
)

// TestEndlessStreams: a stream whose message never comes ends, also one for health, which needs no token.
// Without a token, others end before anything of a message is read.
func TestEndlessStreams(t *testing.T) {
	const token = "0123456789abcdef"
	for _, test := range []struct {
		name, method, token string
		code                codes.Code
		after               time.Duration
	}{
		{"no message", ratelimit.RateLimitService_ShouldRateLimit_FullMethodName, token, codes.DeadlineExceeded,
			10 * time.Second},
		{"no token", ratelimit.RateLimitService_ShouldRateLimit_FullMethodName, "", codes.Unauthenticated, 0},
		{"health", healthpb.Health_Check_FullMethodName, "", codes.DeadlineExceeded, 10 * time.Second},
		{"watching without a token", healthpb.Health_Watch_FullMethodName, "", codes.Unauthenticated, 0},
		{"another method", "/other/Method", "", codes.Unauthenticated, 0},
	} {
		bubble(t, options{tokens: []string{token}}, func(r *rig) {
			ctx := r.Context()
			if test.token != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+test.token)
			}
			began := time.Now()
			both := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
			stream, err := r.conn.NewStream(ctx, both, test.method)
			if err != nil {
				r.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- stream.RecvMsg(&ratelimit.RateLimitResponse{}) }()
			select {
			case err = <-ended:
			case <-time.After(time.Hour):
				r.Fatalf("%s: the stream is open after an hour", test.name)
			}
			if took := time.Since(began); status.Code(err) != test.code || took < test.after ||
				took > test.after+time.Second {
				r.Errorf("%s: %v after %v, want %v after %v", test.name, err, took, test.code, test.after)
			}
		})
	}
}

// TestKeepalive: a connection without streams whose client asks each ten seconds whether it lives stays open,
// as Envoy does with connection_keepalive.
func TestKeepalive(t *testing.T) {
	bubble(t, options{}, func(r *rig) {
		conn := dial(r.T, r.listen, grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: 10 * time.Second, Timeout: time.Second, PermitWithoutStream: true}))
		defer func() { _ = conn.Close() }()
		conn.Connect()
		synctest.Wait()
		<-time.After(5 * time.Minute)
		synctest.Wait()
		if state := conn.GetState(); state != connectivity.Ready {
			r.Errorf("after 5 minutes the connection is %v", state)
		}
	})
}

// TestPanic: a panic fails its call alone. The log has its place, and not what it says.
func TestPanic(t *testing.T) {
	bubble(t, options{count: func(what envoy.Outcome) {
		if what == envoy.Override {
			panic("secret")
		}
	}}, func(r *rig) {
		override := model(1)
		override.Limit = &common.RateLimitDescriptor_RateLimitOverride{}
		r.fails(codes.Internal, "internal error: see the server's log", override)
		r.want(ok, model(1))
		if log := r.log.String(); !strings.Contains(log, "has panicked") || strings.Contains(log, "secret") ||
			!strings.Contains(log, "slow_test.go") {
			r.Errorf("log: %s", log)
		}
	})
}
