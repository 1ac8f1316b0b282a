// Package cli parses and runs command lines of sluice. Not for import: the command imports it, and so do
// tests of other parts of the repository. It may change at any time.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"
	"github.com/sluice-go/sluice/internal/tool/secrets"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1 // mistakes in the schema, a check that found something, a failed call
	exitUsage   = 2 // a mistake in the command line
)

// Program runs command lines. Results go to Stdout, progress and errors to Stderr.
type Program struct {
	Stdout, Stderr io.Writer
	Now            func() time.Time

	timeouts *program.Timeouts // of tests; nil is program.DefaultTimeouts
}

// Run runs a command line, without the program's name, and returns the exit code.
func (p Program) Run(ctx context.Context, args []string) int {
	out := &program.Output{W: p.Stdout}
	if err := checkArguments(args); err != nil {
		return p.fail(withHelp(err, nil))
	}
	env := program.Env{Stdout: out, Stderr: p.Stderr, Now: p.Now}
	timeouts := program.DefaultTimeouts()
	if p.timeouts != nil {
		timeouts = *p.timeouts
	}
	ctx, cancel := program.WithTimeouts(ctx, timeouts, env)
	defer cancel()
	exit := -1 // set by kong after it has printed help or the version
	all := &commands{}
	parser, err := kong.New(all,
		kong.Name("sluice"),
		kong.Description("Typed token-bucket rate limits on DynamoDB and Redis, generated from limits.yaml."),
		kong.Writers(out, p.Stderr),
		kong.Exit(func(code int) { exit = code }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(env),
		kong.PostBuild(all.setHelp),
		kong.NamedMapper("entity", kong.MapperFunc(decodeEntity)),
	)
	if err != nil {
		return p.fail(err)
	}
	command, err := parser.Parse(args)
	switch {
	case out.Err != nil: // the output was help or the version
		return p.fail(notWritten(out))
	case exit >= 0:
		return exit
	case err != nil:
		if parsed, ok := errors.AsType[*kong.ParseError](err); ok {
			command = parsed.Context
		}
		return p.fail(withHelp(program.Usagef("%s", secrets.Redis(withNearGuesses(err.Error()))), command))
	}
	err = command.Run()
	if silent := program.GaveUp(ctx); silent != nil {
		err = silent
	}
	if err == nil || errors.Is(err, out.Err) {
		err = notWritten(out)
	}
	return p.fail(withHelp(err, command))
}

// notWritten returns the error of the first failed write to out, or nil.
func notWritten(out *program.Output) error {
	if out.Err == nil {
		return nil
	}
	return fmt.Errorf("write the output: %w", out.Err)
}

// withHelp adds to a mistake in the command line how to print the command's help. command is nil or
// incomplete if parsing failed.
func withHelp(err error, command *kong.Context) error {
	if _, usage := errors.AsType[program.UsageError](err); !usage {
		return err
	}
	name := "sluice"
	if command != nil && command.Selected() != nil {
		name = command.Selected().FullPath()
	}
	return fmt.Errorf("%w; run `%s --help`", err, name)
}

// fail prints err, if there is one, and returns the exit code.
func (p Program) fail(err error) int {
	if err == nil {
		return exitOK
	}
	text := term.Escape(secrets.Web(err.Error()))
	if _, asIs := errors.AsType[program.FormattedError](err); !asIs && !strings.HasPrefix(text, "sluice: ") {
		text = "sluice: " + text
	}
	_, _ = fmt.Fprintln(p.Stderr, strings.TrimRight(text, "\n"))
	if _, usage := errors.AsType[program.UsageError](err); usage {
		return exitUsage
	}
	return exitFailure
}
