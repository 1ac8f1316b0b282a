// Package telemetry measures the server by OpenTelemetry: what the library measures, and requests, leases and
// reloads. Prometheus reads it, and OTLP sends it, with spans, if variables of the environment say where.
package telemetry

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/metrics"
	"github.com/sluice-go/sluice/runtime/otellimit"
	"github.com/sluice-go/sluice/serve/internal/envoy"
	"github.com/sluice-go/sluice/serve/internal/leases"
)

// scope is the name of the meter.
const scope = "github.com/sluice-go/sluice/serve"

// Telemetry is what the server measures. It is safe for concurrent use.
type Telemetry struct {
	// Observer measures what the library does.
	Observer *runtime.Observer
	// Handler serves the metrics to Prometheus.
	Handler http.Handler

	meters *sdkmetric.MeterProvider
	spans  *sdktrace.TracerProvider // nil if none are sent

	meter    metric.Meter
	requests metric.Float64Histogram
	labels   sync.Map // of requests: []metric.RecordOption by answered
	reloads  metric.Int64Counter

	descriptors metric.Int64Counter
}

// New returns a Telemetry with nothing measured yet, of a version of the program. The variables of
// OpenTelemetry (OTEL_*) say what it sends, and where. It has to be closed.
func New(ctx context.Context, version string) (*Telemetry, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := promexporter.New(promexporter.WithRegisterer(registry), promexporter.WithoutScopeInfo())
	if err != nil {
		return nil, err
	}
	of, err := describe(ctx, version)
	if err != nil {
		return nil, err
	}
	sent, err := newOTLP(ctx, of)
	if err != nil {
		return nil, err
	}
	options := []sdkmetric.Option{sdkmetric.WithReader(reader), sdkmetric.WithResource(of)}
	if sent.metrics != nil {
		options = append(options, sdkmetric.WithReader(sent.metrics))
	}
	t := &Telemetry{
		Handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		meters:  sdkmetric.NewMeterProvider(options...), spans: sent.spans,
	}
	t.meter = t.meters.Meter(scope)
	return t, t.measure()
}

// measure makes the instruments of t.
func (t *Telemetry) measure() (err error) {
	var tracers trace.TracerProvider = noop.NewTracerProvider()
	if t.spans != nil {
		tracers = t.spans
	}
	if t.Observer, err = otellimit.New(otellimit.WithMeterProvider(t.meters),
		otellimit.WithTracerProvider(tracers)); err != nil {
		return err
	}
	if t.requests, err = t.meter.Float64Histogram("http.server.request.duration", metric.WithUnit("s"),
		metric.WithDescription("How long requests took, the waiting included."),
		metric.WithExplicitBucketBoundaries(metrics.DecisionDuration.Buckets...)); err != nil {
		return err
	}
	if t.descriptors, err = t.meter.Int64Counter("sluice.serve.envoy.descriptors",
		metric.WithUnit("{descriptor}"), metric.WithDescription("Descriptors of Envoy's requests, by outcome. "+
			"Those that are unmatched, negative or have an override are counted as that, too.")); err != nil {
		return err
	}
	t.reloads, err = t.meter.Int64Counter("sluice.serve.reloads", metric.WithUnit("{reload}"),
		metric.WithDescription("Reads of the files after the start, by whether they took effect."))
	return err
}

// Close sends what was measured last. It fails with ctx's error, or that of sending.
func (t *Telemetry) Close(ctx context.Context) error {
	err := t.meters.Shutdown(ctx)
	if t.spans != nil {
		err = errors.Join(err, t.spans.Shutdown(ctx))
	}
	return err
}

// Watch measures the leases of h.
func (t *Telemetry) Watch(h *leases.Holder) error {
	open, err := t.meter.Int64ObservableGauge("sluice.serve.leases.open", metric.WithUnit("{lease}"),
		metric.WithDescription("Leases that are open, those of acquires under way included."))
	if err != nil {
		return err
	}
	most, err := t.meter.Int64ObservableGauge("sluice.serve.leases.most", metric.WithUnit("{lease}"),
		metric.WithDescription("Leases that may be open (--max-leases)."))
	if err != nil {
		return err
	}
	ended, err := t.meter.Int64ObservableCounter("sluice.serve.leases.ended", metric.WithUnit("{lease}"),
		metric.WithDescription("Leases that have ended, by how: those that expired had no client any more."))
	if err != nil {
		return err
	}
	_, err = t.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := h.Stats()
		o.ObserveInt64(open, s.Open)
		o.ObserveInt64(most, s.Most)
		for how, n := range s.Ended {
			if how != leases.Unknown {
				o.ObserveInt64(ended, n, metric.WithAttributes(attribute.String("sluice.outcome", how.String())))
			}
		}
		return nil
	}, open, most, ended)
	return err
}

// Reloaded counts a read of the files, which took effect if ok.
func (t *Telemetry) Reloaded(ctx context.Context, ok bool) {
	outcome := "applied"
	if !ok {
		outcome = "failed"
	}
	t.reloads.Add(ctx, 1, metric.WithAttributes(attribute.String("sluice.outcome", outcome)))
}

// Descriptor counts what became of a descriptor of Envoy's.
func (t *Telemetry) Descriptor(ctx context.Context, what envoy.Outcome) {
	t.descriptors.Add(ctx, 1, metric.WithAttributes(attribute.String("sluice.outcome", string(what))))
}

// answered is a route and a status: there are few.
type answered struct {
	route  string
	status int
}

// Request measures a request: by its route, never its path, and by its status.
func (t *Telemetry) Request(ctx context.Context, route string, status int, took time.Duration) {
	of := answered{route, status}
	labels, ok := t.labels.Load(of)
	if !ok {
		labels = []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(of.attributes()...))}
		t.labels.Store(of, labels)
	}
	known, _ := labels.([]metric.RecordOption)
	t.requests.Record(ctx, took.Seconds(), known...)
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		if route != "" { // it was refused before it had one
			span.SetName(route)
		}
		span.SetAttributes(of.attributes()...)
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, http.StatusText(status))
		}
	}
}

// attributes returns what metrics and spans say of a.
func (a answered) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{semconv.HTTPRoute(a.route), semconv.HTTPResponseStatusCode(a.status)}
}
