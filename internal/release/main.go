// Command release makes a version of all modules of this repository that users import, and of the command.
//
//	go run ./internal/release proxy v0.1.0 DIR   a GOPROXY of the tree, as if it were tagged
//	go run ./internal/release binaries v0.1.0    the command for all systems, checksums, bills of materials
//	go run ./internal/release tag v0.1.0         sets versions, commits, checks, and tags
//
// It runs in the root of the repository, and pushes nothing.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// usage is what a wrong command line prints.
const usage = `write
	release proxy VERSION DIR
	release binaries [-targets OS/ARCH,...] [-out DIR] [-trial] VERSION
	release tag [-checks COMMAND] VERSION`

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("no command: %s", usage)
	}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	r := release{root: ".", log: out}
	switch args[0] {
	case "tag":
		flags.StringVar(&r.checks, "checks", ".ci/run", "what has to pass before a tag")
	case "binaries":
		flags.StringVar(&r.targets, "targets", targets, "the systems to build for")
		flags.StringVar(&r.out, "out", ".build/release", "the folder of the binaries")
		flags.BoolVar(&r.trial, "trial", false, "build what is not tagged, to see that it builds")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return fmt.Errorf("%w: %s", err, usage)
	}
	r.version = flags.Arg(0)
	switch command := args[0]; {
	case command == "proxy" && flags.NArg() == 2:
		p := proxy{root: r.root, version: r.version, dir: flags.Arg(1)}
		return p.write(ctx)
	case command == "binaries" && flags.NArg() == 1:
		return r.binaries(ctx)
	case command == "tag" && flags.NArg() == 1:
		return r.run(ctx)
	}
	return fmt.Errorf("%q is not a command: %s", strings.Join(args, " "), usage)
}
