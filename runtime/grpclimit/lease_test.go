package grpclimit_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/grpclimit"
)

var errBug = status.Error(codes.DataLoss, "bug")

// recovered answers for handlers that panic.
func recovered(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (reply any,
	err error) {
	defer func() {
		if recover() != nil {
			err = errBug
		}
	}()
	return handler(ctx, req)
}

func recoveredStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo,
	handler grpc.StreamHandler) (err error) {
	defer func() {
		if recover() != nil {
			err = errBug
		}
	}()
	return handler(srv, stream)
}

// settle settles ctx's lease for 3: the fake says whether it did.
func settle(ctx context.Context) {
	_ = grpclimit.Lease[limits.GPT4Cost](ctx).Settle(ctx, limits.GPT4Cost{TPM: 3})
}

func when(code codes.Code) grpclimit.Option {
	return grpclimit.ReleaseOn(func(c codes.Code) bool { return c == code })
}

// TestLease says what becomes of a lease, by how its handler ends.
func TestLease(t *testing.T) {
	failed := status.Error(codes.Aborted, "failed")
	type end struct {
		settled, released bool
		code              codes.Code
	}
	for _, test := range []struct {
		name    string
		handler func(context.Context) error
		opts    []grpclimit.Option
		want    end
	}{
		{"returns", func(context.Context) error { return nil }, nil, end{}},
		{"settles", func(ctx context.Context) error { settle(ctx); return nil }, nil, end{settled: true}},
		{"fails", func(context.Context) error { return failed }, nil, end{code: codes.Aborted}},
		{"fails with what is no status", func(context.Context) error { return errors.New("failed") }, nil,
			end{code: codes.Unknown}},
		{"panics", func(context.Context) error { panic("bug") }, nil, end{released: true, code: codes.DataLoss}},
		{"settles and panics", func(ctx context.Context) error { settle(ctx); panic("bug") }, nil,
			end{settled: true, code: codes.DataLoss}},
		{"ReleaseOn: fails", func(context.Context) error { return failed }, []grpclimit.Option{when(codes.Aborted)},
			end{released: true, code: codes.Aborted}},
		{"ReleaseOn: fails otherwise", func(context.Context) error { return failed },
			[]grpclimit.Option{when(codes.Internal)},
			end{code: codes.Aborted}},
		{"ReleaseOn: settles and fails", func(ctx context.Context) error { settle(ctx); return failed },
			[]grpclimit.Option{when(codes.Aborted)}, end{settled: true, code: codes.Aborted}},
		{"ReleaseOn: returns", func(context.Context) error { return nil }, []grpclimit.Option{when(codes.OK)},
			end{released: true}},
		{"ReleaseOn: no status", func(context.Context) error { return errors.New("failed") },
			[]grpclimit.Option{when(codes.Unknown)}, end{released: true, code: codes.Unknown}},
		{"ReleaseOn: time up elsewhere", func(context.Context) error { return context.DeadlineExceeded },
			[]grpclimit.Option{when(codes.DeadlineExceeded)}, end{released: true, code: codes.DeadlineExceeded}},
		{"ReleaseOn(nil)", func(context.Context) error { return failed },
			[]grpclimit.Option{when(codes.Aborted), grpclimit.ReleaseOn(nil)}, end{code: codes.Aborted}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Run("unary", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					fake := newFake()
					client := serve(t, &service{unary: test.handler}, unary(fake, test.opts...))
					_, err := client.UnaryCall(t.Context(), request(700))
					synctest.Wait()
					calls := fake.Calls()
					if len(calls) != 1 || calls[0].Cost.TPM != 700 {
						t.Fatalf("%+v, %v", calls, err)
					}
					if got := (end{calls[0].Settled.TPM == 3, calls[0].Released, status.Code(err)}); got != test.want {
						t.Errorf("%+v, want %+v", got, test.want)
					}
				})
			})
			for name, with := range map[string]func(limits.GPT4Acquirer, ...grpclimit.Option) []grpc.ServerOption{
				"stream": stream, "messages": messages,
			} {
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						fake := newFake()
						client := serve(t, &service{replies: func(
							s grpc.ServerStreamingServer[pb.StreamingOutputCallResponse],
						) error {
							if err := s.Send(&pb.StreamingOutputCallResponse{}); err != nil {
								return err
							}
							return test.handler(s.Context())
						}}, with(fake, test.opts...))
						replies, err := client.StreamingOutputCall(t.Context(), message(700))
						for err == nil {
							_, err = replies.Recv()
						}
						synctest.Wait()
						calls := fake.Calls()
						if len(calls) != 1 || calls[0].Cost.TPM != 700 {
							t.Fatalf("%+v, %v", calls, err)
						}
						if got := (end{calls[0].Settled.TPM == 3, calls[0].Released, codeOf(err)}); got != test.want {
							t.Errorf("%+v, want %+v", got, test.want)
						}
					})
				})
			}
		})
	}
}

