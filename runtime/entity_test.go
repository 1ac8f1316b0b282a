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
		"org-1":       {0, "1"},
		"org_unit-1":  {1, "1"},
		"org-user-1":  {0, "user-1"}, // the first '-' ends the kind
		"org_unit---": {1, "--"},
		"org-é/1 , 2": {0, "é/1 , 2"},
		"org-👩‍🚀":     {0, "👩‍🚀"}, // a joiner: seen as one character, and not a control
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
		"x\x1b[2J\n..-1":                  `is of kind "x\x1b[2J\n..", which`,
		"org-":                            `"org-"`,
		"org-a#b":                         "'#'",
		"org-org-1":                       "begins with org-",
		"org-\xff":                        "UTF-8 at byte offset 0",
		"org-é\xff":                       "UTF-8 at byte offset 2",
		"org-a\x00":                       "U+0000 at byte offset 1",
		"org-é\n":                         "U+000A at byte offset 2",
		"org-\x1b[31m":                    "U+001B at byte offset 0",
		"org-\x7f":                        "U+007F",
		"org-\u009b31m":                   "U+009B",
		"org-1\u061c":                     "U+061C",
		"org-1\u200e":                     "U+200E",
		"org-1\u200f":                     "U+200F",
		"org-1\u202a":                     "U+202A",
		"org-1\u202e":                     "bidirectional control U+202E at byte offset 1",
		"org-1\u2066":                     "U+2066",
		"org-1\u2069":                     "U+2069",
		"org-1\u2028":                     "U+2028",
		"org-1\u2029":                     "U+2029",
		"org-" + strings.Repeat("x", 257): "257 bytes",
		strings.Repeat("x", 1_000) + "-1": "is of kind " + strings.Repeat("x", 40) + "..., which",
	} {
		_, _, err := store.ParseID(stored, kinds)
		if _, ok := errors.AsType[*runtime.InvalidError](err); !ok || !strings.Contains(err.Error(), says) ||
			strings.Contains(err.Error(), ": : ") || !store.IsPlain(err.Error()) || len(err.Error()) > 300 {
			t.Errorf("%q: %v, want an InvalidError with %s", stored, err, says)
		}
	}
}

// hostile is an entity that an earlier version may have stored: it clears a screen, forges a line and turns
// the text around it.
const hostile = "user-\x1b[2J\nuser-2\u202e"

// TestErrorsShowNoControls: an error that names an entity is one line of characters that can be seen.
func TestErrorsShowNoControls(t *testing.T) {
	for _, err := range []error{
		&runtime.DeniedError{Resource: "gpt-4", Entity: hostile, Limit: "tpm"},
		&runtime.CostTooLargeError{Resource: "gpt-4", Entity: hostile, Limit: "tpm"},
		&runtime.ContendedError{Resource: "gpt-4", Entity: hostile},
		&runtime.ConflictError{Resource: "gpt-4", At: hostile},
		&runtime.QueueFullError{Resource: "gpt-4", Entity: hostile},
		&runtime.InvalidError{Field: "entity", Value: hostile, Reason: "is wrong"},
	} {
		if text := err.Error(); !store.IsPlain(text) || !strings.Contains(text, `"user-\x1b[2J\nuser-2\u202e"`) {
			t.Errorf("%T: %q", err, text)
		}
	}
	_, err := store.KindOf([]store.Kind{{Name: "org"}}, strings.TrimPrefix(hostile, "user-")+"-1")
	if err == nil || !store.IsPlain(err.Error()) {
		t.Errorf("unknown kind: %q", err)
	}
}

// TestQuote leaves plain text as it is, and makes one word of a shell of any text.
func TestQuote(t *testing.T) {
	for text, want := range map[string][2]string{
		"user-1":       {"user-1", "user-1"},
		"user-a b":     {"user-a b", "'user-a b'"},
		"user-日本":      {"user-日本", "user-日本"},
		"user-$(date)": {"user-$(date)", "'user-$(date)'"},
		"user-o'k":     {"user-o'k", `'user-o'\''k'`},
		"":             {"", "''"},
		"user-\n":      {`"user-\n"`, `'"user-\n"'`},
		"user-\u202e":  {`"user-\u202e"`, `'"user-\u202e"'`},
		"user-\u00a0":  {`"user-\u00a0"`, `'"user-\u00a0"'`},
		"user-\xff":    {`"user-\xff"`, `'"user-\xff"'`},
	} {
		if got := [2]string{store.Quote(text), store.Argument(text)}; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestKindOf finds the kind of an id that no call may have, and refuses what is no entity.
func TestKindOf(t *testing.T) {
	kinds := []store.Kind{{Name: "org"}, {Name: "user"}}
	if kind, err := store.KindOf(kinds, hostile); kind != 1 || err != nil {
		t.Errorf("kind %d, %v", kind, err)
	}
	for _, stored := range []string{"", "user", "user-", "user-a#b", "team-1"} {
		_, err := store.KindOf(kinds, stored)
		if _, ok := errors.AsType[*runtime.InvalidError](err); !ok {
			t.Errorf("%q: %v", stored, err)
		}
	}
}
