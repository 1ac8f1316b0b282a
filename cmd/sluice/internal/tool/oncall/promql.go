package oncall

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/runtime/metrics"
)

// is and among match a label; among takes a regular expression.
func is(label, value string) string    { return metrics.PrometheusLabel(label) + `="` + value + `"` }
func among(label, value string) string { return metrics.PrometheusLabel(label) + `=~"` + value + `"` }

// selector returns the series of m, of the chosen jobs and resources: suffix is that of a histogram's, and
// where matches more.
func selector(m *metrics.Metric, suffix, where string) string {
	matchers := []string{`job=~"$job"`}
	if slices.Contains(m.Labels, metrics.Resource) {
		matchers = append(matchers, among(metrics.Resource, "$resource"))
	}
	if where != "" {
		matchers = append(matchers, where)
	}
	return m.Prometheus() + suffix + "{" + strings.Join(matchers, ", ") + "}"
}

// each is what a series gains in a second.
func each(selector string) string { return "rate(" + selector + "[$__rate_interval])" }

// by returns the clause that adds up by labels.
func by(labels ...string) string {
	names := make([]string, len(labels))
	for i, label := range labels {
		names[i] = metrics.PrometheusLabel(label)
	}
	return "sum by (" + strings.Join(names, ", ") + ") "
}

// rate returns what m gains in a second.
func rate(m *metrics.Metric, where string, labels ...string) string {
	return by(labels...) + "(" + each(selector(m, "", where)) + ")"
}

// fraction returns the part of m that where matches, from 0 to 1.
func fraction(m *metrics.Metric, where string, labels ...string) string {
	return rate(m, where, labels...) + "\n/ " + rate(m, "", labels...)
}

// quantile returns that of a histogram.
func quantile(q float64, m *metrics.Metric, where string, labels ...string) string {
	return fmt.Sprintf("histogram_quantile(%v, %s(%s))", q, by(append([]string{"le"}, labels...)...),
		each(selector(m, "_bucket", where)))
}

// mean returns that of a histogram.
func mean(m *metrics.Metric, labels ...string) string {
	of := func(suffix string) string { return by(labels...) + "(" + each(selector(m, suffix, "")) + ")" }
	return of("_sum") + "\n/ " + of("_count")
}

// legend is where Grafana writes a label's value.
func legend(label string) string { return "{{" + metrics.PrometheusLabel(label) + "}}" }
