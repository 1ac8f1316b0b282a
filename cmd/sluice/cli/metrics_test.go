package cli_test

import (
	"os"
	"strings"
	"testing"
)

// TestMetrics: what is printed is what internal/tool/oncall holds against the definitions.
func TestMetrics(t *testing.T) {
	for line, file := range map[string]string{
		"metrics list": "list.txt", "metrics grafana": "grafana.json", "metrics cloudformation": "alarms.yaml",
		"metrics terraform": "alarms.tf",
		"metrics collector": "collector.yaml",
	} {
		want, err := os.ReadFile("../../../internal/tool/oncall/testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		code, out, errs := run(t, strings.Fields(line)...)
		expect(t, code, out, errs, 0, string(want), "")
	}
}
