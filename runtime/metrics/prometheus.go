package metrics

import "strings"

// Prometheus returns m's name as OpenTelemetry's Prometheus exporter writes it; that of a histogram goes on
// with _bucket, _sum or _count.
func (m *Metric) Prometheus() string {
	name := PrometheusLabel(m.Name)
	if m.Unit == "s" {
		name += "_seconds"
	}
	if m.Kind == Counter {
		name += "_total"
	}
	return name
}

// PrometheusLabel returns a label's name as that exporter writes it.
func PrometheusLabel(name string) string { return strings.ReplaceAll(name, ".", "_") }
