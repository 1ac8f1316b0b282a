package metrics_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/runtime/metrics"
)

// TestDefinitions: names, units and labels are as OpenTelemetry's conventions want them, and no label is an
// entity.
func TestDefinitions(t *testing.T) {
	dotted := regexp.MustCompile(`^[a-z][a-z_]*(\.[a-z][a-z_]*)+$`)
	unit := regexp.MustCompile(`^(s|\{[a-z_]+\})$`)
	var names []string
	for _, m := range metrics.All() {
		names = append(names, m.Name)
		if !dotted.MatchString(m.Name) || !strings.HasPrefix(m.Name, "sluice.") || !unit.MatchString(m.Unit) {
			t.Errorf("%s in %s", m.Name, m.Unit)
		}
		if strings.HasSuffix(m.Name, ".total") || strings.HasSuffix(m.Name, ".seconds") {
			t.Errorf("%s: exporters add that", m.Name)
		}
		if !strings.HasSuffix(m.Description, ".") || m.Description[:1] != strings.ToUpper(m.Description[:1]) {
			t.Errorf("%s: %q is no sentence", m.Name, m.Description)
		}
		if (m.Kind == metrics.Histogram) != (len(m.Buckets) > 0) || !slices.IsSorted(m.Buckets) {
			t.Errorf("%s: a %s with buckets %v", m.Name, m.Kind, m.Buckets)
		}
		if len(m.Labels) > len(metrics.Values{}) {
			t.Errorf("%s has more labels than values", m.Name)
		}
		for i, label := range m.Labels {
			if !dotted.MatchString(label) || slices.Contains(m.Labels[:i], label) {
				t.Errorf("%s: label %s", m.Name, label)
			}
			if strings.Contains(label, "entity") && label != metrics.EntityKind {
				t.Errorf("%s: %s is an entity's: there are too many of them", m.Name, label)
			}
		}
	}
	// A name that is a namespace of another's cannot be stored where names are paths.
	for _, list := range [][]string{names, {
		metrics.Resource, metrics.EntityKind, metrics.LimitName, metrics.LimitKind, metrics.Operation,
		metrics.Outcome,
		metrics.ErrorType, metrics.System, metrics.Call, metrics.Path, metrics.Capacity, metrics.Clock,
		metrics.Currency,
	}} {
		for _, a := range list {
			for _, b := range list {
				if strings.HasPrefix(b, a+".") {
					t.Errorf("%s is a namespace of %s", a, b)
				}
			}
		}
	}
}
