package grpclimit_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/grpclimit"
	"github.com/sluice-go/sluice/runtime/limittest"
)

// retries is a client's policy: four attempts, 100 ms apart or so, and for what would better not be repeated,
// too.
var retries = grpc.WithDefaultServiceConfig(`{"methodConfig": [{
	"name": [{"service": "grpc.testing.TestService"}],
	"retryPolicy": {
		"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "0.1s", "backoffMultiplier": 1,
		"retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNAVAILABLE", "INTERNAL", "INVALID_ARGUMENT"]
	}
}]}`)

// counting counts what reaches a server.
func counting(attempts *int) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo,
			handler grpc.UnaryHandler) (any, error) {
			*attempts++
			return handler(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo,
			handler grpc.StreamHandler) error {
			*attempts++
			return handler(srv, s)
		}),
	}
}

func retryInfo(t *testing.T, err error) time.Duration {
	t.Helper()
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	t.Fatalf("no RetryInfo: %v", err)
	return 0
}

// refusedAgain sends calls of random cost, and where one is denied comes back after RetryInfo, less sooner.
// It returns how many denials there were, and how many callers were denied again.
func refusedAgain(t *testing.T, sooner time.Duration) (denials, again int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client := serve(t, &service{}, unary(open(t, limittest.Store(t)).GPT4, grpclimit.Metadata()))
		dice := rand.New(rand.NewPCG(1, 2))
		for range 300 {
			r := request(1 + dice.Int32N(15_000))
			_, err := client.UnaryCall(t.Context(), r)
			if err == nil {
				continue
			}
			denials++
			time.Sleep(retryInfo(t, err) - sooner) //nolint:forbidigo // in a bubble
			if _, err = client.UnaryCall(t.Context(), r); status.Code(err) == codes.ResourceExhausted {
				again++
			} else if err != nil {
				t.Fatal(err)
			}
		}
	})
	return denials, again
}

// TestRetryInfoIsNeverEarly: who comes back when told is served. A millisecond sooner nobody is, so that it
// is not late either, and the first half of the test can fail.
func TestRetryInfoIsNeverEarly(t *testing.T) {
	if denials, again := refusedAgain(t, 0); denials < 100 || again > 0 {
		t.Errorf("of %d callers, %d were denied again", denials, again)
	}
	if denials, again := refusedAgain(t, time.Millisecond); denials < 100 || again < denials {
		t.Errorf("a millisecond sooner, of %d callers %d were denied again, want all", denials, again)
	}
}

// TestRetryPolicy: a client that repeats by its own policy is served at its second attempt, whatever it
// costs.
func TestRetryPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		gpt4 := open(t, limittest.Store(t)).GPT4
		limited := append(counting(&attempts), append(unary(gpt4, grpclimit.Metadata()),
			messages(gpt4, grpclimit.Metadata())...)...)
		client := serve(t,
			&service{replies: func(s replies) error { return s.Send(&pb.StreamingOutputCallResponse{}) }}, limited,
			retries)
		dice := rand.New(rand.NewPCG(1, 2))
		repeated := 0
		for i := range 300 {
			attempts = 0
			tpm := 1 + dice.Int32N(15_000)
			var err error
			if i%2 == 0 {
				_, err = client.UnaryCall(t.Context(), request(tpm))
			} else {
				var s grpc.ServerStreamingClient[pb.StreamingOutputCallResponse]
				if s, err = client.StreamingOutputCall(t.Context(), message(tpm)); err == nil {
					_, err = s.Recv()
				}
				if _, end := s.Recv(); !errors.Is(end, io.EOF) {
					t.Error(end)
				}
			}
			if err != nil || attempts > 2 {
				t.Fatalf("%d attempts: %v", attempts, err)
			}
			repeated += attempts - 1
		}
		if repeated < 100 {
			t.Errorf("%d of 300 calls were repeated", repeated)
		}
	})
}

