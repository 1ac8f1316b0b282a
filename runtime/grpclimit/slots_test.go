package grpclimit_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/grpclimit"
	"github.com/sluice-go/sluice/runtime/internal/slottest"
)

// slots returns a store and, on its limit of calls in flight, interceptors of all kinds.
func slots(t *testing.T, opts ...grpclimit.Option) (*slottest.Store, map[string][]grpc.ServerOption) {
	t.Helper()
	backend, _, r := slottest.New(t, runtime.WithLogger(slog.New(slog.DiscardHandler)))
	key := slottest.Key{ID: "1"}
	return backend, map[string][]grpc.ServerOption{
		"unary": {grpc.ChainUnaryInterceptor(recovered, grpclimit.Unary(r, func(context.Context, any,
			*grpc.UnaryServerInfo) (slottest.Key, slottest.Cost, error) {
			return key, slottest.Cost{}, nil
		}, opts...))},
		"stream": {grpc.ChainStreamInterceptor(recoveredStream, grpclimit.Stream(r, func(context.Context,
			*grpc.StreamServerInfo) (slottest.Key, slottest.Cost, error) {
			return key, slottest.Cost{}, nil
		}, opts...))},
		"messages": {grpc.ChainStreamInterceptor(recoveredStream, grpclimit.StreamMessages(r, func(context.Context,
			any, *grpc.StreamServerInfo) (slottest.Key, slottest.Cost, error) {
			return key, slottest.Cost{}, nil
		}, opts...))},
	}
}

// free reports slots that are not as many as they should be.
func free(t *testing.T, when string, backend *slottest.Store, want int64) {
	t.Helper()
	if got := backend.Free("1"); got != want {
		t.Errorf("%s: %d slots are free, want %d", when, got, want)
	}
}

// call makes a call of kind, whose handler ends as handle does.
func call(t *testing.T, kind string, interceptors []grpc.ServerOption, handle func(context.Context) error) {
	t.Helper()
	s := &service{unary: handle, duplex: func(
		stream grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse],
	) error {
		if _, err := stream.Recv(); err != nil {
			return err
		}
		return handle(stream.Context())
	}}
	client := serve(t, s, interceptors)
	if kind == "unary" {
		_, _ = client.UnaryCall(t.Context(), request(1))
		return
	}
	stream, err := client.FullDuplexCall(t.Context())
	if err != nil || stream.Send(message(1)) != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = stream.Recv()
	}
}

// TestSlots: however a handler ends, its slot is back, and was taken while it ran.
func TestSlots(t *testing.T) {
	failure := errors.New("failed")
	for name, handle := range map[string]func(context.Context) error{
		"returns": func(context.Context) error { return nil },
		"fails":   func(context.Context) error { return failure },
		"panics":  func(context.Context) error { panic("bug") },
		"settles": func(ctx context.Context) error {
			err := grpclimit.Lease[slottest.Cost](ctx).Settle(ctx, slottest.Cost{})
			if err != nil || ctx.Err() != nil {
				t.Errorf("settle: %v, and then its context: %v", err, ctx.Err())
			}
			return nil
		},
	} {
		for _, kind := range []string{"unary", "stream", "messages"} {
			t.Run(name+" "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					backend, all := slots(t)
					var of context.Context
					call(t, kind, all[kind], func(ctx context.Context) error {
						of = ctx
						free(t, "meanwhile", backend, slottest.Capacity-1)
						return handle(ctx)
					})
					synctest.Wait()
					free(t, "then", backend, slottest.Capacity)
					if of == nil || of.Err() == nil {
						t.Error("the handler's context is open")
					}
				})
			})
		}
	}
}

// TestLostSlot: a handler learns from its context that it has lost its slot.
func TestLostSlot(t *testing.T) {
	for _, kind := range []string{"unary", "stream", "messages"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				backend, all := slots(t)
				backend.FailExtensions(errors.New("no reply"))
				call(t, kind, all[kind], func(ctx context.Context) error {
					<-ctx.Done()
					if cause := context.Cause(ctx); !errors.Is(cause, runtime.ErrLeaseLost) {
						t.Errorf("cause %v", cause)
					}
					return ctx.Err()
				})
				if took := time.Since(start); took != 117*time.Second {
					t.Errorf("after %v, want 3 s before the end of two minutes", took)
				}
			})
		})
	}
}

// TestSlotOfEachMessage: the slot of a message is back when the next one is received, and that of the last
// one when the stream ends.
func TestSlotOfEachMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend, all := slots(t)
		s := &service{duplex: func(
			stream grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse],
		) error {
			var before context.Context
			for n := 0; ; n++ {
				_, err := stream.Recv()
				if errors.Is(err, io.EOF) {
					return nil
				}
				free(t, "at a message", backend, 0)
				if before != nil && before.Err() == nil {
					t.Error("the context of the message before is open")
				}
				before = stream.Context()
			}
		}}
		others := backend.Take(t, "1", slottest.Capacity-1) // one slot is enough for a stream
		stream, err := serve(t, s, all["messages"]).FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := stream.Send(message(1)); err != nil {
				t.Fatal(err)
			}
		}
		_ = stream.CloseSend()
		if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		synctest.Wait()
		others.Keep(t.Context())
		free(t, "in the end", backend, slottest.Capacity)
	})
}

// TestLateReader: a goroutine of the handler's receives a message, and gets a slot for it, as the handler
// returns. The slot is free at once.
func TestLateReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late, acquired := make(chan struct{}), 0
		backend, _, r := slottest.New(t, runtime.WithLogger(slog.New(slog.DiscardHandler)),
			runtime.WithObserver(&runtime.Observer{Acquired: func(context.Context, runtime.Event) {
				if acquired++; acquired == 2 {
					close(late)
					time.Sleep(time.Second) //nolint:forbidigo // in a bubble
				}
			}}))
		chain := grpc.ChainStreamInterceptor(grpclimit.StreamMessages(r, func(context.Context,
			any, *grpc.StreamServerInfo) (slottest.Key, slottest.Cost, error) {
			return slottest.Key{ID: "1"}, slottest.Cost{}, nil
		}))
		client := serve(t, &service{duplex: func(
			stream grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse],
		) error {
			if _, err := stream.Recv(); err != nil {
				return err
			}
			go func() { _, _ = stream.Recv() }()
			<-late
			return nil
		}}, []grpc.ServerOption{chain})
		stream, err := client.FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := stream.Send(message(1)); err != nil {
				t.Fatal(err)
			}
		}
		for err == nil {
			_, err = stream.Recv()
		}
		time.Sleep(2 * time.Second) //nolint:forbidigo // in a bubble
		if free := backend.Free("1"); free != slottest.Capacity || acquired != 2 {
			t.Errorf("%d slots are free after %d acquires", free, acquired)
		}
	})
}
