package redistest

import (
	"fmt"
	"net"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/test/redisserver"
)

// Server is a redis-server of one test's own, which it may stop.
type Server struct {
	t       testing.TB
	process *redisserver.Server
}

// StartServer starts a redis-server for this test alone; the test's end stops it. args are options of
// redis-server. Without SLUICE_REDIS=server the test skips.
func StartServer(t testing.TB, args ...string) *Server {
	t.Helper()
	RequireServer(t)
	s := &Server{t: t}
	s.launch(0, args)
	t.Cleanup(s.Stop)
	return s
}

func (s *Server) launch(port int, args []string) {
	s.t.Helper()
	p, err := redisserver.Start(port, args...)
	if err != nil {
		s.t.Fatalf("no redis-server, which %s=server asks for: %v", engineVariable, err)
	}
	s.process = p
}

// Addr is where it listens, as host:port.
func (s *Server) Addr() string { return s.process.Addr() }

// Client returns a client of it, which the test's end closes.
func (s *Server) Client() redis.UniversalClient {
	s.t.Helper()
	return dial(s.t, s.Addr())
}

// New returns a Redis on it with no keys.
func (s *Server) New() *Redis {
	s.t.Helper()
	return newRedis(s.t, s.Addr())
}

// Stop ends it, as a crash does: connections break, and then nobody listens.
func (s *Server) Stop() {
	s.t.Helper()
	if err := s.process.Stop(); err != nil {
		s.t.Error(err)
	}
}

// Restart ends it and starts another one at its place, which knows neither keys nor scripts: what a fail-over
// to a replica looks like that has received nothing.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.launch(s.port(), nil)
}

func (s *Server) port() int {
	_, port, _ := net.SplitHostPort(s.Addr())
	n, err := strconv.Atoi(port)
	if err != nil {
		s.t.Fatal(fmt.Errorf("the port of %s: %w", s.Addr(), err))
	}
	return n
}
