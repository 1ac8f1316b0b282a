// Package server is the part of the process that answers clients: the HTTP API, health, metrics, and the open
// leases. Protocols beside HTTP use its Leases.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/serve/internal/api"
	"github.com/sluice-go/sluice/serve/internal/leases"
	"github.com/sluice-go/sluice/serve/internal/limits"
	"github.com/sluice-go/sluice/serve/internal/once"
	"github.com/sluice-go/sluice/serve/internal/peers"
)

// Bounds of connections. They hold off clients that are slow, or too many.
const (
	mostConns   = 20_000
	mostHeader  = 16 << 10 // bytes
	slowHeader  = 5 * time.Second
	idleConn    = 10 * time.Minute // a client with an open lease may think for so long
	keysByLease = 4                // keys that are remembered, for each lease that may be open
)

// Config is what a Server serves.
type Config struct {
	Limits  *limits.Current
	Version string // of the program
	Replica string // names the place where the process runs, and the leases that it holds
	Most    int    // number of leases that may be open
	Tokens  func() []string
	Logger  *slog.Logger
	Metrics http.Handler // nil serves none
	Peers   *peers.Peers // nil if there are none
	// Measure is called for each request that was answered; it may be nil.
	Measure func(ctx context.Context, route string, status int, took time.Duration)
	// Trace returns a handler with spans of its requests; it may be nil.
	Trace func(http.Handler) http.Handler
	// End ends the servers of other protocols, at the latest when ctx ends; it may be nil.
	End func(ctx context.Context)
}

// Server serves clients. It is safe for concurrent use.
type Server struct {
	Leases *leases.Holder

	config   Config
	http     *http.Server
	draining context.Context //nolint:containedctx // the server's state
	drain    context.CancelFunc
	ready    atomic.Bool
	conns    atomic.Int64
}

// New returns a Server. Run has to run, and Ready has to be called once it can serve.
func New(c Config) *Server {
	s := &Server{Leases: leases.New(leases.NewNames(c.Replica), c.Most), config: c}
	s.draining, s.drain = context.WithCancel(context.Background())
	calls := api.New(api.Config{
		Limits: c.Limits, Leases: s.Leases, Keys: once.New(keysByLease * c.Most), Logger: c.Logger,
		Tokens: c.Tokens, Draining: s.draining, Metrics: c.Metrics,
		Measure: c.Measure, Version: c.Version, Peers: c.Peers,
	})
	traced := http.Handler(calls)
	if c.Trace != nil {
		traced = c.Trace(traced)
	}
	s.http = &http.Server{
		Handler:        s.recovered(programs(s.route(traced))),
		MaxHeaderBytes: mostHeader, ReadHeaderTimeout: slowHeader, IdleTimeout: idleConn,
		ConnContext: withClient,
		ErrorLog:    log.New(quiet{}, "", 0), // what clients do wrong in TLS or HTTP is no news
	}
	return s
}

// route returns calls with probes, which need no token.
func (s *Server) route(calls http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		probe := r.Method == http.MethodGet || r.Method == http.MethodHead
		switch {
		case probe && r.URL.Path == "/healthz":
			health(w, true)
		case probe && r.URL.Path == "/readyz":
			health(w, s.ready.Load() && s.draining.Err() == nil)
		default:
			calls.ServeHTTP(w, r)
		}
	})
}

// programs returns next for programs alone: no page in a browser calls. A browser says so in each of its
// requests. A page of a foreign host may look like one of this server: its owner can give the host's name the
// address of this machine (DNS rebinding).
func programs(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.AwaitBody(w, r)
		site := r.Header.Get("Sec-Fetch-Site")
		switch {
		case r.Method == http.MethodGet || r.Method == http.MethodHead: // they change nothing
		case r.Header.Get("Origin") != "" || site != "" && site != "none":
			api.AwaitReader(w)
			api.RefusePage(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// recovered returns next with a line in the log for a panic: a mistake in this program. The line has the
// places in the code, and not the panic's text, which may have a client's.
func (s *Server) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			what := recover()
			if what == nil {
				return
			}
			if what != http.ErrAbortHandler { //nolint:errorlint // the value itself is one that net/http knows
				s.config.Logger.Error("a request has panicked: report it", slog.String("stack", string(debug.Stack())))
			}
			panic(http.ErrAbortHandler) // it ends the connection
		}()
		next.ServeHTTP(w, r)
	})
}

// quiet discards what is written to it.
type quiet struct{}

// Write implements io.Writer.
func (quiet) Write(p []byte) (int, error) { return len(p), nil }

// health answers a probe.
func health(w http.ResponseWriter, well bool) {
	api.AwaitReader(w)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if !well {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte("not ready\n"))
		return
	}
	_, _ = w.Write([]byte("ok\n"))
}

// Handler returns what answers requests. If a request does not come from Serve, no connection keeps its
// leases open.
func (s *Server) Handler() http.Handler { return s.http.Handler }

// Ready has /readyz say that the server is ready.
func (s *Server) Ready() { s.ready.Store(true) }

// Draining ends when the server is about to end, and admits nothing more.
func (s *Server) Draining() context.Context { return s.draining }

// Run ends leases whose clients are gone, until ctx ends.
func (s *Server) Run(ctx context.Context) { s.Leases.Run(ctx) }

// Bound returns l with a bound on the connections of all protocols together.
func (s *Server) Bound(l net.Listener) net.Listener { return &listener{l, s} }

// Serve answers the connections of l, with TLS unless config is nil, until Drain has ended. It fails if l
// does.
func (s *Server) Serve(l net.Listener, config *tls.Config) error {
	l = s.Bound(l)
	if config != nil {
		l = tls.NewListener(l, config)
	}
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Drain refuses acquires from now on, and waits until no lease is open or ctx ends. Then it ends connections,
// and closes the Limits, which ends the leases that are left. It fails with the error of closing them.
func (s *Server) Drain(ctx context.Context) error {
	s.drain()
	left := s.Leases.Drain(ctx)
	ctx = context.WithoutCancel(ctx)
	s.disconnect(ctx)
	if left != nil {
		s.config.Logger.Warn("leases are open at the end: what they hold comes back, and the rest stays charged",
			slog.Int64("open", s.Leases.Stats().Open))
	}
	end, cancel := context.WithTimeout(ctx, closing)
	defer cancel()
	return s.config.Limits.Close(end)
}

// Times for the end. A client that is slow takes none of what the last writes have.
const (
	leaving = 10 * time.Second // for requests under way
	closing = 10 * time.Second // for the last writes
)

// disconnect ends connections, of all protocols at once.
func (s *Server) disconnect(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaving)
	defer cancel()
	var under sync.WaitGroup
	defer under.Wait()
	if s.config.End != nil {
		under.Go(func() { s.config.End(ctx) })
	}
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.http.Close()
	}
}

// listener accepts connections that have a client of leases.
type listener struct {
	net.Listener

	server *Server
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.server.conns.Add(1) <= mostConns {
			return &conn{Conn: c, server: l.server}, nil
		}
		l.server.conns.Add(-1)
		_ = c.Close()
	}
}

// conn is a connection and its client.
type conn struct {
	net.Conn

	server *Server
	client leases.Client
	closed atomic.Bool
}

// Close implements net.Conn.
func (c *conn) Close() error {
	if !c.closed.Swap(true) {
		c.client.Close()
		c.server.conns.Add(-1)
	}
	return c.Conn.Close()
}

// withClient is http.Server.ConnContext.
func withClient(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if own, ok := c.(*conn); ok {
		return api.WithClient(ctx, &own.client)
	}
	return ctx
}
