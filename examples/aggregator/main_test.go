package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/internal/test/crossbuild"
)

// TestEvent adds up the batch that lies beside the program: a call, its settle for more, another call, and
// what that gave back.
func TestEvent(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), "event.json", &out); err != nil {
		t.Fatal(err)
	}
	want := `user-123 gpt-4#day#2026-11-19: rpm 2000, tpm 2400000, writes 3
user-123 gpt-4#hour#2026-11-19T14: rpm 2000, tpm 2700000, writes 3
user-123 gpt-4#hour#2026-11-19T15: tpm -300000, writes 0
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	page, err := os.ReadFile("../../docs/usage.md")
	if err != nil || !strings.Contains(string(page), "-event examples/aggregator/event.json\n"+want+"```\n") {
		t.Errorf("docs/usage.md does not show this: %v", err)
	}
}

func TestMistakes(t *testing.T) {
	t.Setenv("SLUICE_TABLE", "")
	file := filepath.Join(t.TempDir(), "event.json")
	empty := filepath.Join(t.TempDir(), "empty.json")
	for name, text := range map[string]string{file: "{", empty: `{"version": "0"}`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for event, want := range map[string]string{
		"":   "SLUICE_TABLE is not set: name the table; or pass -event to try a batch here",
		file: file + " is no event of a table's stream: unexpected end of JSON input",
		empty: empty +
			" has no records: want an event of a table's stream, as event.json beside this program",
		"none.json": "open none.json: no such file or directory",
	} {
		if err := run(t.Context(), event, new(strings.Builder)); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", event, err, want)
		}
	}
}

// TestBuild: it builds for Lambda's arm64.
func TestBuild(t *testing.T) { crossbuild.Lambda(t) }
