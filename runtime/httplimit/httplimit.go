// Package httplimit puts limits in front of net/http handlers.
//
//	mux.HandleFunc("POST /v1/chat", func(_ http.ResponseWriter, r *http.Request) {
//		_ = httplimit.Lease[limits.GPT4Cost](r.Context()).Settle(r.Context(), limits.GPT4Cost{TPM: 7_500})
//	})
//
//	limit := httplimit.Middleware(lim.GPT4, func(r *http.Request) (limits.GPT4Entity, limits.GPT4Cost, error) {
//		if r.URL.Path == "/healthz" {
//			return nil, limits.GPT4Cost{}, httplimit.ErrUnlimited
//		}
//		user := limits.User{ID: r.Header.Get("X-User"), Project: limits.Project{ID: "1"}}
//		return user, limits.GPT4Cost{TPM: 9_000}, nil
//	}, httplimit.Headers())
//	handler := limit(mux)
//
// [Middleware] acquires before it calls a handler. If that fails, it answers the request itself. A handler
// that acquires by itself leaves the error to [WriteError].
package httplimit

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/internal/edge"
)

// ErrUnlimited is returned by ask for a request that costs nothing: nothing is charged, and there is no
// lease.
var ErrUnlimited = errors.New("httplimit: not limited")

// Middleware acquires before next, and answers as WriteError does if it is denied or fails. ask returns the
// entity to charge and the cost. A resource's With sets how long an acquire may take, and what happens in an
// outage. An error of ask is answered like this:
//
//   - ErrUnlimited: next is called without a lease.
//   - An error that WriteError knows: as WriteError answers it.
//   - An *http.MaxBytesError: 413.
//   - Any other: 500 without the error's text, which goes to the resource's log (runtime.WithLogger).
//
// In shadow, next is called even if a limit denies, with a lease that is Shadowed then. No answer is a 429,
// and headers show the limits as always. Leave the headers out if callers should not slow down for them yet.
//
// Once next has returned, Middleware keeps the lease, unless next has ended it: exact costs need nothing. It
// releases the lease instead if next panics, or answers with a status that ReleaseOn names.
// http.ErrAbortHandler is not such a panic: it says that an answer broke off, maybe because the client hung
// up, after the work was done.
//
// A client that goes away changes nothing: next settles or releases in a defer, as both outlive the request's
// context. A handler that has hijacked the connection settles before it returns. A streamed answer settles
// when its stream ends; its headers show what was left when it began.
//
// The context of next's request is that of the lease: it ends with cause runtime.ErrLeaseLost if the lease is
// lost (runtime.Lease.Context), and when next has returned. If next hijacks the connection, a lease that
// holds something ends when the connection is closed, and the connection is closed if the lease is lost.
//
// ask, next and the functions of options are called by many goroutines at once. Middleware panics, before any
// request, if OpenAIHeaders names limits of another resource.
func Middleware[E runtime.Entity, C any](
	r runtime.Acquirer[E, C], ask func(*http.Request) (E, C, error), opts ...Option,
) func(http.Handler) http.Handler {
	o := newOptions[C](opts)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			entity, cost, err := ask(req)
			if errors.Is(err, ErrUnlimited) {
				next.ServeHTTP(w, req)
				return
			}
			if err != nil {
				o.answer(w, req, err, edge.Logger(r))
				return
			}
			lease, err := r.Acquire(req.Context(), entity, cost)
			if err != nil {
				if len(o.styles) > 0 {
					o.show(w.Header(), edge.Refused(err, edge.Lookup(r, entity)))
				}
				o.answer(w, req, err, edge.Logger(r))
				return
			}
			if len(o.styles) > 0 && !lease.Degraded() {
				o.show(w.Header(), edge.Admitted(lease.Balances()))
			}
			serve(next, w, req, lease, o.releaseOn)
		})
	}
}

// Lease returns the request's lease, to settle it: nil outside Middleware, and where C is not its resource's
// cost.
func Lease[C any](ctx context.Context) *runtime.Lease[C] {
	lease, _ := ctx.Value(leaseKey[C]{}).(*runtime.Lease[C])
	return lease
}

// leaseKey is one for each cost, so that a handler behind two Middlewares has both leases.
type leaseKey[C any] struct{}

// serve calls next, and sees to what becomes of lease.
func serve[C any](next http.Handler, w http.ResponseWriter, req *http.Request, lease *runtime.Lease[C],
	releaseOn func(int) bool) {
	parent := req.Context()
	ctx, end, holds := edge.Context(parent, lease)
	var seen *statusWriter
	if releaseOn != nil || holds { // else the handler has the server's own writer, with all that it can do
		seen = &statusWriter{ResponseWriter: w}
		if holds {
			seen.conn = func(conn net.Conn) net.Conn { return hold(parent, conn, lease) }
		}
		w = seen
	}
	returned := false
	defer func() {
		failure := recover()
		end()
		if !returned && failure != any(http.ErrAbortHandler) {
			lease.Release(parent)
		}
		if seen == nil || !seen.held {
			lease.Keep(parent)
		}
		if failure != nil {
			panic(failure) // the server logs it, with the stack that led to it
		}
	}()
	next.ServeHTTP(w, req.WithContext(context.WithValue(ctx, leaseKey[C]{}, lease)))
	returned = true
	// of the last, nobody hears the answer
	if releaseOn == nil || seen.hijacked || errors.Is(parent.Err(), context.Canceled) {
		return
	}
	if releaseOn(seen.code()) {
		lease.Release(parent)
	}
}