// TestRetries says what clients with a retry policy repeat, and what they have in the end.
func TestRetries(t *testing.T) {
	const after = 90 * time.Second
	denied := &runtime.DeniedError{Resource: "gpt-4", Limit: "tpm", Requested: 700, Available: 20,
		RetryAfter: after}
	overBurst := &runtime.CostTooLargeError{Resource: "gpt-4", Limit: "tpm", Requested: 20_000,
		Burst: 15_000}
	for _, test := range []struct {
		name     string
		err      error // what acquires fail with
		timeout  time.Duration
		handler  func(context.Context) error
		attempts int
		took     time.Duration // 0: no longer than the policy's own pauses
		code     codes.Code
	}{
		{"denied each time", denied, 0, nil, 4, 3 * after, codes.ResourceExhausted},
		{"denied, with time for one more", denied, 2 * after, nil, 2, after, codes.ResourceExhausted},
		{"denied, with no time for that", denied, after, nil, 1, 0, codes.ResourceExhausted},
		{"unavailable", &runtime.UnavailableError{Err: errors.New("down")}, 0, nil, 4, 3 * time.Second,
			codes.Unavailable},
		{"over burst", overBurst, 0, nil, 1, 0, codes.InvalidArgument},
		{"setup", &runtime.SetupError{}, 0, nil, 1, 0, codes.Internal},
		{"a handler fails", nil, 0, func(context.Context) error { return status.Error(codes.Unavailable, "busy") },
			4, 0, codes.Unavailable},
		{"a handler acquires by itself", nil, 0, func(ctx context.Context) error {
			return grpclimit.Error(ctx, denied)
		}, 4, 3 * after, codes.ResourceExhausted},
		{"control: without being pushed back", nil, 0, func(ctx context.Context) error {
			st, _ := grpclimit.Status(ctx, denied)
			return st.Err()
		}, 4, 0, codes.ResourceExhausted},
		{"control: pushed back beyond the deadline", nil, time.Second, func(ctx context.Context) error {
			return errors.Join(grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", "90000")),
				status.Error(codes.ResourceExhausted, "lost"))
		}, 1, time.Second, codes.DeadlineExceeded},
		{"control: with a header", nil, 0, func(ctx context.Context) error {
			return errors.Join(grpc.SetHeader(ctx, metadata.Pairs("ratelimit", `"rpm";r=99;t=1`)),
				grpclimit.Error(ctx, denied))
		}, 1, 0, codes.ResourceExhausted},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, kind := range []string{"unary", "stream"} {
				synctest.Test(t, func(t *testing.T) {
					fake := newFake()
					fake.Fail(test.err)
					attempts := 0
					limited := append(counting(&attempts), append(unary(fake, grpclimit.Metadata()),
						stream(fake, grpclimit.Metadata())...)...)
					client := serve(t, &service{unary: test.handler, replies: func(s replies) error {
						return test.handler(s.Context())
					}}, limited, retries)
					ctx := t.Context()
					if test.timeout > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, test.timeout)
						defer cancel()
					}
					began := time.Now()
					var err error
					if kind == "unary" {
						_, err = client.UnaryCall(ctx, request(700))
					} else {
						var s grpc.ServerStreamingClient[pb.StreamingOutputCallResponse]
						if s, err = client.StreamingOutputCall(ctx, message(700)); err == nil {
							_, err = s.Recv()
						}
					}
					took := time.Since(began)
					if status.Code(err) != test.code || attempts != test.attempts {
						t.Errorf("%s: %d attempts: %v", kind, attempts, err)
					}
					if test.took > 0 && took != test.took || test.took == 0 && took > 500*time.Millisecond {
						t.Errorf("%s: took %v, want %v", kind, took, test.took)
					}
					if test.code == codes.ResourceExhausted && retryInfo(t, err) != after {
						t.Errorf("%s: %v", kind, err)
					}
				})
			}
		})
	}
}

// TestFailuresAreRepeated: what callers see of their limits does not keep a client from repeating what a
// handler has failed with.
func TestFailuresAreRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gpt4 := open(t, limittest.Store(t)).GPT4
		attempts := 0
		once := func(context.Context) error {
			if attempts == 1 {
				return status.Error(codes.Unavailable, "busy")
			}
			return nil
		}
		limited := append(counting(&attempts), append(unary(gpt4, grpclimit.Metadata()),
			stream(gpt4, grpclimit.Metadata())...)...)
		client := serve(t, &service{unary: once, replies: func(s replies) error { return once(s.Context()) }},
			limited, retries)
		if _, err := client.UnaryCall(t.Context(), request(700)); err != nil || attempts != 2 {
			t.Errorf("unary: %d attempts: %v", attempts, err)
		}
		attempts = 0
		s, err := client.StreamingOutputCall(t.Context(), message(700))
		if err == nil {
			_, err = s.Recv()
		}
		if !errors.Is(err, io.EOF) || attempts != 2 {
			t.Errorf("stream: %d attempts: %v", attempts, err)
		}
	})
}
