// Package generate is `sluice generate`: it writes the Go package that limits.yaml describes.
package generate

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-go/sluice/cmd/sluice/internal/git"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"

	"github.com/sluice-go/sluice/gen"
)

// Command is `sluice generate`.
type Command struct {
	Check bool   `help:"Write nothing; exit 1 and show a diff if anything would change."`
	File  string `default:"limits.yaml" placeholder:"limits.yaml" help:"Schema. Paths start at its folder."`

	GoFile string `hidden:"" env:"GOFILE" help:"Set by go generate: the file whose line it runs."`
}

// Run generates. If the schema has mistakes, it prints each on a line and writes nothing.
func (c Command) Run(ctx context.Context, p program.Env) error {
	result, err := gen.Run(gen.Config{
		Schema: c.File, Scanned: c.GoFile != "", Committed: git.Committed(ctx, c.File),
	})
	if problems, ok := errors.AsType[gen.Problems](err); ok {
		return program.AsIs(problems)
	}
	if err != nil {
		return err
	}
	if c.Check {
		return c.compare(p, result)
	}
	if err := result.Write(); err != nil {
		return err
	}
	for _, f := range result.Stale {
		if f.Data != nil {
			p.Say("emptied %s, which %s no longer gives: go generate has yet to read it, and the next run "+
				"removes it\n", f.Path, c.File)
			continue
		}
		p.Say("removed %s, which %s no longer gives\n", f.Path, c.File)
	}
	for _, note := range result.Notes {
		p.Note("%s\n", note)
	}
	p.Say("%s: %d files, %d written\n", c.File, len(result.Files), len(result.Changed()))
	return nil
}

// compare prints what generating would change, and fails if there is anything.
func (c Command) compare(p program.Env, result *gen.Result) error {
	diff := result.Diff()
	if diff == "" {
		return nil
	}
	p.Say("%s", diff)
	return fmt.Errorf("the generated files are not what %s gives (diff above): run `%s` and commit", c.File,
		c.command())
}

// command returns the command line that makes the files current.
func (c Command) command() string {
	if c.File == "limits.yaml" {
		return "sluice generate"
	}
	return "sluice generate --file " + c.File
}
