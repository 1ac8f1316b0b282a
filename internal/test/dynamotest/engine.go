package dynamotest

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/internal/test/dynamolocal"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// engineVariable, set to "local", has the tests run on DynamoDB Local.
const engineVariable = "SLUICE_DYNAMODB"

// OnLocal reports that this run is for DynamoDB Local, for tests of what it words or does otherwise than AWS,
// whom the engine in the process follows.
func OnLocal(t testing.TB) bool {
	t.Helper()
	switch name := os.Getenv(engineVariable); name {
	case "":
		return false
	case "local":
		return true
	default:
		t.Fatalf("%s=%s: want local, or nothing for the engine in the process", engineVariable, name)
		return false
	}
}

// engines are this test binary's.
type engines struct {
	mu     sync.Mutex
	inMain bool // Main will stop what is started
	local  local
	memory memory
}

// local is DynamoDB Local: server and client are set once started, or err is.
type local struct {
	started bool
	server  *dynamolocal.Server
	client  *dynamodb.Client
	err     error
}

// memory is the engine in the process; server serves it to those who need an endpoint.
type memory struct {
	engine *memdynamo.Engine
	client *dynamodb.Client
	server *httptest.Server
}

// shared is the one package-level variable. Tests of a package have nothing but the process in common, and a
// DynamoDB Local of its own would cost each of them a second.
var shared engines

// credentials is in the goroutine in which the SDK asks for credentials. It goes on for some seconds after a
// call that has left, and then ends by itself.
const credentials = "github.com/aws/aws-sdk-go-v2/aws.(*CredentialsCache).singleRetrieve"

// Main runs the tests, stops the engines that they started, and fails where goroutines are left. A package's
// TestMain calls it and nothing else; the exit code is that of the tests.
//
// The tests have no AWS_CA_BUNDLE: each client would keep a pool of its certificates, 0.6 MB in most systems.
func Main(m *testing.M) {
	if err := os.Unsetenv("AWS_CA_BUNDLE"); err != nil {
		panic(err)
	}
	shared.mu.Lock()
	shared.inMain = true
	shared.mu.Unlock()
	code := m.Run() // the testing package exits with it once TestMain returns
	err := shared.stop()
	if err == nil && code == 0 { // a test that has failed may well leave some
		err = goleak.Find(goleak.IgnoreAnyFunction(credentials))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dynamotest:", err)
		os.Exit(1)
	}
}

// Client returns the client of this test binary's engine, which the first call starts. All tests get the same
// client; one that needs other options makes its own from client.Options().
func Client(t testing.TB) *dynamodb.Client {
	t.Helper()
	if OnLocal(t) {
		return Local(t)
	}
	return shared.inProcess().client
}

// Endpoint returns the URL at which Client's engine answers, for programs that take one.
func Endpoint(t testing.TB) string {
	t.Helper()
	if OnLocal(t) {
		return aws.ToString(Local(t).Options().BaseEndpoint)
	}
	url, err := shared.serve()
	if err != nil {
		t.Fatal(err)
	}
	return url
}

// Local returns the client of DynamoDB Local, for tests that are about it. They skip in a run that is not for
// it.
func Local(t testing.TB) *dynamodb.Client {
	t.Helper()
	RequireLocal(t)
	client, err := shared.startLocal(t.Context())
	if err != nil {
		t.Fatalf("no DynamoDB Local, which %s=local asks for: %v", engineVariable, err)
	}
	return client
}

// NewLocal starts a DynamoDB Local for this test alone, which its end stops, and returns its client. It is
// for tests that write many records to streams, which make each later write of an engine slower. They skip
// in a run that is not for it.
func NewLocal(t testing.TB) *dynamodb.Client {
	t.Helper()
	RequireLocal(t)
	server, err := dynamolocal.Start(t.Context(), dynamolocal.Options{})
	if err != nil {
		t.Fatalf("no DynamoDB Local, which %s=local asks for: %v", engineVariable, err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return withLateReplies(server.Client())
}

// RequireLocal skips a test that is about DynamoDB Local in a run that is not for it.
func RequireLocal(t testing.TB) {
	t.Helper()
	if !OnLocal(t) {
		t.Skipf("this test needs DynamoDB Local: run `make test-local`, which sets %s=local", engineVariable)
	}
}

var errNoMain = errors.New("the package has no TestMain that calls dynamotest.Main")

// startLocal starts DynamoDB Local at the first call; later ones return what that one did, its error too. ctx
// bounds the start.
func (e *engines) startLocal(ctx context.Context) (*dynamodb.Client, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.inMain {
		return nil, errNoMain
	}
	l := &e.local
	if !l.started {
		l.started = true
		if l.server, l.err = dynamolocal.Start(ctx, dynamolocal.Options{}); l.err == nil {
			l.client = withLateReplies(l.server.Client())
		}
	}
	return l.client, l.err
}

func (e *engines) inProcess() *memory {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.memory.engine == nil {
		e.memory.engine = memdynamo.New()
		e.memory.client = e.memory.engine.Client()
	}
	return &e.memory
}

// serve serves the engine in the process from the first call on, until Main stops it.
func (e *engines) serve() (url string, err error) {
	memory := e.inProcess()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.inMain {
		return "", errNoMain
	}
	if memory.server == nil {
		memory.server = httptest.NewServer(memory.engine)
	}
	return memory.server.URL, nil
}

func (e *engines) stop() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.memory.server != nil {
		e.memory.server.Close()
	}
	if e.local.server != nil {
		return e.local.server.Stop()
	}
	return nil
}
