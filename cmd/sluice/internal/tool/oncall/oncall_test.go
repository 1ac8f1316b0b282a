package oncall_test

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/sluice-go/sluice/cmd/sluice/internal/tool/oncall"
	"github.com/sluice-go/sluice/runtime/metrics"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// outputs are all that is printed.
func outputs(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for name, f := range map[string]func() ([]byte, error){
		"list.txt": oncall.List, "grafana.json": oncall.Grafana, "alarms.yaml": oncall.CloudFormation,
		"alarms.tf":      oncall.Terraform,
		"collector.yaml": oncall.Collector,
	} {
		text, err := f()
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(text)
	}
	return all
}

// TestGolden holds all that is printed against testdata, byte for byte.
func TestGolden(t *testing.T) {
	all := outputs(t)
	for name, got := range all {
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s, - wanted, + printed (run go test with -update if it is meant):\n%s", name, diff)
		}
	}
	files, err := filepath.Glob("testdata/*")
	if err != nil || len(files) != len(all) {
		t.Errorf("testdata has %d files for %d outputs: %v", len(files), len(all), err)
	}
}

// inPrometheus finds the metric that a name of Prometheus's is of.
func inPrometheus(name string) *metrics.Metric {
	for _, m := range metrics.All() {
		suffixes := []string{""}
		if m.Kind == metrics.Histogram {
			suffixes = []string{"_bucket", "_sum", "_count"}
		}
		for _, suffix := range suffixes {
			if name == m.Prometheus()+suffix {
				return m
			}
		}
	}
	return nil
}

var (
	selectors = regexp.MustCompile(`(\w+)\{([^}]*)\}`)
	matchers  = regexp.MustCompile(`(\w+)=~?"`)
	sums      = regexp.MustCompile(`sum by \(([^)]*)\) \(rate\((\w+)`)
	legends   = regexp.MustCompile(`\{\{(\w+)\}\}`)
)

// strangers returns what a query of the dashboard names that is not defined, and notes the metrics that it is
// about.
func strangers(expr, legend string, used map[*metrics.Metric]bool) (unknown []string) {
	known := func(m *metrics.Metric, label string) bool {
		return label == "job" || m != nil &&
			slices.ContainsFunc(m.Labels, func(l string) bool { return metrics.PrometheusLabel(l) == label })
	}
	for _, s := range selectors.FindAllStringSubmatch(expr, -1) {
		m := inPrometheus(s[1])
		if m == nil {
			unknown = append(unknown, s[1])
			continue
		}
		used[m] = true
		for _, label := range matchers.FindAllStringSubmatch(s[2], -1) {
			if !known(m, label[1]) {
				unknown = append(unknown, s[1]+" "+label[1])
			}
		}
	}
	var kept []string
	for _, s := range sums.FindAllStringSubmatch(expr, -1) {
		m := inPrometheus(s[2])
		for label := range strings.SplitSeq(s[1], ", ") {
			if kept = append(kept, label); !known(m, label) && (label != "le" || !strings.HasSuffix(s[2], "_bucket")) {
				unknown = append(unknown, s[2]+" by "+label)
			}
		}
	}
	for _, l := range legends.FindAllStringSubmatch(legend, -1) {
		if !slices.Contains(kept, l[1]) {
			unknown = append(unknown, "legend "+l[1])
		}
	}
	if strings.Count(expr, "(") != strings.Count(expr, ")") {
		unknown = append(unknown, "a bracket")
	}
	return unknown
}

// TestDashboard: each query is about metrics and labels that are defined, each metric is on it, and no panel
// lies over another.
func TestDashboard(t *testing.T) {
	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr, LegendFormat string }
		}
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	if err := json.Unmarshal([]byte(outputs(t)["grafana.json"]), &dashboard); err != nil {
		t.Fatal(err)
	}
	used, ids, cells := map[*metrics.Metric]bool{}, map[int]bool{}, map[[2]int]string{}
	for _, p := range dashboard.Panels {
		if ids[p.ID] {
			t.Errorf("%s: id %d is another's", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other, taken := cells[at]; taken {
					t.Fatalf("%s lies over %s", p.Title, other)
				}
				cells[at] = p.Title
			}
		}
		for _, q := range p.Targets {
			if unknown := strangers(q.Expr, q.LegendFormat, used); unknown != nil {
				t.Errorf("%s: nobody defines %q\n%s", p.Title, unknown, q.Expr)
			}
		}
	}
	for _, m := range metrics.All() {
		if !used[m] {
			t.Errorf("%s is on no panel", m.Name)
		}
	}
	variables := map[string]bool{"__rate_interval": true}
	for _, v := range dashboard.Templating.List {
		variables[v.Name] = true
		if name, _, ok := strings.Cut(strings.TrimPrefix(v.Definition, "label_values("), ","); ok &&
			inPrometheus(name) == nil {
			t.Errorf("$%s is of %s, which nobody defines", v.Name, name)
		}
	}
	for _, v := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(outputs(t)["grafana.json"], -1) {
		if !variables[v[1]] && v[1] != "__all" {
			t.Errorf("nobody chooses $%s", v[1])
		}
	}
}

