// Package oncall writes what people on call use, from the definitions of runtime/metrics: a dashboard for
// Grafana, and alarms for CloudWatch in CloudFormation and Terraform. It also writes the settings of
// OpenTelemetry's collector that the alarms need. Its tests compare each name with the definitions.
package oncall

import (
	"bytes"
	"embed"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/sluice-go/sluice/cmd/sluice/internal/tool/infra"
	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/metrics"
)

//go:embed templates
var templates embed.FS

// CloudFormation returns a template, in YAML, with the alarms.
func CloudFormation() ([]byte, error) { return render("alarms.yaml.tmpl") }

// Terraform returns a configuration, in HCL as `terraform fmt` leaves it, with the alarms.
func Terraform() ([]byte, error) { return render("alarms.tf.tmpl") }

// Collector returns an exporter of OpenTelemetry's collector, in YAML, that sends CloudWatch what the alarms
// look at.
func Collector() ([]byte, error) { return render("collector.yaml.tmpl") }

// render fills a template in.
func render(name string) ([]byte, error) {
	t, err := template.New(name).Option("missingkey=error").Funcs(template.FuncMap{
		"quote": strconv.Quote, "list": infra.List, "snake": snake, "camel": camel, "cloudwatch": cloudWatchUnit,
		"pattern": func(m *metrics.Metric) string { return "^" + strings.ReplaceAll(m.Name, ".", `\.`) + "$" },
	}).ParseFS(templates, "templates/"+name)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, struct {
		Alarms     []alarm
		Parameters []parameter
		Declared   []declaration
	}{alarms(), parameters, declared()})
	return out.Bytes(), err
}

// cloudWatchUnit is a metric's unit as CloudWatch names it, which takes no other.
func cloudWatchUnit(m *metrics.Metric) string {
	if m.Unit == "s" {
		return "Seconds"
	}
	return "Count"
}

// snake writes AlarmTopicArn as alarm_topic_arn.
func snake(name string) string {
	var out strings.Builder
	for i, r := range name {
		if 'A' <= r && r <= 'Z' {
			if i > 0 {
				out.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		out.WriteRune(r)
	}
	return out.String()
}

// camel writes setup-failures as SetupFailures.
func camel(name string) string {
	var out strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		out.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return out.String()
}

// declaration is a metric that the collector sends CloudWatch, by these sets of labels.
type declaration struct {
	Metric *metrics.Metric
	Sets   [][]string
}

// declared returns what the alarms look at.
func declared() []declaration {
	var all []declaration
	add := func(m *metrics.Metric, set []string) {
		i := slices.IndexFunc(all, func(d declaration) bool { return d.Metric == m })
		if i < 0 {
			i = len(all)
			all = append(all, declaration{Metric: m})
		}
		if !slices.ContainsFunc(all[i].Sets, func(s []string) bool { return slices.Equal(s, set) }) {
			all[i].Sets = append(all[i].Sets, set)
		}
	}
	for _, a := range alarms() {
		if a.Own == nil {
			continue
		}
		set := []string{}
		for _, d := range a.Dimensions {
			set = append(set, d.Name)
		}
		if add(a.Own, set); a.Relative {
			add(a.Own, []string{})
		}
	}
	return all
}

// List returns the metrics as a table.
func List() ([]byte, error) {
	rows := [][]string{{"METRIC", "KIND", "UNIT", "PROMETHEUS", "LABELS"}}
	for _, m := range metrics.All() {
		rows = append(rows, []string{m.Name, m.Kind.String(), m.Unit, m.Prometheus(), strings.Join(m.Labels, " ")})
	}
	var out bytes.Buffer
	err := texttable.Write(&out, "", "lllll", rows)
	return out.Bytes(), err
}
