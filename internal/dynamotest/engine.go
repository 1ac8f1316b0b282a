package dynamotest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/internal/dynamolocal"
)

const requireVariable = "SLUICE_REQUIRE_DYNAMODB"

// engine is this test binary's engine.
type engine struct {
	mu      sync.Mutex
	inMain  bool // Main will stop what is started
	started bool // server and client are set, or err is
	server  *dynamolocal.Server
	client  *dynamodb.Client
	err     error
}

// shared is the one package-level variable. Tests of a package have nothing but the process in common, and an engine
// of its own would cost each of them a second.
var shared engine

// Main runs the tests and then stops the engine, if one of them started it. A package's TestMain calls it and nothing
// else; the exit code is that of the tests.
func Main(m *testing.M) {
	shared.mu.Lock()
	shared.inMain = true
	shared.mu.Unlock()
	m.Run() // the testing package exits with its code once TestMain returns
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "dynamotest:", err)
		os.Exit(1)
	}
}

// Client returns the client of this test binary's engine, which the first call starts. All tests get the same client;
// one that needs other options makes its own from client.Options().
func Client(t testing.TB) *dynamodb.Client {
	t.Helper()
	client, err := shared.start(t.Context())
	if err != nil {
		SkipOrFail(t, err)
	}
	return client
}

// SkipOrFail ends a test that has no engine because of err, an error of [dynamolocal.Start]: it skips when the machine
// lacks what the engine needs, and fails on any other error or when SLUICE_REQUIRE_DYNAMODB is 1.
func SkipOrFail(t testing.TB, err error) {
	t.Helper()
	switch {
	case !errors.Is(err, dynamolocal.ErrMissing):
		t.Fatalf("no DynamoDB: %v", err)
	case os.Getenv(requireVariable) == "1":
		t.Fatalf("no DynamoDB, and %s=1 requires one: %v", requireVariable, err)
	default:
		t.Skipf("no DynamoDB: %v", err)
	}
}

// start starts the engine at the first call; later ones return what that one did, its error too. ctx bounds the start.
func (e *engine) start(ctx context.Context) (*dynamodb.Client, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.inMain {
		return nil, errors.New("the package has no TestMain that calls dynamotest.Main")
	}
	if !e.started {
		e.started = true
		if e.server, e.err = dynamolocal.Start(ctx, dynamolocal.Options{}); e.err == nil {
			e.client = e.server.Client()
		}
	}
	return e.client, e.err
}

func (e *engine) stop() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server == nil {
		return nil
	}
	return e.server.Stop()
}
