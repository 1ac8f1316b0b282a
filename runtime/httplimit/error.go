package httplimit

import (
	"net/http"

	"github.com/sluice-go/sluice/runtime/internal/edge"
)

// WriteError writes the answer to r for the error of an acquire, a wait or a settle. It reports whether err
// was such an error: if not, it writes nothing. Nothing but headers may have been written before.
//
//   - A *runtime.DeniedError: 429 with Retry-After, in whole seconds and never early.
//   - A *runtime.CostTooLargeError or *runtime.InvalidError: 400 without Retry-After, since repeating
//     does not help.
//   - A *runtime.UnavailableError, *runtime.ContendedError or *runtime.QueueFullError, or
//     runtime.ErrMaxWait: 503 with Retry-After.
//   - A *runtime.SetupError: 500.
//   - The end of r's own context: 503 with Retry-After if its deadline has passed, and 503 without a body if
//     it was canceled. Without an answer the server would send 200, and a shutdown cancels requests whose
//     callers still wait.
//
// The body is an RFC 9457 problem, which names the resource and its limits. It names no entity, since that
// may be one of the caller's ancestors. Of failures it gives no cause: causes are for the log, by
// runtime.WithObserver. Of opts, only Spread takes part.
func WriteError(w http.ResponseWriter, r *http.Request, err error, opts ...Option) bool {
	return optionsOf(opts).writeError(w, r, err)
}

// writeError is WriteError.
func (o *options) writeError(w http.ResponseWriter, r *http.Request, err error) bool {
	a, ok := edge.Of(r.Context(), err, o.spread)
	if !ok {
		return false
	}
	if a.Reason == edge.Abandoned {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	problemOf(&a).write(w)
	return true
}

// problemOf returns what to say of a, for which somebody waits.
func problemOf(a *edge.Answer) problem {
	p := problem{Status: statusOf(a.Reason), Resource: a.Resource, Detail: a.Detail}
	switch a.Reason {
	case edge.Denied, edge.Unavailable, edge.Late:
		p.RetryAfter = new(edge.Seconds(a.RetryAfter))
	}
	if a.Reason == edge.Denied {
		p.Type = quotaExceeded
	}
	for _, l := range a.Limits {
		one := limitProblem{Limit: l.Limit, Requested: l.Requested}
		if l.Resource != a.Resource {
			one.Resource = l.Resource
		}
		if a.Reason == edge.Denied {
			one.Available, one.RetryAfter = &l.Available, new(edge.Seconds(l.RetryAfter))
			one.Resets = l.Resets.UTC()
			p.Violated = append(p.Violated, l.Limit)
		} else {
			one.Burst = &l.Burst
		}
		p.Limits = append(p.Limits, one)
	}
	return p
}

func statusOf(reason edge.Reason) int {
	switch reason {
	case edge.Denied:
		return http.StatusTooManyRequests
	case edge.Exceeds, edge.Invalid:
		return http.StatusBadRequest
	case edge.Setup:
		return http.StatusInternalServerError
	default:
		return http.StatusServiceUnavailable
	}
}
