//go:build unix

package process_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

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
	for {
		line, err := o.log.ReadString('\n')
		if err != nil {
			o.Fatalf("it does not say %s: %v", text, err)
		}
		if strings.Contains(line, text) {
			return line
		}
	}
}

// TestKilled: a lease of a process that was killed is charged once, and calls on it are answered with 410.
// Another replica does not take them. A signal reloads the files, and another one ends the process.
func TestKilled(t *testing.T) {
	engine := memdynamo.New()
	table := httptest.NewServer(engine)
	defer table.Close()
	if _, err := operator.CreateTable(t.Context(), engine.Client(), "limits"); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	slow := strings.ReplaceAll(schema, "1m", "30d") // nothing comes back while the test runs
	(&running{T: t, folder: folder}).write("limits.yaml", fmt.Sprintf(slow, 100))
	one, two := startOwn(t, folder, table.URL, "one"), startOwn(t, folder, table.URL, "two")
	_, text := one.post(acquire, `{"entity": {"user": "1"}, "cost": {"rpm": 40}}`)
	var granted struct{ Lease string }
	if err := json.Unmarshal([]byte(text), &granted); err != nil {
		t.Fatal(err)
	}
	if err := one.process.Kill(); err != nil {
		t.Fatal(err)
	}
	again := startOwn(t, folder, table.URL, "one")
	settle := "/v1/leases/" + granted.Lease + "/settle"
	for range 2 {
		if status, text := again.post(settle, `{"cost": {"rpm": 1}}`); status != http.StatusGone {
			t.Errorf("%d %s", status, text)
		}
		if status, text := two.post(settle, `{"cost": {"rpm": 1}}`); status != http.StatusMisdirectedRequest {
			t.Errorf("%d %s", status, text)
		}
	}
	_, text = two.post("/v1/api/peek", `{"entity": {"user": "1"}}`)
	if want := `{"available":{"rpm":60}`; !strings.HasPrefix(text, want) {
		t.Errorf("%s, want %s", text, want)
	}
	if err := syscall.Kill(again.process.Pid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	again.says("were read again")
	if err := syscall.Kill(again.process.Pid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	again.says(`"ended"`)
}
