package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/grpclimit"
)

var everybody = &runtime.DeniedError{
	Resource: "gpt-4", Entity: "project-secret", Limit: "tpm", Requested: 700, Available: 20,
	RetryAfter: 4001 * time.Millisecond,
	Refusals: []runtime.Refusal{
		{Resource: "gpt-4", Entity: "user-secret", Limit: "rpm", Requested: 1, RetryAfter: 300 * time.Millisecond},
		{Resource: "gpt-4", Entity: "user-secret", Limit: "tpm", Requested: 700, Available: 90,
			RetryAfter: time.Second},
		{Resource: "gpt-4", Entity: "project-secret", Limit: "tpm", Requested: 700, Available: 20,
			RetryAfter: 4001 * time.Millisecond},
		{Resource: "other", Entity: "project-secret", Limit: "tpm", Requested: 5, Available: 4,
			RetryAfter: 2 * time.Second},
	},
}

func retryAfter(d time.Duration) proto.Message {
	return &errdetails.RetryInfo{RetryDelay: durationpb.New(d)}
}

// ended returns contexts that are canceled, and past their deadline.
func ended(t *testing.T) (canceled, late context.Context) {
	t.Helper()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel = context.WithDeadline(t.Context(), time.Unix(0, 0))
	t.Cleanup(cancel)
	return canceled, late
}

