package term_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/cmd/sluice/internal/term"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestEscape leaves lines, tabs and what can be seen.
func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"a \"b\" \\c\nd\té日": "a \"b\" \\c\nd\té日",
		"\x1b[2J":            `\x1b[2J`,
		"a\u202e\u009b\x00":  `a\u202e\u009b\x00`,
		"a\xffb\ufffd":       "a\\xffb\ufffd",
		"a\rb":               `a\rb`,
	} {
		if got := term.Escape(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestJSON: the text has no character that cannot be seen, and means the same.
func TestJSON(t *testing.T) {
	const text = "<a>\x1b\x7f\u009b\u202e\u2028\U000e0001\n\"é日👍"
	for _, indent := range []string{"", "  "} {
		got, err := term.JSON([]string{text}, indent)
		if err != nil {
			t.Fatal(err)
		}
		var back []string
		err = json.Unmarshal(got, &back)
		plain := store.IsPlain(strings.ReplaceAll(string(got), "\n", ""))
		if err != nil || len(back) != 1 || back[0] != text || !plain {
			t.Errorf("%s is %q, %v", got, back, err)
		}
	}
}
