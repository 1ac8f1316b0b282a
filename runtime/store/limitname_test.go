package store

import (
	"errors"
	"strings"
	"testing"
)

// TestParsePlan: a plan is parsed from the name that NameOf has for it, and nothing else is.
func TestParsePlan(t *testing.T) {
	type plan uint8
	names := []string{"free", "pro"}
	for want := range plan(3) {
		name := NameOf(want, names...)
		got, err := ParsePlan[plan](name, names...)
		if want > 0 && (got != want || err != nil) {
			t.Errorf("%q is plan %d, %v, want %d", name, got, err, want)
		}
	}
	for _, name := range []string{"", "gold", "Pro", strings.Repeat("p", 300)} {
		got, err := ParsePlan[plan](name, names...)
		if e, ok := errors.AsType[*InvalidError](err); !ok || got != 0 || e.Field != "plan" || e.Value != name ||
			!strings.HasSuffix(e.Reason, "free, pro") {
			t.Errorf("%q is plan %d, %v", name, got, err)
		}
	}
}
