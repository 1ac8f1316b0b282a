//go:build unix

package process_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/child"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/serve/internal/process"
)

// asChild makes this test binary the program, in a process of its own.
const asChild = "SLUICE_TEST_SERVE"

// runChild is the program's main.
func runChild() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	p := process.Process{Stdout: os.Stdout, Stderr: os.Stderr, Reload: reload}
	os.Exit(p.Run(ctx, os.Args[1:]))
}

// own is a server in a process of its own.
type own struct {
	*running

	process *child.Process
	log     *bufio.Reader
}

// startOwn starts a server on a table, as a replica.
func startOwn(t *testing.T, folder, endpoint, replica string) *own {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "--file", filepath.Join(folder, "limits.yaml"), "--http", "127.0.0.1:0",
		"--endpoint", endpoint, "--table", "limits", "--replica", replica, "--drain", "0s")
	cmd.Env = append(os.Environ(), asChild+"=1")
	cmd.Stderr = write
	o := &own{running: &running{T: t, folder: folder, client: &http.Client{}}, log: bufio.NewReader(read)}
	if o.process, err = child.Start(cmd); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	t.Cleanup(func() {
		_ = o.process.Kill() // it may have ended
		o.client.CloseIdleConnections()
		_ = read.Close()
	})
	var line struct{ HTTP string }
	if err := json.Unmarshal([]byte(o.says(`"serving"`)), &line); err != nil {
		t.Fatal(err)
	}
	o.url = "http://" + line.HTTP
	return o
}

// says waits for a line of the log.
func (o *own) says(text string) string {
	o.Helper()
	for said := ""; ; {
		line, err := o.log.ReadString('\n')
		if said += line; err != nil {
			o.Fatalf("it does not say %s, but %s: %v", text, said, err)
		}
		if strings.Contains(line, text) {
			return line
		}
	}
}

// heldSchema has a limit of each sort that a killed process leaves something of. A day begins twelve hours
// from now, so that none ends while the test runs.
const heldSchema = `version: 1
owner: acme
revision: 1
go: {package: limits}
entities: {user: {}}
resources:
  api:
    limits:
      rpd: {capacity: 100, every: 30d}
      parallel: {capacity: 5, in_flight: true}
      charged: {capacity: 100, window: day, starts: "%02[1]d:00"}
      released: {capacity: 100, window: day, starts: "%02[1]d:00", on_crash: release}
    entities: {user: {}}
    on_unavailable: deny
`

// busy makes a socket whose process accepts nothing, with as many connections as can wait for that.
func busy(t *testing.T, path string) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		c, err := net.Dial("unix", path)
		if err != nil {
			return
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	t.Skip("this system lets more connections wait")
}

// later is a clock that a test sets ahead.
type later struct{ by atomic.Int64 } // ns

func (c *later) Now() time.Time                       { return time.Now().Add(time.Duration(c.by.Load())) }
func (*later) After(d time.Duration) <-chan time.Time { return time.After(d) }

// TestKilled: a lease of a process that was killed is charged once, and calls on it are answered with 410.
// Another replica does not take them. Its slots, and what limits with on_crash: release had reserved, come
// back two minutes later by the store's time, by calls to other servers. A signal reloads the files, and
// another one ends the process.
func TestKilled(t *testing.T) {
	clock := &later{}
	engine := memdynamo.New(memdynamo.WithClock(clock))
	table := httptest.NewServer(engine)
	defer table.Close()
	if _, err := operator.CreateTable(t.Context(), engine.Client(), "limits"); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	(&running{T: t, folder: folder}).write("limits.yaml",
		fmt.Sprintf(heldSchema, time.Now().UTC().Add(12*time.Hour).Hour()))
	one, two := startOwn(t, folder, table.URL, "one"), startOwn(t, folder, table.URL, "two")
	const holds = `{"entity": {"user": "1"},
		"cost": {"rpd": 40, "parallel": 4, "charged": 40, "released": 40}}`
	_, text := one.post(acquire, holds)
	var granted struct{ Lease string }
	if err := json.Unmarshal([]byte(text), &granted); err != nil {
		t.Fatal(err)
	}
	if err := one.process.Kill(); err != nil {
		t.Fatal(err)
	}
	again := startOwn(t, folder, table.URL, "one")
	ended := func() {
		t.Helper()
		settle := "/v1/leases/" + granted.Lease + "/settle"
		for range 2 {
			if status, text := again.post(settle, `{"cost": {"rpd": 1}}`); status != http.StatusGone {
				t.Errorf("%d %s", status, text)
			}
			if status, text := two.post(settle, `{}`); status != http.StatusMisdirectedRequest {
				t.Errorf("%d %s", status, text)
			}
		}
	}
	left := func(at *own, want string) {
		t.Helper()
		_, text := at.post("/v1/api/peek", `{"entity": {"user": "1"}}`)
		if !strings.HasPrefix(text, `{"available":`+want) {
			t.Errorf("%s, want %s", text, want)
		}
	}
	ended()
	left(two, `{"rpd":60,"parallel":1,"charged":60,"released":60}`)
	if status, text := two.post(acquire, holds); status != http.StatusTooManyRequests {
		t.Errorf("slots of a process that was killed just now: %d %s", status, text)
	}
	clock.by.Store(int64(2*time.Minute + 5*time.Second))
	status, text := again.post(acquire, `{"entity": {"user": "1"}, "cost": {"parallel": 4}}`)
	if status != http.StatusOK {
		t.Errorf("two minutes later: %d %s", status, text)
	}
	ended()
	left(two, `{"rpd":60,"parallel":1,"charged":60,"released":100}`)
	clock.by.Store(0) // a reload checks that the clocks agree
	if err := syscall.Kill(again.process.Pid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	again.says("were read again")
	if err := syscall.Kill(again.process.Pid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	again.says(`"ended"`)
}
