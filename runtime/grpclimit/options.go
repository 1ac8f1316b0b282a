package grpclimit

import (
	"time"

	"google.golang.org/grpc/codes"

	"github.com/sluice-go/sluice/runtime/internal/edge"
)

// Option configures an interceptor; a nil one is ignored. There is none for errors: an interceptor further
// out sees each, and finds what led to it with errors.As.
type Option func(*options)

type options struct {
	releaseOn func(codes.Code) bool // nil: never
	metadata  bool
	spread    time.Duration
}

// optionsOf returns the options that opts set.
func optionsOf(opts []Option) (o options) {
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	return o
}

// ReleaseOn releases the lease, if the handler has not ended it, when the handler returns a code for which
// f is true: for services where failed calls cost nothing. A nil f never does. It is not used for a call
// whose client has left, whose deadline has passed or whose stream has broken. Hanging up in the last moment
// must not make a call free.
func ReleaseOn(f func(codes.Code) bool) Option {
	return func(o *options) { o.releaseOn = f }
}

// Spread adds a random time of up to d to RetryInfo and to grpc-retry-pushback-ms of denials by limits with
// windows, as httplimit.Spread does to Retry-After. It panics if d is negative or above 24 hours.
func Spread(d time.Duration) Option {
	edge.CheckSpread("grpclimit", d)
	return func(o *options) { o.spread = d }
}

// Metadata shows callers their limits in the fields of draft-ietf-httpapi-ratelimit-headers-10:
//
//	ratelimit-policy: "rpm";q=100;w=60, "tpm";q=10000;w=60
//	ratelimit: "rpm";r=99;t=1, "tpm";r=12;t=90
//
// They are those of httplimit.Headers, with t in whole seconds too. An answer has them in its header, an
// error in its trailer: a client's retry policy takes a call with a header for one that is served. So nothing
// is sent early. A unary answer shows the balances after its handler has settled, a stream those at its first
// message.
//
// Nothing is read for them. A degraded lease and a failure of the store show none, since they are not known.
func Metadata() Option {
	return func(o *options) { o.metadata = true }
}
