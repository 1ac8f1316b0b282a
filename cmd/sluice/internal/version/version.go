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

// Run prints the module's version, as the go command recorded it, and the generation of generated code.
func (Command) Run(p program.Env) error {
	version, toolchain := "unknown", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		toolchain = info.GoVersion
		if info.Main.Version != "" {
			version = info.Main.Version
		}
	}
	p.Say("sluice %s, generates code of generation %d, built with %s\n", version, gen.Generation, toolchain)
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
