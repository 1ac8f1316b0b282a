package lua

import (
	"testing"

	"github.com/sluice-go/sluice/gen/internal/model"
)

// TestScriptsOfTheStore: no script is written out for resources that scripts of the store serve.
func TestScriptsOfTheStore(t *testing.T) {
	for name, r := range map[string]model.Resource{
		"kinds that differ": {Variants: []*model.Variant{}},
		"windows":           {Windows: "apiWindows"},
		"holds":             {Holds: true},
		"plans":             {OnPlans: true},
		"none of these":     {},
	} {
		r.Name, r.Scripts, r.Limits = "api", []string{"apiScript1"}, []*model.Limit{{Name: "rpm"}}
		if text := Scripts(&r)[0].Text; (text != "") != (name == "none of these") {
			t.Errorf("%s: a script of %d bytes", name, len(text))
		}
	}
}
