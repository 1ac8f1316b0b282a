package telemetry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// Signals, as OpenTelemetry's variables name them.
const (
	metricsSignal = "METRICS"
	tracesSignal  = "TRACES"
)

// Protocols of OTLP.
const (
	overHTTP = "http/protobuf"
	overGRPC = "grpc"
)

// protocol returns by which protocol of OTLP a signal is sent, as OpenTelemetry's variables say: "" if it is
// not sent. An exporter of its own is there for Prometheus, which reads /metrics.
func protocol(signal string) (string, error) {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return "", nil
	}
	own := "OTEL_EXPORTER_OTLP_" + signal
	name := "OTEL_" + signal + "_EXPORTER"
	switch exporters := os.Getenv(name); exporters {
	case "":
		if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv(own+"_ENDPOINT") == "" {
			return "", nil
		}
	default:
		all := strings.Split(exporters, ",")
		for _, e := range all {
			if !slices.Contains([]string{"otlp", "none", "prometheus"}, e) {
				return "", fmt.Errorf("%s: exporter %q is unknown: write otlp or none", name, e)
			}
		}
		if !slices.Contains(all, "otlp") {
			return "", nil
		}
	}
	for _, name := range []string{own + "_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		switch p := os.Getenv(name); p {
		case "":
		case overHTTP, overGRPC:
			return p, nil
		default:
			return "", fmt.Errorf("%s: protocol %q is unknown: write %s or %s", name, p, overHTTP, overGRPC)
		}
	}
	return overHTTP, nil
}

// otlp is what sends metrics and spans by OTLP. Either may be nil.
type otlp struct {
	metrics sdkmetric.Reader
	spans   *sdktrace.TracerProvider
}

// newOTLP returns what OpenTelemetry's variables ask for. It connects to nothing.
func newOTLP(ctx context.Context, of *resource.Resource) (o otlp, err error) {
	byMetrics, err := protocol(metricsSignal)
	if err != nil {
		return o, err
	}
	byTraces, err := protocol(tracesSignal)
	if err != nil {
		return o, err
	}
	if byMetrics != "" {
		var exporter sdkmetric.Exporter
		if byMetrics == overGRPC {
			exporter, err = otlpmetricgrpc.New(ctx)
		} else {
			exporter, err = otlpmetrichttp.New(ctx)
		}
		if err != nil {
			return o, err
		}
		o.metrics = sdkmetric.NewPeriodicReader(exporter)
	}
	if byTraces != "" {
		var exporter sdktrace.SpanExporter
		if byTraces == overGRPC {
			exporter, err = otlptracegrpc.New(ctx)
		} else {
			exporter, err = otlptracehttp.New(ctx)
		}
		if err != nil {
			return o, err
		}
		o.spans = sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(of))
	}
	return o, nil
}

// describe returns what sends the metrics: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES have precedence.
func describe(ctx context.Context, version string) (*resource.Resource, error) {
	of, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName("sluice-serve"), semconv.ServiceVersion(version)),
		resource.WithFromEnv())
	if errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w: write key=value, separated by commas", err)
	}
	return of, err
}
