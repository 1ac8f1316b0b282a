package httplimit

import "net/http"

// Option configures Middleware.
type Option func(*options)

type options struct {
	onError   func(http.ResponseWriter, *http.Request, error)
	releaseOn func(status int) bool // nil: never
	styles    []style
}

func newOptions(opts []Option) *options {
	o := &options{onError: answer}
	for _, opt := range opts {
		opt(o)
	}
	return o
}

// answer is what Middleware does about an error unless OnError says otherwise.
func answer(w http.ResponseWriter, r *http.Request, err error) {
	if !WriteError(w, r, err) {
		problem{Status: http.StatusInternalServerError, Detail: "The request could not be looked into."}.write(w)
	}
}

// OnError sets what answers where next is not called: f gets ask's error or that of the acquire, and may pass
// it to WriteError. A nil f leaves it at that.
func OnError(f func(http.ResponseWriter, *http.Request, error)) Option {
	return func(o *options) {
		if f != nil {
			o.onError = f
		}
	}
}

// ReleaseOn gives the lease back, if next has not settled it, after an answer with a status for which f is
// true: where failed requests cost nothing. A nil f does so never. It asks nothing of a connection that was
// hijacked, nor of a request whose client has gone: or who hangs up in the last moment would use the service
// for nothing. Behind it, next has an http.ResponseWriter that flushes, is hijacked and reads from files as
// the server's, which http.ResponseController finds beneath it.
func ReleaseOn(f func(status int) bool) Option {
	return func(o *options) { o.releaseOn = f }
}

// Headers shows callers their limits in the fields of draft-ietf-httpapi-ratelimit-headers-10:
//
//	RateLimit-Policy: "rpm";q=100;w=60, "tpm";q=10000;w=60
//	RateLimit: "rpm";r=99;t=1, "tpm";r=12;t=90
//
// q is what comes back within w seconds, mostly the capacity; r is what is left of the burst, which may be
// more than q, in whole tokens; t is when the limit is full again. Of a cascade's buckets, the one that has
// least of a limit is shown. A denial shows of each limit that refused the bucket that refused longest, and
// when it has what was asked for: t is never later than Retry-After.
//
// The numbers are those of the answer's own acquire, and nothing is read for them. A degraded lease shows
// none, as nobody knows them; nor does a failure of the store. Of regions that share a limit, they are this
// region's share, and t of a share of nothing is when it may be more.
func Headers() Option {
	return func(o *options) { o.styles = append(o.styles, ietf) }
}

// XHeaders shows X-RateLimit-Limit, -Remaining and -Reset, of the one limit that refuses longest, or has
// least of its burst left: for clients that know these names. Reset is in seconds from now, as t is with
// Headers: it needs no clocks that agree.
func XHeaders() Option {
	return func(o *options) { o.styles = append(o.styles, triple) }
}

// OpenAIHeaders shows x-ratelimit-limit-requests, -remaining- and -reset-, and the same of tokens, as clients
// of OpenAI read them. The names are those of the limits that stand for these, such as limits.GPT4RPM and
// limits.GPT4TPM; where one is empty, or no limit of the resource's, its headers are left out. Reset is a
// duration in whole seconds, such as 1m30s.
func OpenAIHeaders(requests, tokens string) Option {
	return func(o *options) {
		o.styles = append(o.styles, pair("Requests", requests), pair("Tokens", tokens))
	}
}
