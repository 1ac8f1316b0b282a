package grpclimit

import "google.golang.org/grpc/codes"

// Option configures an interceptor. There is none for errors: an interceptor further out sees each, and finds
// what led to it with errors.As.
type Option func(*options)

type options struct {
	releaseOn func(codes.Code) bool // nil: never
	metadata  bool
}

// ReleaseOn gives the lease back, if the handler has not settled it, where the handler returns with a code
// for which f is true: where failed calls cost nothing. A nil f does so never. It asks nothing of a call
// whose client has gone, whose deadline has passed or whose stream has broken: or who hangs up in the last
// moment would use the service for nothing.
func ReleaseOn(f func(codes.Code) bool) Option {
	return func(o *options) { o.releaseOn = f }
}

// Metadata shows callers their limits in the fields of draft-ietf-httpapi-ratelimit-headers-10:
//
//	ratelimit-policy: "rpm";q=100;w=60, "tpm";q=10000;w=60
//	ratelimit: "rpm";r=99;t=1, "tpm";r=12;t=90
//
// They are those of httplimit.Headers, and t is in whole seconds, too. They come in the header of an answer,
// and in the trailer of an error, as a client's retry policy takes a call that has a header for one that is
// served; so nothing is sent early, and a unary answer shows what is left once its handler has settled, a
// stream what is left when its first message is sent.
//
// Nothing is read for them. A degraded lease shows none, as nobody knows them; nor does a failure of the
// store.
func Metadata() Option {
	return func(o *options) { o.metadata = true }
}
