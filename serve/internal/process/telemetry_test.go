package process_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-go/sluice/serve/internal/process"
)

// collector stands in for a collector of OpenTelemetry's.
type collector struct {
	*testing.T

	mu       sync.Mutex
	all      bytes.Buffer // requests, as they came
	header   string       // x-key of the last one
	metrics  []string     // names
	spans    []string     // name, trace, and whether it has a parent
	services []string     // that sent
	metricspb.UnimplementedMetricsServiceServer
}

// ServeHTTP is OTLP over HTTP.
func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil && r.Header.Get("Content-Encoding") == "gzip" {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(z)
		}
	}
	if err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.Errorf("%v, %v", r.Header, err)
	}
	c.note(r.Header.Get("X-Key"))
	var m metricspb.ExportMetricsServiceRequest
	var s tracepb.ExportTraceServiceRequest
	switch r.URL.Path {
	case "/v1/metrics":
		err = proto.Unmarshal(body, &m)
	case "/v1/traces":
		err = proto.Unmarshal(body, &s)
	default:
		c.Errorf("path %s", r.URL.Path)
	}
	if err != nil {
		c.Error(err)
	}
	c.add(&m, &s)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (c *collector) note(header string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.header = header
}

// Export is OTLP over gRPC, of metrics.
func (c *collector) Export(
	_ context.Context, m *metricspb.ExportMetricsServiceRequest,
) (*metricspb.ExportMetricsServiceResponse, error) {
	c.add(m, &tracepb.ExportTraceServiceRequest{})
	return &metricspb.ExportMetricsServiceResponse{}, nil
}

// add notes what was sent.
func (c *collector) add(m *metricspb.ExportMetricsServiceRequest, s *tracepb.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all.WriteString(m.String() + s.String())
	for _, of := range m.ResourceMetrics {
		c.sender(of.Resource)
		for _, scope := range of.ScopeMetrics {
			for _, metric := range scope.Metrics {
				c.metrics = append(c.metrics, metric.Name)
			}
		}
	}
	for _, of := range s.ResourceSpans {
		c.sender(of.Resource)
		for _, scope := range of.ScopeSpans {
			for _, span := range scope.Spans {
				c.spans = append(c.spans, span.Name+" "+hex.EncodeToString(span.TraceId)+" in "+
					hex.EncodeToString(span.ParentSpanId))
			}
		}
	}
}

// sender notes which service has sent. The caller has locked c.
func (c *collector) sender(of *resourcepb.Resource) {
	for _, a := range of.Attributes {
		if a.Key == "service.name" {
			c.services = append(c.services, a.Value.GetStringValue())
		}
	}
}

// calls has a process serve a call of a sampled caller, and ends it.
func calls(t *testing.T) {
	t.Helper()
	r := start(t, t.TempDir())
	if status, text := r.post(acquire, user,
		"traceparent", "00-"+traceID+"-"+spanID+"-01"); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	r.stop()
	r.ended <- <-r.ended
}

const traceID, spanID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"

// TestCollector: the variables of OpenTelemetry have a collector get metrics and spans, which name no entity.
// The spans of the server have the caller's for a parent.
func TestCollector(t *testing.T) {
	c := &collector{T: t}
	s := httptest.NewServer(c)
	defer s.Close()
	calls(t)
	if n := c.all.Len(); n > 0 {
		t.Errorf("without variables, %d bytes were sent", n)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	calls(t)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range []string{"sluice.decisions", "sluice.store.calls", "http.server.request.duration",
		"sluice.serve.leases.open"} {
		if !slices.Contains(c.metrics, name) {
			t.Errorf("metrics %v, want %s", c.metrics, name)
		}
	}
	spans := strings.Join(c.spans, "\n")
	for _, want := range []string{
		"POST /v1/{resource}/acquire " + traceID + " in " + spanID, "PutItem " + traceID + " in ",
	} {
		if !strings.Contains(spans, want) {
			t.Errorf("spans %s, want %s", spans, want)
		}
	}
	if c.header != "secret" || c.services[0] != "sluice-serve" || strings.Contains(c.all.String(), "alice") {
		t.Errorf("header %q, services %v\n%s", c.header, c.services, &c.all)
	}
}

// TestCollectorOverGRPC: the variables choose signals, the protocol and the service's name.
func TestCollectorOverGRPC(t *testing.T) {
	c := &collector{T: t}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	metricspb.RegisterMetricsServiceServer(s, c)
	go func() { _ = s.Serve(l) }()
	defer s.Stop()
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://"+l.Addr().String())
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	t.Setenv("OTEL_SERVICE_NAME", "limits")
	calls(t)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.metrics, "sluice.decisions") || len(c.spans) > 0 || c.services[0] != "limits" {
		t.Errorf("metrics %v, spans %v, services %v", c.metrics, c.spans, c.services)
	}
}

// TestCollectorVariables: a variable that asks for what is not there is an error, and a collector that does
// not answer is a warning that has no password.
func TestCollectorVariables(t *testing.T) {
	file := filepath.Join(t.TempDir(), "limits.yaml")
	(&running{T: t, folder: filepath.Dir(file)}).write("limits.yaml", strings.Replace(schema, "%d", "1", 1))
	for variable, want := range map[string]string{
		"OTEL_METRICS_EXPORTER=statsd":         `exporter "statsd" is unknown: write otlp or none`,
		"OTEL_EXPORTER_OTLP_PROTOCOL=http":     `protocol "http" is unknown: write http/protobuf or grpc`,
		"OTEL_RESOURCE_ATTRIBUTES=environment": "write key=value, separated by commas",
	} {
		t.Run(variable, func(t *testing.T) {
			name, value, _ := strings.Cut(variable, "=")
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
			t.Setenv(name, value)
			var said output
			p := process.Process{Stdout: &said, Stderr: &said}
			if code := p.Run(t.Context(), []string{"--file", file, "--http", "127.0.0.1:0"}); code != 1 ||
				!strings.Contains(said.String(), want) {
				t.Errorf("exit code %d, %s; want %s", code, &said, want)
			}
		})
	}
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://u:password@127.0.0.1:1/v1/metrics")
	r := start(t, t.TempDir())
	r.stop()
	r.ended <- <-r.ended
	if said := r.said.String(); !strings.Contains(said, "check the variables OTEL_*") ||
		strings.Contains(said, "password") {
		t.Errorf("it says %s", said)
	}
}
