package docrow

import (
	"slices"
	"testing"
)

func TestFind(t *testing.T) {
	const text = "| test | n |\n|---|--:|\n| `TestTwo/a` | 1 |\n| `TestTwo`: both | 2 | 3 |\n"
	for name, want := range map[string][]string{"TestTwo": {"2", "3"}, "TestTwo/a": {"1"}, "Test": nil} {
		if got := find(text, name); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if Find(t, "README.md", "TestNothing") != nil {
		t.Error("found what is not there")
	}
}
