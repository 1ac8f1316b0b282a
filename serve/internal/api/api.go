// Package api serves the HTTP API: acquires, and what becomes of their leases, for programs in any language.
package api

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path"
	"time"

	"github.com/sluice-go/sluice/serve/internal/leases"
	"github.com/sluice-go/sluice/serve/internal/limits"
	"github.com/sluice-go/sluice/serve/internal/once"
	"github.com/sluice-go/sluice/serve/internal/openapi"
	"github.com/sluice-go/sluice/serve/internal/peers"
	"github.com/sluice-go/sluice/serve/internal/tokens"
)

// Bounds of a request.
const (
	mostBody   = 64 << 10 // bytes
	mostClaims = 50
	mostKey    = 255 // bytes of an Idempotency-Key
	mostWait   = 10 * time.Minute
)

// slowest is the time in which a body is read.
const slowest = 10 * time.Second

// AwaitBody bounds the time in which the client of a request that has just begun sends its body. The server
// waits for all of it, whatever becomes of the request.
func AwaitBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(slowest)) // it fails in a test
	}
}

// AwaitReader bounds the time in which the client reads an answer. The server may wait for the body first.
func AwaitReader(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(2 * slowest)) // it fails in a test
}

// Config is what an API serves.
type Config struct {
	Limits *limits.Current
	Leases *leases.Holder
	Keys   *once.Keys
	Logger *slog.Logger
	// Tokens returns the tokens that clients may send. If there are none, requests need no token.
	Tokens func() []string
	// Metrics serves /metrics; nil serves none.
	Metrics http.Handler
	// Peers hold leases that this process does not; nil if there are none.
	Peers *peers.Peers
	// Version is that of the program, for /openapi.json.
	Version string
	// Measure is called for each request that was answered; it may be nil.
	Measure func(ctx context.Context, route string, status int, took time.Duration)
	// Draining ends when the server begins to drain: from then on it admits nothing.
	Draining context.Context //nolint:containedctx // it is the server's state, not a call's
}

// API is the HTTP API.
type API struct {
	Config

	mux *http.ServeMux
}

// New returns the API.
func New(c Config) *API {
	a := &API{Config: c, mux: http.NewServeMux()}
	for pattern, serve := range map[string]func(*call) error{
		"POST /v1/{resource}/acquire":     (*call).acquire,
		"POST /v1/{resource}/peek":        (*call).peek,
		"POST /v1/acquire":                (*call).acquireAll,
		"POST /v1/leases/{lease}/settle":  (*call).settle,
		"POST /v1/leases/{lease}/more":    (*call).more,
		"POST /v1/leases/{lease}/keep":    (*call).keep,
		"POST /v1/leases/{lease}/release": (*call).release,
		"POST /v1/leases/{lease}/alive":   (*call).alive,
	} {
		a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, serve) })
	}
	a.mux.HandleFunc("GET "+peers.Path, func(w http.ResponseWriter, r *http.Request) {
		a.serve(w, r, (*call).introduce)
	})
	a.mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, r *http.Request) {
		a.serve(w, r, (*call).describe)
	})
	if c.Metrics != nil {
		a.mux.Handle("GET /metrics", c.Metrics)
	}
	a.mux.HandleFunc("/", noSuchPath)
	return a
}

func noSuchPath(w http.ResponseWriter, _ *http.Request) {
	problem{Status: http.StatusNotFound, Detail: "There is no such path, or it takes another method: see " +
		"/openapi.json."}.write(w)
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began, seen := time.Now(), &statusWriter{ResponseWriter: w, code: http.StatusOK}
	caller, ok := tokens.Caller(a.Tokens(), r.Header.Get("Authorization"))
	if caller != "" {
		r = r.WithContext(context.WithValue(r.Context(), callerKey{}, caller))
	}
	switch {
	case !ok:
		seen.Header().Set("WWW-Authenticate", "Bearer")
		answer(http.StatusUnauthorized,
			"The request has no valid token: send it as `Authorization: Bearer TOKEN`.").write(seen)
	case path.Clean(r.URL.Path) != r.URL.Path: // a name is empty: the mux would redirect to another path
		noSuchPath(seen, r)
	default:
		a.mux.ServeHTTP(seen, r) // sets r's Pattern
	}
	if a.Measure != nil {
		a.Measure(r.Context(), r.Pattern, seen.code, time.Since(began))
	}
}

// statusWriter notes the status of an answer, and bounds the time in which the client reads it.
type statusWriter struct {
	http.ResponseWriter

	code    int
	bounded bool
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(code int) {
	w.bound()
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *statusWriter) Write(p []byte) (int, error) {
	w.bound()
	return w.ResponseWriter.Write(p)
}

// bound is AwaitReader, at the first write.
func (w *statusWriter) bound() {
	if !w.bounded {
		w.bounded = true
		AwaitReader(w.ResponseWriter)
	}
}

// Unwrap lets http.ResponseController find the server's writer.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

type callerKey struct{}

// call is a request of the API.
type call struct {
	*API

	w  http.ResponseWriter
	r  *http.Request
	in *limits.Limits // in force when the request came; held until it ends
}

// serve calls a handler, and answers the error that it returns.
func (a *API) serve(w http.ResponseWriter, r *http.Request, handler func(*call) error) {
	c := &call{API: a, w: w, r: r, in: a.Limits.Use()}
	defer c.in.Drop()
	err := handler(c)
	if errors.Is(err, leases.ErrElsewhere) && a.Peers != nil && r.Header.Get(peers.Forwarded) == "" {
		err = c.forward()
	}
	if err != nil {
		c.fail(err)
	}
}

// body reads the request's body.
func (c *call) body() ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, mostBody))
	if err != nil { // the deadline stays: the server does not wait for the rest
		c.w.Header().Set("Connection", "close")
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return nil, answer(http.StatusRequestEntityTooLarge, "The body is larger than 64 KiB: send less.")
		}
		return nil, answer(http.StatusRequestTimeout, "The body did not arrive in 10 s.")
	}
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Time{}) // the request may wait for longer
	return body, nil
}

// reply answers with JSON.
func (c *call) reply(body []byte) {
	h := c.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	_, _ = c.w.Write(body) // it fails if the client is gone
}

// describe is GET /openapi.json.
func (c *call) describe() error {
	text, err := openapi.Document(c.in.All, c.Version)
	if err != nil {
		return err
	}
	c.reply(append(text, '\n'))
	return nil
}

// done answers that a call that returns nothing has succeeded.
func (c *call) done() error {
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

type clientKey struct{}

// WithClient returns a context for the requests of a connection.
func WithClient(ctx context.Context, client *leases.Client) context.Context {
	return context.WithValue(ctx, clientKey{}, client)
}

// client returns the connection of the request.
func (c *call) client() *leases.Client {
	client, _ := c.r.Context().Value(clientKey{}).(*leases.Client)
	return client
}
