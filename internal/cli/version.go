package cli

import (
	"runtime/debug"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/runtime"
)

// generation is that of the code which this sluice generates. It does not compile if the runtime no longer serves it.
const generation = 1

const _ = runtime.Generation1

type versionCommand struct{}

// Run prints the module's version, as the go command recorded it, and the generation of generated code.
func (versionCommand) Run(p Program) error {
	version, toolchain := "unknown", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		toolchain = info.GoVersion
		if info.Main.Version != "" {
			version = info.Main.Version
		}
	}
	p.say("sluice %s, generates code of generation %d, built with %s\n", version, generation, toolchain)
	return nil
}

// versionFlag is --version, for those who try that first.
type versionFlag bool

// BeforeReset runs the command of the same name in place of whatever else the command line asks for.
func (versionFlag) BeforeReset(app *kong.Kong, p Program) error {
	err := versionCommand{}.Run(p)
	app.Exit(exitOK)
	return err
}
