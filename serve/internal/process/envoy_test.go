package process_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/sluice-go/sluice/serve/internal/process"
)

const rules = `domain: gateway
rules:
  - match: {user: "*"}
    acquire: {resource: api, entity: {user: "{user}"}}
unmatched: deny
`

// TestEnvoy: the process serves Envoy beside HTTP, on the same buckets, reads its rules again, and drains.
func TestEnvoy(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "envoy.yaml")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	few := fmt.Appendf(nil, schema, 10)
	if err := os.WriteFile(filepath.Join(folder, "limits.yaml"), few, 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, folder, "--envoy", file, "--grpc", "127.0.0.1:0")
	conn, err := grpc.NewClient(r.grpc.String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	client := ratelimit.NewRateLimitServiceClient(conn)
	call := func(key string) *ratelimit.RateLimitResponse {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		a, err := client.ShouldRateLimit(ctx, &ratelimit.RateLimitRequest{Domain: "gateway",
			Descriptors: []*common.RateLimitDescriptor{{Entries: []*common.RateLimitDescriptor_Entry{
				{Key: key, Value: "alice"}}}}})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if _, text := r.post(acquire, user); !strings.Contains(text, `"rpm":9}`) {
		t.Error(text)
	}
	a := call("user")
	if a.OverallCode != ratelimit.RateLimitResponse_OK || a.Statuses[0].LimitRemaining != 8 {
		t.Errorf("%v", a)
	}
	r.write("envoy.yaml", strings.Replace(rules, `{user: "*"}`, `{usr: "*"}`, 1))
	r.reload <- os.Interrupt
	r.await("the files are not in force", 1)
	r.await("envoy.yaml:4:", 1)
	call("user")
	r.write("envoy.yaml", strings.NewReplacer(`{user: "*"}`, `{who: "*"}`, `"{user}"`, `"{who}"`).Replace(rules))
	r.reload <- os.Interrupt
	r.await("the files were read again", 1)
	if a := call("user"); a.OverallCode != ratelimit.RateLimitResponse_OVER_LIMIT {
		t.Errorf("%v", a)
	}
	if a := call("who"); a.OverallCode != ratelimit.RateLimitResponse_OK {
		t.Errorf("%v", a)
	}
	health, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil || health.Status != healthpb.HealthCheckResponse_SERVING {
		t.Error(health, err)
	}
	resp, err := r.client.Get(r.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if text, err := io.ReadAll(resp.Body); err != nil ||
		!strings.Contains(string(text), `sluice_serve_envoy_descriptors_total{sluice_outcome="ok"} 3`) {
		t.Errorf("%v %s", err, text)
	}
}

// TestEnvoyFlags: mistakes in flags and files end the process, with what to do.
func TestEnvoyFlags(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "envoy.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(rules, "api", "apj", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	limits := filepath.Join(folder, "limits.yaml")
	if err := os.WriteFile(limits, fmt.Appendf(nil, schema, 1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--check", "--envoy", file},
			`envoy.yaml:4:25: resource "apj" is none of limits.yaml: did you mean "api"?`},
		{[]string{"--check", "--envoy", "nowhere.yaml"}, "pass --envoy with the path of an envoy.yaml"},
		{[]string{"--envoy", file, "--grpc", "0.0.0.0:8081"}, "--grpc 0.0.0.0:8081 is open to other machines"},
		{[]string{"--envoy", file, "--grpc", "8081"}, `--grpc "8081" is no address`},
		{[]string{"--envoy", file, "--lease-max", "0s"}, "--lease-max 0s is out of range: pass 1s to 24h"},
	} {
		said := &output{}
		p := process.Process{Stdout: said, Stderr: said}
		args := append([]string{"--file", limits, "--http", "127.0.0.1:0"}, test.flags...)
		if code := p.Run(t.Context(), args); code == 0 || !strings.Contains(said.String(), test.want) {
			t.Errorf("%v: %d %s, want %s", test.flags, code, said, test.want)
		}
	}
}
