package redistest

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/internal/test/redisserver"
)

const (
	// engineVariable, set to "server", has the tests run on a redis-server.
	engineVariable = "SLUICE_REDIS"
	// addressVariable names one that runs already, as host:port, for tests that do not need one of their own.
	addressVariable = "SLUICE_REDIS_ADDR"
)

// OnServer reports that this run is for a redis-server.
func OnServer(t testing.TB) bool {
	t.Helper()
	switch name := os.Getenv(engineVariable); name {
	case "":
		return false
	case "server":
		return true
	default:
		t.Fatalf("%s=%s: want server, or nothing for miniredis", engineVariable, name)
		return false
	}
}

// RequireServer skips a test that is about redis-server in a run that is not for it.
func RequireServer(t testing.TB) {
	t.Helper()
	if !OnServer(t) {
		t.Skipf("this test needs redis-server: run `make test-redis`, which sets %s=server", engineVariable)
	}
}

// engine is this test binary's server.
type engine struct {
	mu      sync.Mutex
	inMain  bool // Main will stop what is started
	started bool
	server  *redisserver.Server
	err     error
}

// shared is the one package-level variable, as dynamotest has it: tests of a package have nothing but the
// process in common.
var shared engine

// Main runs the tests, stops the server that they started, and fails where goroutines are left. A package's
// TestMain calls it and nothing else; the exit code is that of the tests.
func Main(m *testing.M) {
	shared.mu.Lock()
	shared.inMain = true
	shared.mu.Unlock()
	code := m.Run() // the testing package exits with it once TestMain returns
	err := shared.stop()
	if err == nil && code == 0 { // a test that has failed may well leave some
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "redistest:", err)
		os.Exit(1)
	}
}

// address returns where the server of this test binary listens, which the first call starts.
func (e *engine) address(t testing.TB) string {
	t.Helper()
	if addr := os.Getenv(addressVariable); addr != "" {
		return addr
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.inMain {
		t.Fatal("the package has no TestMain that calls redistest.Main")
	}
	if !e.started {
		e.started = true
		e.server, e.err = redisserver.Start(0)
	}
	if e.err != nil {
		t.Fatalf("no redis-server, which %s=server asks for: %v", engineVariable, e.err)
	}
	return e.server.Addr()
}

func (e *engine) stop() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server != nil {
		return e.server.Stop()
	}
	return nil
}
