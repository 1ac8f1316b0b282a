// Package serve is `sluice serve`: it runs sluice-serve, a program of another module.
package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
)

// name is that of the program.
const name = "sluice-serve"

// Command is `sluice serve`. Its flags are those of the program.
type Command struct {
	Args []string `arg:"" optional:"" name:"flags" help:"Flags of sluice-serve."`
}

// Help says where the flags are.
func (Command) Help() string {
	return "It runs sluice-serve, which is beside sluice or on PATH, with these flags. `sluice-serve --help` " +
		"lists them. To install it: " + install + "\n\n" +
		"Example: sluice serve --file limits.yaml --table rate_limits --http 127.0.0.1:8080"
}

// install is how to get the program.
const install = "go install github.com/sluice-go/sluice/serve/sluice-serve@latest"

// Run runs the program until that ends.
func (c Command) Run(ctx context.Context, command *kong.Context, p program.Env) error {
	if len(c.Args) == 1 && (c.Args[0] == "--help" || c.Args[0] == "-h") {
		return command.PrintUsage(false)
	}
	path, err := find()
	if err != nil {
		return err
	}
	// The program takes the place of this process. Ctrl-C and service managers signal all processes, so one that
	// passed signals on would send it a second one, which ends it at once, with all leases.
	err = syscall.Exec(path, append([]string{name}, c.Args...), os.Environ())
	if !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("run %s: %w", path, err)
	}
	// On Windows it is a process of its own, which the console tells of Ctrl-C.
	child := exec.CommandContext(context.WithoutCancel(ctx), path, c.Args...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, p.Stdout, p.Stderr
	if err := child.Run(); err != nil {
		return fmt.Errorf("run %s: %w", path, err)
	}
	return nil
}

// find returns the path of the program: beside this one, or on PATH.
func find() (string, error) {
	if own, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(own), name)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is neither beside sluice nor on PATH: run `%s`", name, install)
	}
	return path, nil
}
