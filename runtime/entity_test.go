package runtime_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestParseID takes ids as stored apart, and refuses what no entity is stored as.
func TestParseID(t *testing.T) {
	kinds := []string{"org", "org_unit"}
	for stored, want := range map[string]struct {
		kind int
		id   string
	}{
		"org-1":        {0, "1"},
		"org_unit-1":   {1, "1"},
		"org-org-1":    {0, "org-1"}, // the first '-' ends the kind
		"org_unit---":  {1, "--"},
		"org-é/1 ,\n2": {0, "é/1 ,\n2"},
	} {
		if kind, id, err := store.ParseID(stored, kinds); kind != want.kind || id != want.id || err != nil {
			t.Errorf("%q is %d, %q, %v, want %+v", stored, kind, id, err, want)
		}
	}
	for stored, says := range map[string]string{
		"":                                "entity is empty",
		"org":                             `"org"`,
		"-1":                              `"-1"`,
		"user-1":                          "org and org_unit",
		"Org-1":                           "org and org_unit",
		"org-":                            `"org-"`,
		"org-a#b":                         "'#'",
		"org-\xff":                        "UTF-8",
		"org-" + strings.Repeat("x", 257): "257 bytes",
	} {
		_, _, err := store.ParseID(stored, kinds)
		if _, ok := errors.AsType[*runtime.InvalidError](err); !ok || !strings.Contains(err.Error(), says) ||
			strings.Contains(err.Error(), ": : ") {
			t.Errorf("%q: %v, want an InvalidError with %s", stored, err, says)
		}
	}
}
