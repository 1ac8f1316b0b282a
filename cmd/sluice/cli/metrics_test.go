package cli_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestMetrics: what is printed is what cmd/sluice/internal/tool/oncall holds against the definitions.
func TestMetrics(t *testing.T) {
	sequential(t)
	for line, file := range map[string]string{
		"metrics list": "list.txt", "metrics grafana": "grafana.json", "metrics cloudformation": "alarms.yaml",
		"metrics terraform": "alarms.tf",
		"metrics collector": "collector.yaml",
	} {
		want, err := os.ReadFile("../internal/tool/oncall/testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		code, out, errs := run(t, strings.Fields(line)...)
		expect(t, code, out, errs, 0, string(want), "")
	}
}

// TestMetricsJSON: an object per metric, with the names of the table.
func TestMetricsJSON(t *testing.T) {
	_, table, _ := run(t, "metrics", "list")
	code, out, errs := run(t, "metrics", "list", "--json")
	if code != 0 || errs != "" || strings.Count(out, "\n") != strings.Count(table, "\n")-1 {
		t.Fatalf("exit code %d, %s%s", code, out, errs)
	}
	for line := range strings.Lines(out) {
		var m struct {
			Metric, Kind, Unit, Prometheus string
			Labels                         []string
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Metric == "" || m.Labels == nil ||
			!strings.Contains(table, m.Metric) || !strings.Contains(table, m.Prometheus) {
			t.Errorf("%v of %s", err, line)
		}
	}
}
