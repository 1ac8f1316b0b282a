package httplimit

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/internal/edge"
)

// Option configures Middleware. A nil one is ignored.
type Option func(*options)

type options struct {
	onError   func(http.ResponseWriter, *http.Request, error) // nil: none
	releaseOn func(status int) bool                           // nil: never
	styles    []style
	costs     []any // a nil pointer to the cost of each resource whose limits are named
	spread    time.Duration
	statuses  []status
}

// status is the arguments of Status.
type status struct {
	limit runtime.LimitName
	code  int
}

// optionsOf returns the options that opts set.
func optionsOf(opts []Option) *options {
	o := &options{}
	for _, opt := range opts {
		if opt != nil {
			opt(o)
		}
	}
	return o
}

// newOptions returns the options of a Middleware on the resource whose cost is C. It panics if they name
// limits of another one: requests would not show the mistake.
func newOptions[C any](opts []Option) *options {
	o := optionsOf(opts)
	for _, cost := range o.costs {
		if _, ok := cost.(*C); !ok {
			panic(fmt.Sprintf("httplimit: OpenAIHeaders has limits of %T on the resource of %T: pass this resource's",
				cost, (*C)(nil)))
		}
	}
	return o
}

// answer answers for next: by OnError, or else as Middleware says.
func (o *options) answer(w http.ResponseWriter, r *http.Request, err error, logger *slog.Logger) {
	if o.onError != nil {
		o.onError(w, r, err)
		return
	}
	if o.writeError(w, r, err) {
		return
	}
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		problem{Status: http.StatusRequestEntityTooLarge, Detail: "The request is too large."}.write(w)
		return
	}
	edge.LogAsk(r.Context(), logger, "path", r.URL.Path, err)
	problem{Status: http.StatusInternalServerError, Detail: edge.Undetermined}.write(w)
}

// OnError sets what answers where next is not called: f gets ask's error or that of the acquire, and may pass
// it to WriteError. Nothing is logged then. A nil f changes nothing.
func OnError(f func(http.ResponseWriter, *http.Request, error)) Option {
	return func(o *options) {
		if f != nil {
			o.onError = f
		}
	}
}

// ReleaseOn releases the lease, if next has not ended it, after an answer with a status for which f is
// true: for services where failed requests cost nothing. A nil f never does. It is not used for a hijacked
// connection, nor for a request whose client has left: hanging up in the last moment must not make a request
// free. With it, next gets an http.ResponseWriter that flushes, is hijacked and reads from files like the
// server's, which http.ResponseController finds beneath it.
func ReleaseOn(f func(status int) bool) Option {
	return func(o *options) { o.releaseOn = f }
}

// Spread adds a random time of up to d to the Retry-After of denials by limits with windows. Without it, all
// who were denied come back in the same second, when the window ends. A limit that refills is not concerned:
// its callers do not have one instant in common. Headers show when the window ends, without that time. Spread
// panics if d is negative or above 24 hours.
//
// OnError's function does not get it: pass it to WriteError there too.
func Spread(d time.Duration) Option {
	edge.CheckSpread("httplimit", d)
	return func(o *options) { o.spread = d }
}

// Status answers a denial by limit with code instead of 429: http.StatusPaymentRequired where a budget is
// exhausted, so that no client takes it for too many requests. If several limits deny, the first Status that
// names one of them decides. It takes part in WriteError too. Status panics if limit is nil, or if code is no
// status of an error.
func Status(limit runtime.LimitName, code int) Option {
	if limit == nil || code < 400 || code > 599 {
		panic(fmt.Sprintf("httplimit: Status(%v, %d): pass a limit, such as limits.GPT4TPM, and a status from "+
			"400 to "+
			"599, such as 402", limit, code))
	}
	return func(o *options) { o.statuses = append(o.statuses, status{limit, code}) }
}

// Headers shows callers their limits in the fields of draft-ietf-httpapi-ratelimit-headers-10:
//
//	RateLimit-Policy: "rpm";q=100;w=60, "tpm";q=10000;w=60
//	RateLimit: "rpm";r=99;t=1, "tpm";r=12;t=90
//
// q is the refill within w seconds, mostly the capacity. r is the balance in whole tokens, which may be more
// than q. t is the time until the limit is full again. Of a cascade's buckets, the one with the smallest
// balance of a limit is shown. A denial shows, for each limit that denied, the bucket with the longest wait,
// and when it has the requested tokens: t is never later than Retry-After.
//
// Of a limit with windows, q is its capacity and w the nominal length of a window. t is the time until the
// open window ends, and 0 if nothing of it is used. Of an in-flight limit, q is its capacity and r its free
// slots; it has neither w nor t, since nobody knows when a call ends.
//
// Of a limit of money, q and r are Decimals, rounded down to the three decimals that these can have, and qu
// is the currency: "month";q=500.0;qu="USD";w=2592000. XHeaders has all decimals.
//
// The numbers are those of the answer's own acquire, and nothing is read for them. A degraded lease and a
// failure of the store show none, since they are not known. For a limit divided among regions, they are this
// region's quota; if that is 0, t is the time when it may be more.
func Headers() Option {
	return func(o *options) { o.styles = append(o.styles, ietf) }
}

// XHeaders shows X-RateLimit-Limit, -Remaining and -Reset, of the one limit that denies for longest, or has
// the smallest part of its burst left: for clients that know these names. Reset is in seconds from now, like
// t of Headers: it needs no synchronized clocks.
func XHeaders() Option {
	return func(o *options) { o.styles = append(o.styles, triple) }
}

// OpenAIHeaders shows x-ratelimit-limit-requests, -remaining- and -reset-, and the same of tokens, as clients
// of OpenAI read them. The arguments are the limits to show, such as limits.GPT4RPM and limits.GPT4TPM.
// Middleware panics if its resource is another one. The headers of an argument that is nil are omitted. Reset
// is a duration in whole seconds, such as 1m30s.
func OpenAIHeaders[C any](requests, tokens runtime.LimitOf[C]) Option {
	return func(o *options) {
		o.costs = append(o.costs, (*C)(nil))
		o.styles = append(o.styles, pair("Requests", requests), pair("Tokens", tokens))
	}
}
