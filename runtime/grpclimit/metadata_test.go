package grpclimit_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/grpclimit"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

const policy = `"rpm";q=100;w=60, "tpm";q=10000;w=60`

// seen is what a client sees of its limits: RateLimit-Policy and RateLimit in the header, and in the trailer.
type seen struct{ header, trailer [2]string }

func fieldsOf(md metadata.MD) [2]string {
	return [2]string{strings.Join(md["ratelimit-policy"], "|"), strings.Join(md["ratelimit"], "|")}
}

// TestMetadata says what callers see of a user's and a project's buckets, answer by answer.
func TestMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memdynamo.New()
		lim := open(t, limittest.StoreOn(t, engine))
		var work func(context.Context) error
		s := &service{unary: func(ctx context.Context) error {
			if work == nil {
				return nil
			}
			return work(ctx)
		}}
		client := serve(t, s, unary(lim.GPT4, grpclimit.Metadata(), when(codes.Aborted)))
		user := "1"
		see := func(name string, tpm int32, handler func(context.Context) error, code codes.Code, want seen) {
			t.Helper()
			work = handler
			var header, trailer metadata.MD
			_, err := client.UnaryCall(metadata.AppendToOutgoingContext(t.Context(), "user", user), request(tpm),
				grpc.Header(&header), grpc.Trailer(&trailer))
			if diff := cmp.Diff(want, seen{fieldsOf(header), fieldsOf(trailer)},
				cmp.AllowUnexported(seen{})); diff != "" || status.Code(err) != code {
				t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
			}
		}
		inHeader := func(level string) seen { return seen{header: [2]string{policy, level}} }
		inTrailer := func(level string) seen { return seen{trailer: [2]string{policy, level}} }

		see("first", 600, nil, codes.OK, inHeader(`"rpm";r=99;t=1, "tpm";r=14400;t=4`))
		see("settled", 600, func(ctx context.Context) error {
			return lease(ctx).Settle(ctx, limits.GPT4Cost{TPM: 200})
		}, codes.OK, inHeader(`"rpm";r=98;t=2, "tpm";r=14200;t=5`))
		see("failed", 200, func(context.Context) error { return status.Error(codes.Internal, "failed") },
			codes.Internal,
			inTrailer(`"rpm";r=97;t=2, "tpm";r=14000;t=6`))
		see("given back", 200, func(context.Context) error { return status.Error(codes.Aborted, "failed") },
			codes.Aborted,
			inTrailer(`"rpm";r=97;t=2, "tpm";r=14000;t=6`))
		see("after a header of the handler's", 1000, func(ctx context.Context) error {
			return grpc.SendHeader(ctx, metadata.Pairs("of", "its own"))
		}, codes.OK, inTrailer(`"rpm";r=96;t=3, "tpm";r=13000;t=12`))
		see("drained", 13_000, nil, codes.OK, inHeader(`"rpm";r=95;t=3, "tpm";r=0;t=90`))
		see("denied", 1600, nil, codes.ResourceExhausted, inTrailer(`"rpm";r=95;t=3, "tpm";r=0;t=10`))
		see("over burst", 15_001, nil, codes.InvalidArgument, inTrailer(`"rpm";r=95;t=3, "tpm";r=0;t=90`))

		user = "2"
		see("somebody else", 1, nil, codes.OK, inHeader(`"rpm";r=99;t=1, "tpm";r=14999;t=1`))
		before := engine.Consumed().Tables[limittest.Table]
		see("once more", 1, nil, codes.OK, inHeader(`"rpm";r=98;t=2, "tpm";r=14998;t=1`))
		for op, c := range engine.Consumed().Tables[limittest.Table] {
			if op != "TransactWriteItems" && c != before[op] {
				t.Errorf("metadata cost a %s: %+v", op, c)
			}
		}

		engine.Faults().Down(true)
		see("degraded: nobody knows", 600, nil, codes.OK, seen{})
		client = serve(t, s, unary(lim.GPT4.With(runtime.OnUnavailable(runtime.Deny)), grpclimit.Metadata()))
		see("down", 600, nil, codes.Unavailable, seen{})
		engine.Faults().Clear()
		time.Sleep(2 * time.Second) //nolint:forbidigo // in a bubble
		client = serve(t, s, unary(lim.GPT4))
		see("not asked for", 600, nil, codes.OK, seen{})
	})
}

