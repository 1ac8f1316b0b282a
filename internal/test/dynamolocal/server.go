package dynamolocal

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// EndpointVariable names the environment variable that has the URL of an engine to use instead of starting
// one.
const EndpointVariable = "SLUICE_DYNAMODB_ENDPOINT"

const (
	// startLimit is how long an engine may take to answer. Alone it takes 1 s, but in `go test ./...` it
	// competes with compilers, the race detector and the engines of other packages.
	startLimit = 60 * time.Second

	// refusedLimit is how long the port of an engine that somebody else runs may refuse connections: nobody
	// starts it, unless the two were started together.
	refusedLimit = 3 * time.Second

	// portTries is how often Start takes another port after somebody else got the one it had found free.
	portTries = 3
)

// Options say how Start finds and runs the engine. The zero value is what tests and examples want; with any
// other, SLUICE_DYNAMODB_ENDPOINT is not looked at.
type Options struct {
	// Dir is the folder with the engine's jars. Empty: that of SLUICE_DYNAMODB_LOCAL, else .build/dynamodb-local
	// in the root of the module around the working directory.
	Dir string
	// Port is the TCP port to listen on. 0: a free one.
	Port int
}

// Server is a running engine. Its methods may be called by several goroutines at once.
type Server struct {
	endpoint string
	process  *process // nil when somebody else started the engine
	stop     func() error

	mu         sync.Mutex
	transports []*http.Transport // of its clients
}

// Start starts an engine with no tables and returns once it answers. ctx bounds the start alone: the engine
// then runs until Stop, or until this process ends. If something is missing on this machine, the error says
// what to install.
func Start(ctx context.Context, o Options) (*Server, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("no answer for %v", startLimit))
	defer cancel()
	if endpoint := os.Getenv(EndpointVariable); endpoint != "" && o == (Options{}) {
		return attach(ctx, endpoint, refusedLimit)
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, errors.New(javaMissing)
	}
	dir, err := folder(o.Dir)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		s, err := run(ctx, java, dir, o)
		if _, taken := errors.AsType[portTakenError](err); taken && o.Port == 0 && try < portTries {
			continue
		}
		return s, err
	}
}

// attach uses an engine that somebody else runs, and waits for it no longer than refused while nobody listens
// there.
func attach(ctx context.Context, endpoint string, refused time.Duration) (*Server, error) {
	s := &Server{endpoint: endpoint, stop: func() error { return nil }}
	if err := s.awaitAnswer(ctx, refused); err != nil {
		return nil, fmt.Errorf("use the DynamoDB at %s (%s): %w", endpoint, EndpointVariable, err)
	}
	return s, nil
}

// portTakenError is a port that somebody else listens on.
type portTakenError int

func (port portTakenError) Error() string {
	return fmt.Sprintf("port %d is taken: choose another with PORT=", int(port))
}

// run launches one engine and waits until it answers.
func run(ctx context.Context, java, dir string, o Options) (*Server, error) {
	// The port has to be free, so that the engine launched here answers on it and not another one.
	port, err := freePort(o.Port)
	if err != nil {
		return nil, err
	}
	p, err := launch(java, dir, port)
	if err != nil {
		return nil, err
	}
	s := &Server{
		endpoint: "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		process:  p,
		stop:     sync.OnceValue(p.stop),
	}
	if err := s.awaitAnswer(ctx, startLimit); err != nil {
		_ = p.stop() // it may have gone by itself, which startError tells
		return nil, startError(java, port, p, err)
	}
	return s, nil
}

// startError explains why an engine that was launched does not answer.
func startError(java string, port int, p *process, err error) error {
	output := p.output.String()
	if cure := fromOutput(java, output); cure != nil {
		return cure
	}
	if strings.Contains(output, "Address already in use") {
		return portTakenError(port)
	}
	return fmt.Errorf("start DynamoDB Local on port %d: %w; it printed:\n%s", port, err, output)
}

// freePort returns port if nobody listens on it, or, where it is 0, one from the kernel that nobody listens
// on. The engine listens on all addresses, so it is asked for there too, not on 127.0.0.1 alone.
func freePort(port int) (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(port)))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return 0, portTakenError(port)
	case err != nil:
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Endpoint returns the engine's URL, for an SDK client's base endpoint or a command's --endpoint.
func (s *Server) Endpoint() string { return s.endpoint }

// Exited returns a channel that is closed once the engine's process is gone, in whatever way: Stop then says
// what it printed. For an engine that somebody else started it is nil.
func (s *Server) Exited() <-chan struct{} {
	if s.process == nil {
		return nil
	}
	return s.process.Exited()
}

// Stop ends the engine and returns once its process is gone; an error says that it had died before, and what
// it printed. For an engine that somebody else started, Stop closes the connections of its clients alone. A
// second call returns what the first did.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.transports {
		t.CloseIdleConnections()
	}
	return s.stop()
}
