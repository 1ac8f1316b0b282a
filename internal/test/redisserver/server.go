// Package redisserver runs redis-server as a child process, for tests and benchmarks.
package redisserver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/test/child"
)

// StartLimit is how long a server may take to answer. Alone it takes some milliseconds, but beside compilers
// it may starve.
const StartLimit = 30 * time.Second

// Server is one running redis-server. It listens on this machine alone and keeps nothing on disk.
type Server struct {
	process *child.Process
	addr    string
	dir     string
	output  bytes.Buffer // read it once the process is gone
}

// programVariable names the program to start in place of redis-server, such as valkey-server.
const programVariable = "SLUICE_REDIS_SERVER"

// Start starts a server on port, a free one if that is 0, and waits until it answers. Arguments are options
// of redis-server. If this machine has none, the error says what to install.
func Start(port int, args ...string) (*Server, error) {
	program := cmp.Or(os.Getenv(programVariable), "redis-server")
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, fmt.Errorf("%s is not on PATH: apt-get install %[1]s", program)
	}
	if port == 0 {
		if port, err = FreePort(); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp("", "redisserver")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	cmd := exec.Command(path, append([]string{
		"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--save", "", "--appendonly", "no", "--dir", dir,
	}, args...)...)
	cmd.Stdout, cmd.Stderr = &s.output, &s.output
	if s.process, err = child.Start(cmd); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.awaitAnswer(); err != nil {
		_ = s.Stop() // it may have gone by itself
		return nil, fmt.Errorf("start %s on port %d: %w; it printed:\n%s", path, port, err, &s.output)
	}
	return s, nil
}

// Addr is where it listens, as host:port.
func (s *Server) Addr() string { return s.addr }

// awaitAnswer asks until the server answers.
func (s *Server) awaitAnswer() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), StartLimit,
		fmt.Errorf("no answer for %v", StartLimit))
	defer cancel()
	client := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1})
	defer func() { _ = client.Close() }()
	return Await(ctx, func() (bool, error) {
		select {
		case <-s.process.Exited():
			return false, errors.New("it has exited")
		default:
			return client.Ping(ctx).Err() == nil, nil
		}
	})
}

// Await asks done until that says so or fails, or ctx ends.
func Await(ctx context.Context, done func() (bool, error)) error {
	pause := time.NewTicker(10 * time.Millisecond)
	defer pause.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Stop ends the server and waits until it is gone. A second call does nothing.
func (s *Server) Stop() error {
	if err := s.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop redis-server: %w", err)
	}
	return os.RemoveAll(s.dir)
}

// FreePort returns a port that nobody listens on.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}