// TestStrangersAreSeen: the check above sees a name that nobody defines, wherever it is.
func TestStrangersAreSeen(t *testing.T) {
	const good, legend = `sum by (sluice_outcome) (rate(sluice_decisions_total{job=~"$job", ` +
		`sluice_outcome="denied"}[1m]))`, "{{sluice_outcome}}"
	if unknown := strangers(good, legend, map[*metrics.Metric]bool{}); unknown != nil {
		t.Fatal(unknown)
	}
	for _, broken := range []struct{ old, by string }{
		{"sluice_decisions_total", "sluice_decisions"}, {"by (sluice_outcome)",
			"by (sluice_entity)"}, {`sluice_outcome="`, `sluice_clock="`},
		{"by (sluice_outcome)", "by (sluice_resource)"}, {"sluice_decisions_total",
			"sluice_decision_duration_seconds"}, {")))", "))"}, {"]))", "])"},
	} {
		if expr := strings.Replace(good, broken.old, broken.by, 1); expr != good &&
			strangers(expr, legend, map[*metrics.Metric]bool{}) == nil {
			t.Errorf("%s passes", expr)
		}
	}
}

// offAlarms are the metrics that no alarm is on, and why.
var offAlarms = map[*metrics.Metric]string{
	metrics.DecisionDuration: "the collector's exporter to CloudWatch adds up histograms and keeps no " +
		"percentiles: it is on the dashboard",
	metrics.DegradedNano:      "it grows only while decisions are degraded, and an alarm is on those",
	metrics.StoreCallDuration: "the same; calls that take too long are replies lost",
	metrics.StoreCapacity:     "DynamoDB publishes what it bills: the budget is on that",
	metrics.SlotsSwept:        "a process that dies is no failure of limits: what it held has come back",
	metrics.PrefetchAdmitted:  "the same",
	metrics.PrefetchTaken:     "the same",
	metrics.PrefetchReturned:  "the same",
	metrics.StoreCoalesced:    "it says how well a service does, not that something is wrong",
}

// looked is an alarm's look at one metric.
type looked struct {
	Namespace, Metric string
	Labels            []string
}

// looks returns what the alarms of the template look at, parameters by their defaults.
func looks(t *testing.T, text string) (all []looked) {
	t.Helper()
	type metric struct {
		Namespace  yaml.Node `yaml:"Namespace"`
		Name       string    `yaml:"MetricName"`
		Dimensions []struct {
			Name string `yaml:"Name"`
		} `yaml:"Dimensions"`
	}
	var stack struct {
		Resources map[string]struct {
			Properties struct {
				metric  `yaml:",inline"`
				Metrics []struct {
					MetricStat struct {
						Metric metric `yaml:"Metric"`
					} `yaml:"MetricStat"`
				} `yaml:"Metrics"`
			} `yaml:"Properties"`
		} `yaml:"Resources"`
	}
	if err := yaml.Unmarshal([]byte(text), &stack); err != nil {
		t.Fatal(err)
	}
	for _, r := range stack.Resources {
		of := []metric{r.Properties.metric}
		for _, m := range r.Properties.Metrics {
			of = append(of, m.MetricStat.Metric)
		}
		for _, m := range of {
			if m.Name == "" {
				continue
			}
			l := looked{m.Namespace.Value, m.Name, []string{}}
			for _, d := range m.Dimensions {
				l.Labels = append(l.Labels, d.Name)
			}
			all = append(all, l)
		}
	}
	return all
}

