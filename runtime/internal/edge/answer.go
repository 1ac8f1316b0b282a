// Package edge makes the answers that callers get about their limits, whatever the protocol:
// runtime/httplimit and runtime/grpclimit put them into theirs.
//
// An answer names no entity, which may be one of the caller's ancestors; the caller knows who it is. Of a
// failure it names no cause: causes are for the log, by runtime.WithObserver.
package edge

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

// Reason is why a call is not served.
type Reason int

// All reasons there are.
const (
	Denied      Reason = iota // tokens are missing: later
	Exceeds                   // it costs more than its limit ever holds: repeating does not help
	Invalid                   // something is wrong with it: repeating does not help
	Unknown                   // it is for a name that there is not: repeating does not help
	Unavailable               // its limits could not be looked up, or too many wait for them: soon
	Setup                     // the service has to be fixed
	Late                      // its own deadline has passed
	Abandoned                 // its caller has left: nobody reads the answer
)

// Answer is what a caller gets in place of its result.
type Answer struct {
	Reason     Reason
	Resource   string        // "" if it concerns none
	Detail     string        // a sentence; "" if nobody reads it
	RetryAfter time.Duration // when to come back, if Denied, Unavailable or Late
	Limits     []Limit       // that refuse, each once even if several buckets do
}

// Limit is one that refuses. Its numbers are in Unit: money.Amounts of that currency, or whole tokens if it
// is empty.
type Limit struct {
	Resource, Limit      string
	Unit                 string
	Requested, Available int64
	Burst                int64         // if Exceeds
	RetryAfter           time.Duration // if Denied
	Resets               time.Time     // if Denied: the end of the window; zero if the limit refills
}

// pause is when to come back after a failure: while the store does not answer, it is asked once a second.
const pause = time.Second

// Of returns the answer for err, with which an acquire, a wait or a settle failed, to a caller whose context
// is ctx. ok is false for other errors. spread is that of the option Spread.
func Of(ctx context.Context, err error, spread time.Duration) (a Answer, ok bool) {
	a, ok = of(err, spread)
	ended := ctx.Err()
	switch {
	case !ok && (ended == nil || !errors.Is(err, ended)):
		return Answer{}, false
	case errors.Is(ended, context.Canceled):
		return Answer{Reason: Abandoned}, true
	case !ok:
		return Answer{
			Reason: Late, RetryAfter: pause, Detail: "Time was up before the request's limits were known.",
		}, true
	}
	return a, true
}

// of is Of for a caller that still waits.
func of(err error, spread time.Duration) (Answer, bool) {
	// A wrong installation may show as an outage: it is checked first, as with the failure policy.
	if _, ok := errors.AsType[*store.SetupError](err); ok {
		return Answer{Reason: Setup, Detail: "The limits of this service are not set up."}, true
	}
	if denied, ok := errors.AsType[*store.DeniedError](err); ok {
		return refusal(denied, later(spread)), true
	}
	if exceeds, ok := errors.AsType[*store.CostTooLargeError](err); ok {
		return Answer{
			Reason: Exceeds, Resource: exceeds.Resource,
			Detail: tooLarge(exceeds),
			Limits: []Limit{{
				Resource: exceeds.Resource, Limit: exceeds.Limit, Unit: exceeds.Unit,
				Requested: exceeds.Requested, Burst: exceeds.Burst,
			}},
		}, true
	}
	if invalid, ok := errors.AsType[*store.InvalidError](err); ok {
		return Answer{
			Reason: Invalid, Resource: invalid.Resource, Detail: "The request's " + invalid.Field + " is not valid.",
		}, true
	}
	if unknown, ok := errors.AsType[*store.UnknownNameError](err); ok {
		if unknown.Unread {
			return unavailable(unknown.Resource), true
		}
		return Answer{
			Reason: Unknown, Resource: unknown.Resource, Detail: "There is no " + unknown.Resource + " of this name.",
		}, true
	}
	if down, ok := errors.AsType[*store.UnavailableError](err); ok {
		return unavailable(down.Resource), true
	}
	if contended, ok := errors.AsType[*store.ContendedError](err); ok {
		return unavailable(contended.Resource), true
	}
	if full, ok := errors.AsType[*runtime.QueueFullError](err); ok {
		return Answer{
			Reason: Unavailable, Resource: full.Resource, RetryAfter: pause,
			Detail: "Too many requests wait for the same limits already.",
		}, true
	}
	if errors.Is(err, runtime.ErrMaxWait) {
		return unavailable(""), true
	}
	return Answer{}, false
}

// tooLarge is the detail of an answer for a cost that is above the burst.
func tooLarge(e *store.CostTooLargeError) string {
	if e.Unit != "" {
		return fmt.Sprintf("The request needs %s of %s, which never has more than %s: make it smaller.",
			store.Text(e.Unit, e.Requested), e.Limit, store.Text(e.Unit, e.Burst))
	}
	return fmt.Sprintf("The request needs %d %s, and there are never more than %d at once: make it smaller.",
		e.Requested, e.Limit, e.Burst)
}

// Number writes a number of a limit without its unit: 0.25, or 250 tokens as 250.
func Number(unit string, n int64) string {
	if unit == "" {
		return strconv.FormatInt(n, 10)
	}
	return money.Amount(n).String()
}

func unavailable(resource string) Answer {
	return Answer{
		Reason: Unavailable, Resource: resource, RetryAfter: pause,
		Detail: "The request's limits could not be looked up just now.",
	}
}

// refusal returns the answer for denied. Callers that wait for the end of a window come back by more later.
func refusal(denied *store.DeniedError, more time.Duration) Answer {
	a := Answer{
		Reason: Denied, Resource: denied.Resource, RetryAfter: after(denied.RetryAfter, denied.Resets, more),
	}
	for _, r := range longest(denied.Refusals) {
		l := Limit{
			Resource: r.Resource, Limit: r.Limit, Unit: r.Unit, Requested: r.Requested, Available: r.Available,
			RetryAfter: after(r.RetryAfter, r.Resets, more), Resets: r.Resets,
		}
		a.RetryAfter, a.Limits = max(a.RetryAfter, l.RetryAfter), append(a.Limits, l)
	}
	a.Detail = fmt.Sprintf("%s has %s of the %s that the request needs%s.", denied.Limit,
		Number(denied.Unit, denied.Available), store.Text(denied.Unit, denied.Requested), When(a.RetryAfter))
	return a
}

// When says when to come back after a denial, in words that follow what is missing.
func When(retryAfter time.Duration) string {
	if retryAfter == store.UntilGrant {
		return ", until more is granted"
	}
	return fmt.Sprintf(": retry after %d s", Seconds(retryAfter))
}

// after returns wait, and more if it is for the end of a window.
func after(wait time.Duration, resets time.Time, more time.Duration) time.Duration {
	if resets.IsZero() || wait == store.UntilGrant {
		return wait
	}
	return min(time.Duration(bucket.Add(int64(wait), int64(more))), store.UntilGrant-1)
}

// longest returns the longest refusal of each limit, in the order in which the limits come.
func longest(refusals []store.Refusal) []store.Refusal {
	var left []store.Refusal
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

// Seconds returns d in whole seconds, rounded up.
func Seconds(d time.Duration) int64 {
	whole := int64(d / time.Second)
	if d%time.Second > 0 {
		whole++
	}
	return max(0, whole)
}
