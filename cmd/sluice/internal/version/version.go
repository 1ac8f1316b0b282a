// Package version is `sluice version`.
package version

import (
	"runtime/debug"

	"github.com/alecthomas/kong"
	"golang.org/x/mod/semver"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/gen"
)

// Command is `sluice version`.
type Command struct{}

// Published returns the version of the module that this program was built from, "" if that was a clone. A
// clone may hold what nobody published.
func Published() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || !semver.IsValid(info.Main.Version) || info.Main.Replace != nil {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return ""
		}
	}
	return info.Main.Version
}

// Run prints the version, as the go command recorded it, and the generation of generated code.
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
