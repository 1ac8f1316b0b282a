package httplimit

import (
	"errors"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/internal/edge"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

// WriteError writes the answer to r for the error of an acquire, a wait or a settle. It reports whether err
// was such an error: if not, it writes nothing. Nothing but headers may have been written before.
//
//   - A *runtime.DeniedError: 429 with Retry-After, in whole seconds and never early. Status sets another
//     status for some limits. A limit with window: never has no Retry-After: time does not fill it.
//   - A *runtime.CostTooLargeError or *runtime.InvalidError: 400 without Retry-After, since repeating
//     does not help.
//   - A *runtime.UnknownNameError: 404, or 503 with Retry-After if the name was not looked up.
//   - A *runtime.UnavailableError, *runtime.ContendedError or *runtime.QueueFullError, or
//     runtime.ErrMaxWait: 503 with Retry-After.
//   - A *runtime.SetupError: 500.
//   - The end of r's own context: 503 with Retry-After if its deadline has passed, and 503 without a body if
//     it was canceled. Without an answer the server would send 200, and a shutdown cancels requests whose
//     callers still wait.
//
// The body is an RFC 9457 problem, which names the resource and its limits. It names no entity, since that
// may be one of the caller's ancestors. Of failures it gives no cause: causes are for the log, by
// runtime.WithObserver. Of opts, only Spread and Status take part.
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
	p := problemOf(&a)
	if status := o.statusOf(err); status != 0 {
		p.Status = status
	}
	p.write(w)
	return true
}

// problemOf returns what to say of a, for which somebody waits.
func problemOf(a *edge.Answer) problem {
	p := problem{Status: statusOf(a.Reason), Resource: a.Resource, Detail: a.Detail}
	switch a.Reason {
	case edge.Denied, edge.Unavailable, edge.Late:
		p.RetryAfter = seconds(a.RetryAfter)
	}
	if a.Reason == edge.Denied {
		p.Type = quotaExceeded
	}
	for _, l := range a.Limits {
		one := limitProblem{Limit: l.Limit}
		if l.Resource != a.Resource {
			one.Resource = l.Resource
		}
		if l.Unit != "" {
			one.Money = &funds{Currency: l.Unit, Requested: money.Amount(l.Requested)}
		} else {
			one.Requested = &l.Requested
		}
		one.add(a.Reason, &l)
		if a.Reason == edge.Denied {
			p.Violated = append(p.Violated, l.Limit)
		}
		p.Limits = append(p.Limits, one)
	}
	return p
}

// add sets the numbers of p beside Requested: what is available if l denied, else what a full bucket has.
func (p *limitProblem) add(reason edge.Reason, l *edge.Limit) {
	field, n := &p.Burst, l.Burst
	if reason == edge.Denied {
		field, n = &p.Available, l.Available
		p.RetryAfter, p.Resets = seconds(l.RetryAfter), l.Resets.UTC()
	}
	switch {
	case p.Money == nil:
		*field = &n
	case reason == edge.Denied:
		p.Money.Available = new(money.Amount(n))
	default:
		p.Money.Capacity = new(money.Amount(n))
	}
}

// seconds returns when to come back, nil if that depends on a grant.
func seconds(retryAfter time.Duration) *int64 {
	if retryAfter == store.UntilGrant {
		return nil
	}
	return new(edge.Seconds(retryAfter))
}

// statusOf returns the status that Status has set for err, or 0.
func (o *options) statusOf(err error) int {
	denied, ok := errors.AsType[*runtime.DeniedError](err)
	if !ok {
		return 0
	}
	for _, s := range o.statuses {
		if denied.By(s.limit) {
			return s.code
		}
	}
	return 0
}

func statusOf(reason edge.Reason) int {
	switch reason {
	case edge.Denied:
		return http.StatusTooManyRequests
	case edge.Exceeds, edge.Invalid:
		return http.StatusBadRequest
	case edge.Unknown:
		return http.StatusNotFound
	case edge.Setup:
		return http.StatusInternalServerError
	default:
		return http.StatusServiceUnavailable
	}
}
