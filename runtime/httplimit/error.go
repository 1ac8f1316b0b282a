package httplimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/sluice-go/sluice/runtime"
)

// WriteError answers r with what an acquire, a wait or a settle failed with, and reports whether err was such an error: if not,
// nothing is written. Of the answer nothing is to be written before, headers aside.
//
//   - A *runtime.DeniedError: 429 with Retry-After, in whole seconds and never early.
//   - A *runtime.CostExceedsBurstError or *runtime.InvalidError: 400, without Retry-After, as repeating does not help.
//   - A *runtime.UnavailableError or *runtime.ContendedError: 503 with Retry-After.
//   - A *runtime.SetupError: 500.
//   - The end of r's own context: 503 with Retry-After if its deadline has passed. If it was canceled, there is nobody to tell: 503
//     without a word, for the server would say 200 by itself, and a shutdown cancels requests whose callers still wait.
//
// The body is an RFC 9457 problem, which names the resource and its limits. It names no entity, for that may be one of the caller's
// ancestors, and who the caller is, it knows; and of failures it tells no cause: those are for the log, by runtime.WithObserver.
func WriteError(w http.ResponseWriter, r *http.Request, err error) bool {
	p, ok := problemOf(err)
	if !ok {
		ended := r.Context().Err()
		if ended == nil || !errors.Is(err, ended) {
			return false
		}
		p = unavailable("")
		p.Detail = "Time was up before the request's limits were known."
	}
	if errors.Is(r.Context().Err(), context.Canceled) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	p.write(w)
	return true
}

// pause is when to come back after a failure, in seconds: while the store does not answer, it is asked once a second.
const pause = 1

// problemOf returns what to say of err, if it is one of an acquire's.
func problemOf(err error) (problem, bool) {
	// What needs mending may show as an outage: it comes first, as with the failure policy.
	if _, ok := errors.AsType[*runtime.SetupError](err); ok {
		return problem{Status: http.StatusInternalServerError, Detail: "The limits of this service are not set up."}, true
	}
	if denied, ok := errors.AsType[*runtime.DeniedError](err); ok {
		return deniedProblem(denied), true
	}
	if exceeds, ok := errors.AsType[*runtime.CostExceedsBurstError](err); ok {
		return problem{
			Status: http.StatusBadRequest, Resource: exceeds.Resource,
			Detail: fmt.Sprintf("The request needs %d %s, and there are never more than %d at once: make it smaller.",
				exceeds.Requested, exceeds.Limit, exceeds.Burst),
			Limits: []limitProblem{{Limit: exceeds.Limit, Requested: exceeds.Requested, Burst: &exceeds.Burst}},
		}, true
	}
	if invalid, ok := errors.AsType[*runtime.InvalidError](err); ok {
		return problem{
			Status: http.StatusBadRequest, Resource: invalid.Resource, Detail: "The request's " + invalid.Field + " is not valid.",
		}, true
	}
	if down, ok := errors.AsType[*runtime.UnavailableError](err); ok {
		return unavailable(down.Resource), true
	}
	if contended, ok := errors.AsType[*runtime.ContendedError](err); ok {
		return unavailable(contended.Resource), true
	}
	return problem{}, false
}

func unavailable(resource string) problem {
	return problem{
		Status: http.StatusServiceUnavailable, Resource: resource, RetryAfter: new(int64(pause)),
		Detail: "The request's limits could not be looked up just now.",
	}
}

// deniedProblem names each limit that refused once, however many buckets did.
func deniedProblem(denied *runtime.DeniedError) problem {
	p := problem{
		Type: quotaExceeded, Status: http.StatusTooManyRequests, Resource: denied.Resource,
		RetryAfter: new(seconds(denied.RetryAfter)),
	}
	p.Detail = fmt.Sprintf("%s has %d of the %d that the request needs: retry after %d s.",
		denied.Limit, denied.Available, denied.Requested, *p.RetryAfter)
	for _, longest := range longest(denied.Refusals) {
		one := limitProblem{
			Limit: longest.Limit, Requested: longest.Requested, Available: new(longest.Available),
			RetryAfter: new(seconds(longest.RetryAfter)),
		}
		if longest.Resource != denied.Resource {
			one.Resource = longest.Resource
		}
		p.Limits, p.Violated = append(p.Limits, one), append(p.Violated, longest.Limit)
	}
	return p
}

// longest leaves of refusals the longest of each limit, in the order in which the limits come.
func longest(refusals []runtime.Refusal) []runtime.Refusal {
	var left []runtime.Refusal
next:
	for _, r := range refusals {
		for i, l := range left {
			if l.Resource == r.Resource && l.Limit == r.Limit {
				if r.RetryAfter > l.RetryAfter {
					left[i] = r
				}
				continue next
			}
		}
		left = append(left, r)
	}
	return left
}
