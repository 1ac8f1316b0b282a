// Package generate is `sluice generate`: it writes the Go package that limits.yaml describes.
package generate

import (
	"errors"
	"fmt"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"

	"github.com/sluice-go/sluice/gen"
)

// Command is `sluice generate`.
type Command struct {
	Check bool   `help:"Write nothing; exit 1 and show a diff if anything would change."`
	File  string `default:"limits.yaml" placeholder:"limits.yaml" help:"Schema. Paths start at its folder."`
}

// Run generates. If the schema has mistakes, it prints each on a line and writes nothing.
func (c Command) Run(p program.Env) error {
	result, err := gen.Run(gen.Config{Schema: c.File})
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
		p.Say("removed %s, which %s no longer gives\n", f.Path, c.File)
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
