// Package version is `sluice version`.
package version

import (
	"runtime/debug"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/gen"
)

// Command is `sluice version`.
type Command struct{}

// Own returns the version of this program, as the go command recorded it. A program built from files that
// nobody published has "(devel)", or a version with "+dirty". Without a record it is "unknown".
func Own() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// Run prints the version and the generation of generated code.
func (Command) Run(p program.Env) error {
	toolchain := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		toolchain = info.GoVersion
	}
	p.Say("sluice %s, generates code of generation %d, built with %s\n", Own(), gen.Generation, toolchain)
	return nil
}

// Flag is --version, the usual flag of other commands.
type Flag bool

// BeforeReset prints the version and ignores the rest of the command line.
func (Flag) BeforeReset(app *kong.Kong, p program.Env) error {
	err := Command{}.Run(p)
	app.Exit(0)
	return err
}
