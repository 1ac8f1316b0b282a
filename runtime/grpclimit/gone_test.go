package grpclimit_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/runtime/grpclimit"
)

// always gives back whatever a handler returns with.
var always = grpclimit.ReleaseOn(func(codes.Code) bool { return true })

// TestClientGoesAway: a handler notices, what it settles then counts, and what it does not settle is not
// given back.
func TestClientGoesAway(t *testing.T) {
	leave := map[string]func(context.Context) (context.Context, context.CancelFunc){
		"hangs up": context.WithCancel,
		"time is up": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		},
	}
	for name, leaving := range leave {
		for _, settles := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				var hangUp context.CancelFunc
				work := func(ctx context.Context) error {
					if name == "hangs up" {
						hangUp()
					}
					<-ctx.Done()
					if settles {
						settle(ctx)
					}
					return status.Error(codes.Unavailable, "failed")
				}
				s := &service{unary: work,
					replies: func(s grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error {
						return work(s.Context())
					}}
				for kind, ask := range map[string]func(context.Context, pb.TestServiceClient) error{
					"unary": func(ctx context.Context, client pb.TestServiceClient) error {
						_, err := client.UnaryCall(ctx, request(700))
						return err
					},
					"stream": func(ctx context.Context, client pb.TestServiceClient) error {
						replies, err := client.StreamingOutputCall(ctx, message(700))
						if err == nil {
							_, err = replies.Recv()
						}
						return err
					},
				} {
					synctest.Test(t, func(t *testing.T) {
						fake := newFake()
						client := serve(t, s, append(unary(fake, always), stream(fake, always)...))
						var ctx context.Context
						ctx, hangUp = leaving(t.Context())
						defer hangUp()
						if err := ask(ctx, client); err == nil {
							t.Errorf("%s: no error", kind)
						}
						synctest.Wait()
						calls := fake.Calls()
						if len(calls) != 1 || calls[0].Released || calls[0].Done != settles || settles &&
							calls[0].Settled.TPM != 3 {
							t.Errorf("%s: %+v", kind, calls)
						}
					})
				}
			})
		}
	}
}

// broken is a stream on which nothing comes through, though its context knows nothing of that yet.
type broken struct {
	grpc.ServerStream

	ctx context.Context
}

func (b *broken) Context() context.Context { return b.ctx }
func (*broken) SendMsg(any) error          { return status.Error(codes.Unavailable, "transport is closing") }
func (*broken) RecvMsg(any) error          { return status.Error(codes.Unavailable, "transport is closing") }

// TestStreamBreaks: who tears a stream down while it sends is not given back what was charged.
func TestStreamBreaks(t *testing.T) {
	for name, handler := range map[string]grpc.StreamHandler{
		"sending":   func(_ any, s grpc.ServerStream) error { return s.SendMsg(nil) },
		"receiving": func(_ any, s grpc.ServerStream) error { return s.RecvMsg(nil) },
		"control": func(any, grpc.ServerStream) error {
			return status.Error(codes.Unavailable, "not the stream's fault")
		},
	} {
		fake := newFake()
		limited := grpclimit.Stream(fake, askStream, when(codes.Unavailable))
		err := limited(nil, &broken{ctx: t.Context()}, &grpc.StreamServerInfo{}, handler)
		calls := fake.Calls()
		if status.Code(err) != codes.Unavailable || len(calls) != 1 || calls[0].Released != (name == "control") {
			t.Errorf("%s: %v, %+v", name, err, calls)
		}
	}
}
