package redistest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// startLimit is how long a server may take to answer. Alone it takes some milliseconds, but beside compilers it may starve.
const startLimit = 30 * time.Second

// process is one running redis-server. It listens on this machine alone and keeps nothing on disk.
type process struct {
	cmd    *exec.Cmd
	addr   string
	dir    string
	output bytes.Buffer  // read it once exited is closed
	exited chan struct{} // closed once the process is gone
}

// launch starts a server on port, a free one if that is 0, and waits until it answers. Arguments are options of redis-server.
func launch(port int, args ...string) (*process, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("redis-server is not on PATH: apt-get install redis-server")
	}
	if port == 0 {
		if port, err = freePort(); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp("", "redistest")
	if err != nil {
		return nil, err
	}
	p := &process{dir: dir, addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), exited: make(chan struct{})}
	p.cmd = exec.Command(path, append([]string{
		"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--save", "", "--appendonly", "no", "--dir", dir,
	}, args...)...)
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	p.cmd.SysProcAttr = dieWithParent()
	started := make(chan error, 1)
	go func() {
		// Linux sends the parent-death signal when the thread that forked ends: this goroutine keeps it for as long as the child is.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.exited)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // it is ended by a signal; how it ended by itself is told by its output
		}
	}()
	if err := <-started; err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", path, err), os.RemoveAll(dir))
	}
	if err := p.awaitAnswer(); err != nil {
		_ = p.stop() // it may have gone by itself
		return nil, fmt.Errorf("start %s on port %d: %w; it printed:\n%s", path, port, err, &p.output)
	}
	return p, nil
}

// awaitAnswer asks until the server answers.
func (p *process) awaitAnswer() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), startLimit, fmt.Errorf("no answer for %v", startLimit))
	defer cancel()
	client := redis.NewClient(&redis.Options{Addr: p.addr, MaxRetries: -1})
	defer func() { _ = client.Close() }()
	return await(ctx, func() (bool, error) {
		select {
		case <-p.exited:
			return false, errors.New("it has exited")
		default:
			return client.Ping(ctx).Err() == nil, nil
		}
	})
}

// await asks done until that says so or fails, or ctx ends.
func await(ctx context.Context, done func() (bool, error)) error {
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

// stop ends the server and waits until it is gone. A second call does nothing.
func (p *process) stop() error {
	err := p.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("stop redis-server (process %d): %w", p.cmd.Process.Pid, err)
	}
	<-p.exited
	return os.RemoveAll(p.dir)
}

// freePort returns a port that nobody listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}
