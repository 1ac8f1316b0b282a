// Command release makes a version of all modules of this repository that users import, and of the command.
//
//	go run ./internal/release proxy v0.1.0 DIR   a GOPROXY of the tree, as if it were tagged
//	go run ./internal/release tag v0.1.0         checks, sets versions, commits, builds binaries, tags
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
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// usage is what a wrong command line prints.
const usage = `write
	release proxy VERSION DIR
	release tag [-checks COMMAND] [-targets OS/ARCH,...] [-out DIR] VERSION`

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("no command: %s", usage)
	}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	r := release{root: ".", log: out}
	if args[0] == "tag" {
		flags.StringVar(&r.checks, "checks", ".ci/run", "what has to pass before a tag")
		flags.StringVar(&r.targets, "targets", targets, "the binaries to build")
		flags.StringVar(&r.out, "out", ".build/release", "the folder of the binaries")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return fmt.Errorf("%w: %s", err, usage)
	}
	switch args = append(args[:1], flags.Args()...); {
	case args[0] == "proxy" && len(args) == 3:
		p := proxy{root: r.root, version: args[1], dir: args[2]}
		return p.write(ctx)
	case args[0] == "tag" && len(args) == 2:
		r.version = args[1]
		return r.run(ctx)
	}
	return fmt.Errorf("%q is not a command: %s", strings.Join(args, " "), usage)
}
