package grpclimit

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sluice-go/sluice/runtime/internal/edge"
	"github.com/sluice-go/sluice/runtime/store"
)

// Status returns the status of a call with context ctx for the error of an acquire, a wait or a settle. ok is
// false if err is not such an error.
//
//   - A *runtime.DeniedError: RESOURCE_EXHAUSTED with RetryInfo, never early, and QuotaFailure. That has a
//     violation for each limit that denied: subject is the resource, quota_id the limit.
//   - A *runtime.CostTooLargeError: INVALID_ARGUMENT with QuotaFailure, whose quota_value is the burst,
//     unless the limit is of money. It is not OUT_OF_RANGE, which tells callers that page through results
//     that they have reached the end.
//   - A *runtime.InvalidError: INVALID_ARGUMENT.
//   - A *runtime.UnknownNameError: NOT_FOUND, or UNAVAILABLE with RetryInfo if the name was not looked up.
//   - A *runtime.UnavailableError, *runtime.ContendedError or *runtime.QueueFullError, or
//     runtime.ErrMaxWait: UNAVAILABLE with RetryInfo.
//   - A *runtime.SetupError: INTERNAL.
//   - The end of ctx itself: CANCELLED or DEADLINE_EXCEEDED.
//
// It names no entity, since that may be one of the caller's ancestors. Of failures it gives no cause: causes
// are for the log, by runtime.WithObserver. Of opts, only Spread takes part.
func Status(ctx context.Context, err error, opts ...Option) (st *status.Status, ok bool) {
	a, ok := edge.Of(ctx, err, optionsOf(opts).spread)
	if !ok {
		return nil, false
	}
	return statusOf(&a), true
}

// statusOf says a in gRPC's terms.
func statusOf(a *edge.Answer) *status.Status {
	st := status.New(codeFor(a.Reason), a.Detail)
	var details []protoadapt.MessageV1
	if len(a.Limits) > 0 {
		details = append(details, violations(a))
	}
	if retryable(a.Reason) && a.RetryAfter != store.UntilGrant {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(wholeMillis(a.RetryAfter))})
	}
	// there is nothing in them that could not be written
	if detailed, err := st.WithDetails(details...); err == nil {
		st = detailed
	}
	return st
}

func codeFor(reason edge.Reason) codes.Code {
	switch reason {
	case edge.Denied:
		return codes.ResourceExhausted
	case edge.Exceeds, edge.Invalid:
		return codes.InvalidArgument
	case edge.Unknown:
		return codes.NotFound
	case edge.Setup:
		return codes.Internal
	case edge.Late:
		return codes.DeadlineExceeded
	case edge.Abandoned:
		return codes.Canceled
	default:
		return codes.Unavailable
	}
}

// retryable reports that the same call may be served later.
func retryable(reason edge.Reason) bool { return reason == edge.Denied || reason == edge.Unavailable }

func violations(a *edge.Answer) *errdetails.QuotaFailure {
	all := &errdetails.QuotaFailure{}
	for _, l := range a.Limits {
		v := &errdetails.QuotaFailure_Violation{Subject: l.Resource, QuotaId: l.Limit}
		switch {
		case a.Reason == edge.Denied:
			v.Description = fmt.Sprintf("%s of the %s that the request needs%s",
				edge.Number(l.Unit, l.Available), store.Text(l.Unit, l.Requested), edge.When(l.RetryAfter))
			if !l.Resets.IsZero() {
				v.Description += ", resets " + l.Resets.UTC().Format(time.RFC3339)
			}
		case l.Unit != "":
			v.Description = fmt.Sprintf("the request needs %s, and there is never more than %s",
				store.Text(l.Unit, l.Requested), store.Text(l.Unit, l.Burst))
		default:
			v.Description = fmt.Sprintf("the request needs %d, and there are never more than %d at once", l.Requested,
				l.Burst)
			v.QuotaValue = l.Burst
		}
		all.Violations = append(all.Violations, v)
	}
	return all
}
