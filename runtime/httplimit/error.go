package httplimit

import (
	"net/http"

	"github.com/sluice-go/sluice/runtime/internal/edge"
)

// WriteError answers r with what an acquire, a wait or a settle failed with, and reports whether err was such
// an error: if not, nothing is written. Of the answer nothing is to be written before, headers aside.
//
//   - A *runtime.DeniedError: 429 with Retry-After, in whole seconds and never early.
//   - A *runtime.CostExceedsBurstError or *runtime.InvalidError: 400, without Retry-After, as repeating does not help.
//   - A *runtime.UnavailableError or *runtime.ContendedError, or runtime.ErrMaxWait: 503 with Retry-After.
//   - A *runtime.SetupError: 500.
//   - The end of r's own context: 503 with Retry-After if its deadline has passed. If it was canceled, there is nobody to tell: 503
//     without a word, for the server would say 200 by itself, and a shutdown cancels requests whose callers still wait.
//
// The body is an RFC 9457 problem, which names the resource and its limits. It names no entity, for that may
// be one of the caller's ancestors, and who the caller is, it knows; and of failures it tells no cause: those
// are for the log, by runtime.WithObserver.
func WriteError(w http.ResponseWriter, r *http.Request, err error) bool {
	a, ok := edge.Of(r.Context(), err)
	if !ok {
		return false
	}
	if a.Reason == edge.Gone {
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
