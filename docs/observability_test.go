package docs_test

import (
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
)

// printed returns what a line of sluice prints.
func printed(t *testing.T, line string) string {
	t.Helper()
	var out strings.Builder
	if code := (cli.Program{Stdout: &out, Stderr: io.Discard, Now: time.Now}).Run(t.Context(),
		strings.Fields(line)); code != 0 {
		t.Errorf("sluice %s: exit code %d", line, code)
	}
	return out.String()
}

// TestDocsObservability: every command in docs/observability.md runs, every alarm is in its table, and every
// parameter it names is one.
func TestDocsObservability(t *testing.T) {
	doc := read(t, "docs/observability.md")
	commands := regexp.MustCompile("sluice (metrics [a-z]+)").FindAllStringSubmatch(doc, -1)
	if len(commands) == 0 {
		t.Fatal("no commands")
	}
	for _, c := range commands {
		if printed(t, c[1]) == "" {
			t.Errorf("sluice %s prints nothing", c[1])
		}
	}
	stack := printed(t, "metrics cloudformation")
	_, table, _ := strings.Cut(doc, "| alarm | on | means |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, a := range regexp.MustCompile(`alarm_name += "sluice-([a-z-]+)"|(?m)^ {4}"([A-Za-z-]+)" = \{`).
		FindAllStringSubmatch(printed(t, "metrics terraform"), -1) {
		name := a[1] + a[2]
		if operation, rest, _ := strings.Cut(name, "-"); operation != strings.ToLower(operation) {
			name = "-" + rest
		}
		if !strings.Contains(table, name+"`") {
			t.Errorf("the table of alarms has no %s", name)
		}
	}
	for _, p := range regexp.MustCompile("`([A-Z][A-Za-z]+)`").FindAllStringSubmatch(table, -1) {
		if !strings.Contains(stack, "\n  "+p[1]+":\n    Type: ") &&
			!strings.Contains(stack, "MetricName: "+p[1]+"\n") {
			t.Errorf("the template has no %s", p[1])
		}
	}
}