// TestAlarms: each is on a metric and on labels that are defined, which the collector sends as it wants them;
// each metric has one, or a reason for none.
func TestAlarms(t *testing.T) {
	all := outputs(t)
	var collector struct {
		Exporters map[string]struct {
			Namespace    string `yaml:"namespace"`
			Declarations []struct {
				Metrics    []string   `yaml:"metric_name_selectors"`
				Dimensions [][]string `yaml:"dimensions"`
			} `yaml:"metric_declarations"`
			Resources struct {
				Enabled bool `yaml:"enabled"`
			} `yaml:"resource_to_telemetry_conversion"`
			Descriptors []struct {
				Metric    string `yaml:"metric_name"`
				Unit      string `yaml:"unit"`
				Overwrite bool   `yaml:"overwrite"`
			} `yaml:"metric_descriptors"`
		} `yaml:"exporters"`
	}
	if err := yaml.Unmarshal([]byte(all["collector.yaml"]), &collector); err != nil {
		t.Fatal(err)
	}
	exporter := collector.Exporters["awsemf/sluice"]
	sends := func(l looked) bool {
		for _, d := range exporter.Declarations {
			if regexp.MustCompile(d.Metrics[0]).MatchString(l.Metric) &&
				slices.ContainsFunc(d.Dimensions, func(set []string) bool { return slices.Equal(set, l.Labels) }) {
				return true
			}
		}
		return false
	}
	if !exporter.Resources.Enabled {
		t.Error("processes that have one collector are one to it")
	}
	units := map[string]string{} // as CloudWatch knows them
	for _, d := range exporter.Descriptors {
		if d.Overwrite && (d.Unit == "Count" || d.Unit == "Seconds") {
			units[d.Metric] = d.Unit
		}
	}
	on := map[*metrics.Metric]bool{}
	aws := map[string]bool{}
	for _, l := range looks(t, all["alarms.yaml"]) {
		i := slices.IndexFunc(metrics.All(), func(m *metrics.Metric) bool { return m.Name == l.Metric })
		switch {
		case i < 0 && strings.HasPrefix(l.Namespace, "AWS/"):
			aws[l.Metric] = true
			continue
		case i < 0 || l.Namespace != "Namespace":
			t.Errorf("nobody defines %v", l)
			continue
		case !sends(l):
			t.Errorf("the collector does not send %v", l)
		case sends(looked{Metric: l.Metric, Labels: []string{"sluice.operation"}}):
			t.Errorf("the collector sends anything")
		}
		m := metrics.All()[i]
		on[m] = true
		if (m.Unit == "s") != (units[m.Name] == "Seconds") || units[m.Name] == "" {
			t.Errorf("%s is sent in %q, measured in %s", m.Name, units[m.Name], m.Unit)
		}
		if slices.ContainsFunc(l.Labels, func(label string) bool { return !slices.Contains(m.Labels, label) }) {
			t.Errorf("%s has no such labels: %q", m.Name, l.Labels)
		}
		if m.Kind == metrics.Histogram {
			t.Errorf("an alarm on %s: %s", m.Name, offAlarms[metrics.DecisionDuration])
		}
	}
	for _, m := range metrics.All() {
		if (offAlarms[m] == "") != on[m] {
			t.Errorf("%s: alarm %v, excused by %q", m.Name, on[m], offAlarms[m])
		}
	}
	want := []string{"ConsumedWriteCapacityUnits", "IteratorAge", "SystemErrors", "ThrottledRequests"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(aws))); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(all["alarms.yaml"], "Namespace:\n    Type: String\n    Default: \""+exporter.Namespace+
		"\"\n") {
		t.Errorf("the collector sends to %s, and the alarms look elsewhere", exporter.Namespace)
	}
}

// TestTerraformHasTheSame: alarm by alarm, both have the same metric for the same reason.
func TestTerraformHasTheSame(t *testing.T) {
	all := outputs(t)
	var stack struct {
		Resources map[string]struct {
			Properties struct {
				Why string `yaml:"AlarmDescription"`
			} `yaml:"Properties"`
		} `yaml:"Resources"`
	}
	if err := yaml.Unmarshal([]byte(all["alarms.yaml"]), &stack); err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for _, r := range stack.Resources {
		reasons = append(reasons, r.Properties.Why)
	}
	slices.Sort(reasons)
	var written []string
	for line := range strings.Lines(all["alarms.tf"]) {
		if why, ok := strings.CutPrefix(strings.TrimSpace(line), "# "); ok && slices.Contains(reasons, why) {
			written = append(written, why)
		}
	}
	slices.Sort(written)
	if diff := cmp.Diff(reasons, written); diff != "" {
		t.Error(diff)
	}
	for _, m := range []*metrics.Metric{metrics.Decisions, metrics.Settlements, metrics.StoreCalls,
		metrics.LeasesLost, metrics.BreakersOpen, metrics.ClockSkew} {
		if n := strings.Count(all["alarms.tf"], `"`+m.Name+`"`); n != strings.Count(all["alarms.yaml"],
			"MetricName: "+m.Name+"\n") {
			t.Errorf("%s: %d times", m.Name, n)
		}
	}
}