// TestKept: once its handler has returned, a lease is over.
func TestKept(t *testing.T) {
	for _, opts := range [][]grpclimit.Option{nil, {nil, when(codes.Aborted)}} {
		synctest.Test(t, func(t *testing.T) {
			fake := newFake()
			var leases []*limits.GPT4Lease
			keep := func(ctx context.Context) { leases = append(leases, grpclimit.Lease[limits.GPT4Cost](ctx)) }
			client := serve(t, &service{unary: func(ctx context.Context) error { keep(ctx); return nil }},
				unary(fake, opts...))
			if _, err := client.UnaryCall(t.Context(), request(700)); err != nil {
				t.Fatal(err)
			}
			for _, with := range []func(limits.GPT4Acquirer, ...grpclimit.Option) []grpc.ServerOption{
				stream, messages,
			} {
				client := serve(t, &service{replies: func(
					s grpc.ServerStreamingServer[pb.StreamingOutputCallResponse],
				) error {
					keep(s.Context())
					return nil
				}}, with(fake, opts...))
				replies, err := client.StreamingOutputCall(t.Context(), message(700))
				if err == nil {
					_, err = replies.Recv()
				}
				if !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			if len(leases) != 3 {
				t.Fatalf("%d leases, want 3", len(leases))
			}
			for i, lease := range leases {
				if err := lease.Settle(t.Context(), limits.GPT4Cost{TPM: 3}); !errors.Is(err, runtime.ErrSettled) {
					t.Errorf("lease %d: %v, want ErrSettled", i, err)
				}
			}
			for _, call := range fake.Calls() {
				if call.Done {
					t.Errorf("%+v, want it to stand as charged", call)
				}
			}
		})
	}
}

// TestMessagesKept: the lease of a message is over when the next one is received, whatever that costs.
func TestMessagesKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, n := newFake(), 0
		var before *limits.GPT4Lease
		client := serve(t, &service{duplex: echo(func(ctx context.Context) error {
			if n++; n%2 == 0 {
				if err := before.Settle(ctx, limits.GPT4Cost{TPM: 3}); !errors.Is(err, runtime.ErrSettled) {
					t.Errorf("message %d: %v, want ErrSettled for the one before", n, err)
				}
			}
			before = grpclimit.Lease[limits.GPT4Cost](ctx)
			return nil
		})}, messages(fake))
		if answered, err := say(t, client, 10, 20, 30, 0); answered != 4 || !errors.Is(err, io.EOF) {
			t.Fatalf("%d answered, %v", answered, err)
		}
		if calls := fake.Calls(); len(calls) != 3 || calls[0].Done || calls[2].Done {
			t.Errorf("%+v, want them to stand as charged", calls)
		}
	})
}

// codeOf is the code with which a stream ended.
func codeOf(err error) codes.Code {
	if errors.Is(err, io.EOF) {
		return codes.OK
	}
	return status.Code(err)
}
