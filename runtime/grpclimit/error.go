package grpclimit

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/runtime/internal/edge"
)

// Error returns Status as an error for the handler of ctx's call to return, once: errors.As finds err in it,
// for interceptors further out. An err that is not of Status's is returned as it is.
//
// Clients do not look at RetryInfo by themselves: what those with a retry policy honour is the trailer
// grpc-retry-pushback-ms, which Error sets to the same time. It tells them not to repeat what does not help,
// and what their own deadline would cut short: so they have this error at once, instead of DEADLINE_EXCEEDED
// later. Of opts, only Spread takes part.
func Error(ctx context.Context, err error, opts ...Option) error {
	return errorOf(ctx, err, optionsOf(opts).spread)
}

// errorOf is Error.
func errorOf(ctx context.Context, err error, spread time.Duration) error {
	if _, ok := errors.AsType[*answeredError](err); ok {
		return err
	}
	a, ok := edge.Of(ctx, err, spread)
	if !ok {
		return err
	}
	if ms, ok := pushback(ctx, &a); ok {
		// it fails outside a call: nobody to tell
		_ = grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", ms))
	}
	return &answeredError{statusOf(&a), err}
}

// answeredError is a status that remembers what led to it. Its text is the status's: that of its cause is not
// for clients, to whom it would go if somebody wrapped it.
type answeredError struct {
	status *status.Status
	cause  error
}

// Error says what the status says.
func (e *answeredError) Error() string { return e.status.String() }

// GRPCStatus is what the server answers with.
func (e *answeredError) GRPCStatus() *status.Status { return e.status }

// Unwrap returns the cause.
func (e *answeredError) Unwrap() error { return e.cause }

// answer is Error for what an interceptor failed with. An error that was not made for clients goes to the log
// instead.
func (o *options) answer(ctx context.Context, err error, logger *slog.Logger) error {
	err = errorOf(ctx, err, o.spread)
	if _, ok := status.FromError(err); ok {
		return err
	}
	method, _ := grpc.Method(ctx)
	edge.LogAsk(ctx, logger, "method", method, err)
	return &answeredError{status.New(codes.Internal, edge.Undetermined), err}
}

// codeOf is the code that the server answers with for a handler's err.
func codeOf(err error) codes.Code {
	if st, ok := status.FromError(err); ok {
		return st.Code()
	}
	return status.FromContextError(err).Code()
}

// pushback returns what clients with a retry policy are told, in milliseconds: -1 is not to repeat the call.
// ok is false for those who repeat nothing any more.
func pushback(ctx context.Context, a *edge.Answer) (ms string, ok bool) {
	const longest = math.MaxInt32 // some clients read it as such
	switch {
	case a.Reason == edge.Late || a.Reason == edge.Abandoned:
		return "", false
	case !retryable(a.Reason) || pastDeadline(ctx, a.RetryAfter) ||
		wholeMillis(a.RetryAfter) > longest*time.Millisecond:
		return "-1", true
	}
	return strconv.FormatInt(wholeMillis(a.RetryAfter).Milliseconds(), 10), true
}

// pastDeadline reports whether ctx ends within d from now.
func pastDeadline(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && d >= time.Until(deadline) //nolint:forbidigo // deadlines are the system's, whatever the Clock
}

// wholeMillis returns d in whole milliseconds, rounded up, or down where there are none above.
func wholeMillis(d time.Duration) time.Duration {
	whole := max(0, d).Truncate(time.Millisecond)
	if whole < d && whole <= math.MaxInt64-time.Millisecond {
		whole += time.Millisecond
	}
	return whole
}
