package cli_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	"github.com/sluice-go/sluice/internal/test/longform"
)

// TestSchema: `sluice schema` prints what docs/schema.md is, and with --json what `generate` writes for
// editors.
func TestSchema(t *testing.T) {
	sequential(t)
	for file, args := range map[string][]string{
		"docs/schema.md":     {"schema"},
		"limits.schema.json": {"schema", "--json"},
	} {
		t.Run(file, func(t *testing.T) {
			if len(args) == 1 {
				longform.Only(t, "TestDocs of gen/internal/reference compares the same text")
			}
			want, err := os.ReadFile("../../../" + file)
			if err != nil {
				t.Fatal(err)
			}
			var out, errs strings.Builder
			program := cli.Program{Stdout: &out, Stderr: &errs, Now: time.Now}
			if code := program.Run(t.Context(), args); code != 0 || out.String() != string(want) {
				t.Errorf("%v: exit code %d, %s; what it prints is not %s: run `make generate`", args, code, &errs, file)
			}
		})
	}
}