// TestMetadataOfStreams: it comes with the first message, or else in the end.
func TestMetadataOfStreams(t *testing.T) {
	const level = `"rpm";r=99;t=1, "tpm";r=14300;t=5`
	reply := &pb.StreamingOutputCallResponse{}
	for _, test := range []struct {
		name    string
		handler func(replies) error
		want    seen
	}{
		{"sends", func(s replies) error { return errors.Join(s.Send(reply), s.Send(reply)) },
			seen{header: [2]string{policy, level}}},
		{"sends and fails", func(s replies) error {
			return errors.Join(s.Send(reply), status.Error(codes.Internal, "failed"))
		}, seen{header: [2]string{policy, level}}},
		{"sends a header of its own", func(s replies) error {
			return s.SendHeader(metadata.Pairs("of",
				"its own"))
		},
			seen{header: [2]string{policy, level}}},
		{"sends a header past the stream", func(s replies) error {
			return errors.Join(grpc.SendHeader(s.Context(), metadata.Pairs("of", "its own")), s.Send(reply))
		}, seen{trailer: [2]string{policy, level}}},
		{"sends nothing", func(replies) error { return nil }, seen{trailer: [2]string{policy, level}}},
		{"fails", func(replies) error { return status.Error(codes.Internal, "failed") },
			seen{trailer: [2]string{policy, level}}},
		{"settles and sends", func(s replies) error {
			return errors.Join(lease(s.Context()).Settle(s.Context(), limits.GPT4Cost{TPM: 1}), s.Send(reply))
		}, seen{header: [2]string{policy, `"rpm";r=99;t=1, "tpm";r=14999;t=1`}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for name, with := range map[string]func(limits.GPT4Acquirer, ...grpclimit.Option) []grpc.ServerOption{
				"stream": stream, "messages": messages,
			} {
				synctest.Test(t, func(t *testing.T) {
					client := serve(t, &service{replies: test.handler},
						with(open(t, limittest.Store(t)).GPT4, grpclimit.Metadata()))
					s, err := client.StreamingOutputCall(t.Context(), message(700))
					if err != nil {
						t.Fatal(err)
					}
					for err == nil {
						_, err = s.Recv()
					}
					header, _ := s.Header()
					got := seen{fieldsOf(header), fieldsOf(s.Trailer())}
					if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(seen{})); diff != "" {
						t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
					}
				})
			}
		})
	}
}

// TestMetadataOfMessages: what is left after the first is in the header, why the last was refused in the
// trailer.
func TestMetadataOfMessages(t *testing.T) {
	for _, test := range []struct {
		name  string
		costs []int32
		code  codes.Code
		want  seen
	}{
		{"all are served", []int32{700, 700}, codes.OK,
			seen{header: [2]string{policy, `"rpm";r=99;t=1, "tpm";r=14300;t=5`}}},
		{"the second is refused", []int32{14_000, 2_000}, codes.ResourceExhausted, seen{
			header:  [2]string{policy, `"rpm";r=99;t=1, "tpm";r=1000;t=84`},
			trailer: [2]string{policy, `"rpm";r=99;t=1, "tpm";r=1000;t=6`},
		}},
		// nobody has seen the bucket: it is not there yet
		{"the first is refused", []int32{15_001}, codes.InvalidArgument, seen{}},
		{"none costs anything", []int32{0, 0}, codes.OK, seen{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := serve(t, &service{duplex: echo(func(context.Context) error { return nil })},
					messages(open(t, limittest.Store(t)).GPT4, grpclimit.Metadata()))
				s, err := client.FullDuplexCall(t.Context())
				for _, cost := range test.costs {
					if err == nil {
						err = s.Send(message(cost))
					}
					if err == nil {
						_, err = s.Recv()
					}
				}
				if err == nil {
					if err = s.CloseSend(); err == nil {
						_, err = s.Recv()
					}
				}
				if codeOf(err) != test.code {
					t.Error(err)
				}
				header, _ := s.Header()
				got := seen{fieldsOf(header), fieldsOf(s.Trailer())}
				if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(seen{})); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}

// TestTwoLeases: a handler behind two limits settles each, and callers see both.
func TestTwoLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := open(t, limittest.Store(t))
		batches := grpclimit.Unary(lim.Embeddings, func(
			context.Context, any, *grpc.UnaryServerInfo,
		) (limits.EmbeddingsEntity, limits.EmbeddingsCost, error) {
			return limits.Project{ID: "1"}, limits.EmbeddingsCost{RPS: 2}, nil
		}, grpclimit.Metadata())
		client := serve(t, &service{unary: func(ctx context.Context) error {
			settle(ctx)
			grpclimit.Lease[limits.EmbeddingsCost](ctx).Release(ctx)
			if grpclimit.Lease[int](ctx) != nil {
				t.Error("a lease of no limit's")
			}
			return nil
		}}, []grpc.ServerOption{grpc.ChainUnaryInterceptor(batches,
			grpclimit.Unary(lim.GPT4, ask, grpclimit.Metadata()))})
		var header metadata.MD
		_, err := client.UnaryCall(t.Context(), request(700), grpc.Header(&header))
		want := [2]string{policy + `|"rps";q=20;w=1`, `"rpm";r=99;t=1, "tpm";r=14997;t=1|"rps";r=20;t=0`}
		if got := fieldsOf(header); err != nil || got != want {
			t.Errorf("%q, want %q; %v", got, want, err)
		}
	})
}

// TestMetadataOfRefusal: a message that is refused before any was answered says why, and no more.
func TestMetadataOfRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := serve(t, &service{duplex: func(s duplex) (err error) {
			for err == nil {
				_, err = s.Recv()
			}
			return err
		}}, messages(open(t, limittest.Store(t)).GPT4, grpclimit.Metadata()))
		s, err := client.FullDuplexCall(t.Context())
		if err == nil {
			err = errors.Join(s.Send(message(14_000)), s.Send(message(2_000)))
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Recv()
		want := [2]string{policy, `"rpm";r=99;t=1, "tpm";r=1000;t=6`}
		if got := fieldsOf(s.Trailer()); status.Code(err) != codes.ResourceExhausted || got != want {
			t.Errorf("%v, %q, want %q", err, got, want)
		}
	})
}
