package otellimit_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/otlptranslator"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/sluice-go/sluice/runtime/metrics"
	"github.com/sluice-go/sluice/runtime/otellimit"
)

// exported is a metric as Prometheus sees it.
type exported struct {
	Type    dto.MetricType
	Labels  []string
	Buckets []float64
}

// gathered plays everything through OpenTelemetry's own exporter.
func gathered(t *testing.T, opts ...promexporter.Option) map[string]exported {
	t.Helper()
	registry := prometheus.NewRegistry()
	reader, err := promexporter.New(append(opts, promexporter.WithRegisterer(registry))...)
	if err != nil {
		t.Fatal(err)
	}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	observer, err := otellimit.New(
		otellimit.WithMeterProvider(provider), otellimit.WithTracerProvider(noop.NewTracerProvider()))
	if err != nil {
		t.Fatal(err)
	}
	play(t, observer)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]exported{}
	for _, family := range families {
		if family.GetName() == "target_info" {
			continue
		}
		labels := map[string]bool{}
		var buckets []float64
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if !strings.HasPrefix(label.GetName(), "otel_scope_") {
					labels[label.GetName()] = true
				}
			}
			buckets = nil
			for _, b := range m.GetHistogram().GetBucket() {
				buckets = append(buckets, b.GetUpperBound())
			}
		}
		all[family.GetName()] = exported{family.GetType(), slices.Sorted(maps.Keys(labels)), buckets}
	}
	return all
}

// TestPrometheusNames: what dashboards are made of is what OpenTelemetry's Prometheus exporter gives, name by
// name and label by label.
func TestPrometheusNames(t *testing.T) {
	want := map[string]exported{}
	for _, m := range metrics.All() {
		e := exported{Type: map[metrics.Kind]dto.MetricType{
			metrics.Counter: dto.MetricType_COUNTER, metrics.Gauge: dto.MetricType_GAUGE,
			metrics.Histogram: dto.MetricType_HISTOGRAM,
		}[m.Kind], Buckets: m.Buckets}
		for _, label := range m.Labels {
			e.Labels = append(e.Labels, metrics.PrometheusLabel(label))
		}
		slices.Sort(e.Labels)
		want[m.Prometheus()] = e
	}
	if diff := cmp.Diff(want, gathered(t)); diff != "" {
		t.Errorf("- defined, + exported:\n%s", diff)
	}
	if cmp.Equal(want,
		gathered(t, promexporter.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithoutSuffixes))) {
		t.Error("other names go unseen")
	}
}
