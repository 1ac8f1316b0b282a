// Package serve is `sluice serve`: it runs sluice-serve, a program of another module.
package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

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

// Run runs the program until ctx or the program ends.
func (c Command) Run(ctx context.Context, command *kong.Context, p program.Env) error {
	if len(c.Args) == 1 && (c.Args[0] == "--help" || c.Args[0] == "-h") {
		return command.PrintUsage(false)
	}
	path, err := find()
	if err != nil {
		return err
	}
	// The program ends by itself on SIGTERM. It drains before that, for as long as its own flag says.
	child := exec.CommandContext(ctx, path, c.Args...)
	child.Cancel = func() error { return child.Process.Signal(syscall.SIGTERM) }
	child.WaitDelay = longest
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, p.Stdout, p.Stderr
	if err := child.Start(); err != nil {
		return fmt.Errorf("run %s: %w", path, err)
	}
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			select {
			case s := <-reload:
				_ = child.Process.Signal(s) // it has ended
			case <-ended:
				return
			}
		}
	}()
	err = child.Wait()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && failed.ExitCode() > 0 {
		return fmt.Errorf("%s has ended with exit code %d: see above", name, failed.ExitCode())
	}
	if ctx.Err() != nil && child.ProcessState.Success() {
		return nil
	}
	return err
}

// longest is how long the program may take to end.
const longest = time.Hour + time.Minute

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
