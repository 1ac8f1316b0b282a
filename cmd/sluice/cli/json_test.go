package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestCommandsHaveJSON: each command that lists or shows something prints it for programs too, by --json or a
// format.
func TestCommandsHaveJSON(t *testing.T) {
	all := &commands{}
	parser, err := kong.New(all, kong.Name("sluice"), kong.PostBuild(all.setHelp),
		kong.NamedMapper("entity", kong.MapperFunc(decodeEntity)))
	if err != nil {
		t.Fatal(err)
	}
	// These print what they did, or a file in the form of another program.
	without := []string{
		"generate", "init", "version", "dev", "serve",
		"table create", "entity put", "entity calendar", "entity delete",
		"override set", "override delete", "plan set", "plan move", "catalog apply",
		"infra cloudformation", "infra terraform", "infra iam",
		"metrics grafana", "metrics cloudformation", "metrics terraform", "metrics collector",
	}
	for _, leaf := range parser.Model.Leaves(false) {
		has := slices.ContainsFunc(leaf.Flags, func(f *kong.Flag) bool {
			return f.Name == "json" || f.Name == "format" && strings.Contains(f.Enum, "json")
		})
		if name := leaf.FullPath()[len("sluice "):]; has == slices.Contains(without, name) {
			t.Errorf("%s: has --json or --format: %v", name, has)
		}
	}
}
