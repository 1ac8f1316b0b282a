package process_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// TestSpans: calls of Envoy are spans, as requests are, whose parent is the span of Envoy. Calls to the store
// are within them. A request without a token has no route, and its method, which may be any text, is no name.
func TestSpans(t *testing.T) {
	c := &collector{T: t}
	s := httptest.NewServer(c)
	defer s.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
	t.Setenv("OTEL_TRACES_EXPORTER", "otlp")
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	folder := t.TempDir()
	const token = "0123456789abcdef"
	files := &running{T: t, folder: folder}
	files.write("envoy.yaml", rules)
	files.write("tokens", token)
	r := start(t, folder, "--envoy", filepath.Join(folder, "envoy.yaml"), "--grpc", "127.0.0.1:0",
		"--token-file", filepath.Join(folder, "tokens"))
	conn, err := grpc.NewClient(r.grpc.String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token,
		"traceparent", "00-"+traceID+"-"+spanID+"-01")
	if _, err := ratelimit.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, &ratelimit.RateLimitRequest{
		Domain: "gateway", Descriptors: []*common.RateLimitDescriptor{
			{Entries: []*common.RateLimitDescriptor_Entry{{Key: "user", Value: "alice"}}}}}); err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), "SECRET", r.url+acquire, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := r.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	r.stop()
	r.ended <- <-r.ended
	c.mu.Lock()
	defer c.mu.Unlock()
	spans := strings.Join(c.spans, "\n") + "\n"
	for _, want := range []string{
		"envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit " + traceID + " in " + spanID + "\n",
		"PutItem " + traceID + " in ", "HTTP ",
	} {
		if !strings.Contains(spans, want) {
			t.Errorf("spans %s, want %s", spans, want)
		}
	}
	all := c.all.String()
	for _, want := range []string{`"rpc.response.status_code"`, `"rpc.system.name"`} {
		if !strings.Contains(all, want) {
			t.Errorf("%s, want %s", all, want)
		}
	}
	if strings.Contains(all, "alice") || strings.Contains(all, "SECRET") {
		t.Errorf("a span has what a client has chosen: %s", all)
	}
}
