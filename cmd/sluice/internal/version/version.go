package version

import (
	"runtime/debug"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/runtime/store"
)

// generation is that of the code which this sluice generates. It does not compile if the runtime no longer serves it.
const generation = 2

const _ = store.Generation2

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
	p.Say("sluice %s, generates code of generation %d, built with %s\n", version, generation, toolchain)
	return nil
}

// versionFlag is --version, for those who try that first.
type Flag bool

// BeforeReset runs the command of the same name in place of whatever else the command line asks for.
func (Flag) BeforeReset(app *kong.Kong, p program.Env) error {
	err := Command{}.Run(p)
	app.Exit(0)
	return err
}