// TestStatus says what each error is answered with, in details and in the trailer.
func TestStatus(t *testing.T) {
	canceled, late := ended(t)
	soon, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	setup := &runtime.SetupError{What: "table secret is not there", Do: "create it"}
	deniedDetails := []proto.Message{&errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{
		{Subject: "gpt-4", QuotaId: "rpm", Description: "0 of the 1 that the request needs: retry after 1 s"},
		{Subject: "gpt-4", QuotaId: "tpm", Description: "20 of the 700 that the request needs: retry after 5 s"},
		{Subject: "other", QuotaId: "tpm", Description: "4 of the 5 that the request needs: retry after 2 s"},
	}}, retryAfter(4001 * time.Millisecond)}
	const deniedText = "tpm has 20 of the 700 that the request needs: retry after 5 s."
	const failedText = "The request's limits could not be looked up just now."
	const setupText = "The limits of this service are not set up."
	pause := []proto.Message{retryAfter(time.Second)}
	in := func(d time.Duration) *runtime.DeniedError {
		return &runtime.DeniedError{Resource: "r", Limit: "l", RetryAfter: d}
	}
	for _, test := range []struct {
		name     string
		ctx      context.Context
		err      error
		code     codes.Code // OK: it is not one of sluice's
		text     string
		details  []proto.Message
		pushback string
	}{
		{"denied", nil, everybody, codes.ResourceExhausted, deniedText, deniedDetails, "4001"},
		{"wrapped", nil, fmt.Errorf("chat: %w", everybody), codes.ResourceExhausted, deniedText, deniedDetails,
			"4001"},
		{"denied, time enough", soon, everybody, codes.ResourceExhausted, deniedText, deniedDetails, "4001"},
		{"denied, time up", late, everybody, codes.ResourceExhausted, deniedText, deniedDetails, "-1"},
		{"denied beyond the deadline", soon, in(time.Hour), codes.ResourceExhausted,
			"l has 0 of the 0 that the request needs: retry after 3600 s.", []proto.Message{retryAfter(time.Hour)},
			"-1"},
		{"denied, in parts of a millisecond", nil, in(time.Nanosecond), codes.ResourceExhausted,
			"l has 0 of the 0 that the request needs: retry after 1 s.", []proto.Message{retryAfter(time.Millisecond)},
			"1"},
		{"denied for 2^31-1 ms", nil, in(math.MaxInt32 * time.Millisecond), codes.ResourceExhausted,
			"l has 0 of the 0 that the request needs: retry after 2147484 s.",
			[]proto.Message{retryAfter(math.MaxInt32 * time.Millisecond)}, "2147483647"},
		{"denied for longer", nil, in(math.MaxInt32*time.Millisecond + 1), codes.ResourceExhausted,
			"l has 0 of the 0 that the request needs: retry after 2147484 s.",
			[]proto.Message{retryAfter((math.MaxInt32 + 1) * time.Millisecond)}, "-1"},
		{"denied until a grant", nil, in(math.MaxInt64), codes.ResourceExhausted,
			"l has 0 of the 0 that the request needs, until more is granted.", nil, "-1"},
		{"denied for very long", nil, in(math.MaxInt64 - 1), codes.ResourceExhausted,
			"l has 0 of the 0 that the request needs: retry after 9223372037 s.",
			[]proto.Message{retryAfter(math.MaxInt64 / time.Millisecond * time.Millisecond)}, "-1"},
		{"a name that there is not", nil, &runtime.UnknownNameError{Resource: "model", Name: "secret"},
			codes.NotFound, "There is no model of this name.", nil, "-1"},
		{"a name that was not looked up", nil, &runtime.UnknownNameError{Resource: "model", Unread: true},
			codes.Unavailable, failedText, pause, "1000"},
		{"over burst", nil,
			&runtime.CostTooLargeError{Resource: "gpt-4", Entity: "user-secret", Limit: "tpm", Requested: 20_000,
				Burst: 15_000},
			codes.InvalidArgument,
			"The request needs 20000 tpm, and there are never more than 15000 at once: make it smaller.",
			[]proto.Message{&errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{
				Subject: "gpt-4", QuotaId: "tpm", QuotaValue: 15_000,
				Description: "the request needs 20000, and there are never more than 15000 at once",
			}}}}, "-1"},
		{"invalid", nil, &runtime.InvalidError{Resource: "gpt-4", Field: "id of user", Value: "a#secret",
			Reason: "has a #"},
			codes.InvalidArgument, "The request's id of user is not valid.", nil, "-1"},
		{"unavailable", nil, &runtime.UnavailableError{Resource: "gpt-4", Attempts: 3, Err: errors.New("secret")},
			codes.Unavailable, failedText, pause, "1000"},
		{"contended", nil, &runtime.ContendedError{Resource: "gpt-4", Entity: "user-secret", Attempts: 8},
			codes.Unavailable, failedText, pause, "1000"},
		{"MaxWait over", nil, fmt.Errorf("chat: %w", runtime.ErrMaxWait), codes.Unavailable, failedText, pause,
			"1000"},
		{"queue full", nil, &runtime.QueueFullError{Resource: "gpt-4", Entity: "user-secret", MaxWaiters: 9},
			codes.Unavailable, "Too many requests wait for the same limits already.", pause, "1000"},
		{"setup", nil, setup, codes.Internal, setupText, nil, "-1"},
		{"an outage for want of rights", nil, &runtime.UnavailableError{Resource: "gpt-4", Err: setup},
			codes.Internal, setupText, nil, "-1"},
		{"gone", canceled, fmt.Errorf("sluice: gpt-4 for user-secret: %w", context.Canceled), codes.Canceled, "",
			nil, ""},
		{"gone, and denied", canceled, everybody, codes.Canceled, "", nil, ""},
		{"time up", late, fmt.Errorf("sluice: gpt-4 for user-secret: %w", context.DeadlineExceeded),
			codes.DeadlineExceeded,
			"Time was up before the request's limits were known.", nil, ""},
		{"canceled, but not by the caller", nil, context.Canceled, codes.OK, "", nil, ""},
		{"time up, but not the caller's", nil, context.DeadlineExceeded, codes.OK, "", nil, ""},
		{"gone, with another's error", canceled, io.ErrUnexpectedEOF, codes.OK, "", nil, ""},
		{"another's", nil, status.Error(codes.ResourceExhausted, "another's"), codes.OK, "", nil, ""},
		{"a second settle", nil, runtime.ErrSettled, codes.OK, "", nil, ""},
		{"none", nil, nil, codes.OK, "", nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx := test.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			sent := &transport{}
			ctx = grpc.NewContextWithServerTransportStream(ctx, sent)
			st, ok := grpclimit.Status(ctx, test.err)
			if ok != (test.code != codes.OK) || len(sent.trailer) > 0 {
				t.Fatalf("%v, %v, trailer %v", st, ok, sent.trailer)
			}
			err := grpclimit.Error(ctx, test.err)
			if !ok {
				if err != test.err || len(sent.trailer) > 0 { //nolint:errorlint // the very same
					t.Errorf("%v, want it as it was; trailer %v", err, sent.trailer)
				}
				return
			}
			want := status.New(test.code, test.text).Proto()
			var got []proto.Message
			for _, d := range st.Details() {
				got = append(got, d.(proto.Message))
			}
			if diff := cmp.Diff(test.details, got, protocmp.Transform()); diff != "" {
				t.Errorf("details (-want +got):\n%s", diff)
			}
			bare := st.Proto()
			bare.Details = nil
			if diff := cmp.Diff(want, bare, protocmp.Transform()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(st.Proto(), status.Convert(err).Proto(), protocmp.Transform()); diff != "" ||
				!errors.Is(err, test.err) {
				t.Errorf("Error differs, or has lost its cause: %s", diff)
			}
			if strings.Contains(fmt.Sprint(err, fmt.Errorf("chat: %w", err), st.Proto()), "secret") {
				t.Errorf("%v tells", err)
			}
			if got := strings.Join(sent.trailer["grpc-retry-pushback-ms"], ", "); got != test.pushback {
				t.Errorf("pushed back by %q, want %q", got, test.pushback)
			}
			again := grpclimit.Error(ctx, fmt.Errorf("chat: %w", err))
			if n := len(sent.trailer["grpc-retry-pushback-ms"]); n > 1 || !errors.Is(again, err) {
				t.Errorf("a second time: %v, %d values", again, n)
			}
		})
	}
}

