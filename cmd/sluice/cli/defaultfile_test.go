package cli

import (
	"testing"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
)

// TestDefaultFile: commands that compare their --file with DefaultFile compare with the flag's default.
func TestDefaultFile(t *testing.T) {
	all := &commands{}
	parser, err := kong.New(all, kong.Name("sluice"), kong.PostBuild(all.setHelp),
		kong.NamedMapper("entity", kong.MapperFunc(decodeEntity)))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, leaf := range parser.Model.Leaves(false) {
		for _, f := range leaf.Flags {
			if f.Name == "file" && f.HasDefault {
				if n++; f.Default != schemafile.DefaultFile {
					t.Errorf("%s: the default of --file is %q, want %q", leaf.FullPath(), f.Default, schemafile.DefaultFile)
				}
			}
		}
	}
	if n < 20 {
		t.Errorf("%d commands have a default of --file, want all that read a schema", n)
	}
}
