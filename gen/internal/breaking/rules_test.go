package breaking

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/gen/internal/digest"
	"github.com/sluice-go/sluice/gen/internal/schema"
)

// TestRules holds the table to itself: each id once, each rule with a purpose, a severity and a check.
func TestRules(t *testing.T) {
	severities := []string{Data, API, Behaviour, Price}
	seen := make(map[string]bool)
	for _, r := range Rules() {
		if seen[r.ID] || r.Purpose == "" || r.check == nil || !slices.Contains(severities, r.Severity) {
			t.Errorf("rule %s stands there twice, or is incomplete: %+v", r.ID, r)
		}
		seen[r.ID] = true
	}
	for _, id := range []string{digest.RuleReused, digest.RuleLowered, digest.RuleRemovedReused} {
		if !seen[id] {
			t.Errorf("%s, of sluice generate, has another id here", id)
		}
	}
}

// TestJSONSchema holds what editors offer as rules to the rules.
func TestJSONSchema(t *testing.T) {
	var doc struct {
		Defs struct{ Rule struct{ Examples []string } } `json:"$defs"`
	}
	if err := json.Unmarshal(schema.JSONSchema(), &doc); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, r := range Rules() {
		ids = append(ids, r.ID)
	}
	if diff := cmp.Diff(ids, doc.Defs.Rule.Examples); diff != "" {
		t.Errorf("limits.schema.json has other rules (-want +got):\n%s", diff)
	}
}