// transport notes what metadata a call is given.
type transport struct {
	grpc.ServerTransportStream

	trailer metadata.MD
}

// SetTrailer implements grpc.ServerTransportStream.
func (t *transport) SetTrailer(md metadata.MD) error {
	t.trailer = metadata.Join(t.trailer, md)
	return nil
}

// TestErrorsAreAnswered: what comes of an acquire, and of ask, arrives at a client, and the handler is not
// called; further out, the cause is found.
func TestErrorsAreAnswered(t *testing.T) {
	secret := errors.New("secret")
	for _, test := range []struct {
		name string
		err  error // of the acquire, or
		ask  error
		code codes.Code
		text string
	}{
		{"denied", everybody, nil, codes.ResourceExhausted,
			"tpm has 20 of the 700 that the request needs: retry after 5 s."},
		{"setup", &runtime.SetupError{What: "no table"}, nil, codes.Internal,
			"The limits of this service are not set up."},
		{"ask: no status", nil, secret, codes.Internal, "Internal error: the rate limit could not be determined."},
		{"ask: a status", nil, status.Error(codes.Unauthenticated, "who are you?"), codes.Unauthenticated,
			"who are you?"},
		{"ask: one of sluice's", nil, &runtime.InvalidError{Field: "id", Value: "secret"}, codes.InvalidArgument,
			"The request's id is not valid."},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := newFake()
				fake.Fail(test.err)
				var causes []error
				outerUnary, outerStream := noting(&causes)
				interceptors := failingAsk(fake, test.ask)
				client := serve(t, &service{
					unary:   func(context.Context) error { t.Error("the handler was called"); return nil },
					replies: func(replies) error { t.Error("the handler was called"); return nil },
					duplex: func(s duplex) error {
						_, err := s.Recv()
						return err
					},
				}, []grpc.ServerOption{
					grpc.ChainUnaryInterceptor(outerUnary, interceptors.unary),
					grpc.ChainStreamInterceptor(outerStream, interceptors.stream),
				})
				var errs []error
				_, err := client.UnaryCall(t.Context(), request(700))
				errs = append(errs, err)
				once, err := client.StreamingOutputCall(t.Context(), message(700))
				if err == nil {
					_, err = once.Recv()
				}
				errs = append(errs, err)
				_, err = say(t, client, 700)
				errs = append(errs, err)
				for _, err := range errs {
					if st := status.Convert(err); st.Code() != test.code || st.Message() != test.text {
						t.Errorf("%v", err)
					}
				}
				cause := test.err
				if test.ask != nil {
					cause = test.ask
				}
				for _, err := range causes {
					if _, denied := errors.AsType[*runtime.DeniedError](cause); !denied && !errors.Is(err, cause) {
						t.Errorf("%v further out, want %v in it", err, cause)
					} else if _, found := errors.AsType[*runtime.DeniedError](err); denied != found {
						t.Errorf("%v further out, want a denial in it", err)
					}
				}
				if want := 3; len(causes) != want {
					t.Errorf("%d errors further out, want %d", len(causes), want)
				}
				if n := len(fake.Calls()); test.ask != nil && n > 0 {
					t.Errorf("%d acquires, want none where ask has failed", n)
				}
			})
		})
	}
}

// TestUnlimited: what ask does not limit costs nothing, and has no lease.
func TestUnlimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		fake.Fail(everybody)
		n := 0
		free := func(ctx context.Context) {
			if n++; lease(ctx) != nil {
				t.Error("a lease of nothing")
			}
		}
		interceptors := failingAsk(fake, fmt.Errorf("health: %w", grpclimit.ErrUnlimited))
		client := serve(t, &service{
			unary:   func(ctx context.Context) error { free(ctx); return nil },
			replies: func(s replies) error { free(s.Context()); return nil },
		}, []grpc.ServerOption{grpc.UnaryInterceptor(interceptors.unary),
			grpc.StreamInterceptor(interceptors.stream)})
		if _, err := client.UnaryCall(t.Context(), request(700)); err != nil {
			t.Error(err)
		}
		once, err := client.StreamingOutputCall(t.Context(), message(700))
		if err == nil {
			_, err = once.Recv()
		}
		if !errors.Is(err, io.EOF) || n != 2 || len(fake.Calls()) != 0 {
			t.Errorf("%v, %d handlers, %+v", err, n, fake.Calls())
		}
	})
}
