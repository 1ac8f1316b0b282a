// Package cli is the command line of sluice.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/internal/tool/redisclient"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1 // mistakes in the schema, a check that found something, a call that failed
	exitUsage   = 2
)

// Program is sluice with what it needs of the process. Results go to Stdout, progress and errors to Stderr.
type Program struct {
	Stdout, Stderr io.Writer
	Now            func() time.Time
}

// grammar is what kong parses; each command's Run is in a file of its own.
type grammar struct {
	Generate  generateCommand  `cmd:"" help:"Write the Go package that limits.yaml describes."`
	Breaking  breakingCommand  `cmd:"" help:"List what a change of limits.yaml breaks: data in the table, callers, behaviour."`
	Schema    schemaCommand    `cmd:"" help:"Print the reference of limits.yaml: every key, and the errors it can give."`
	Init      initCommand      `cmd:"" help:"Write a starter limits.yaml and a go:generate line for it."`
	Table     tableCommand     `cmd:"" help:"Create or check the DynamoDB table."`
	Peek      peekCommand      `cmd:"" help:"Show what a bucket has left. Changes nothing."`
	Top       topCommand       `cmd:"" help:"List a resource's buckets, nearest to their limits first. Changes nothing."`
	Entity    entityCommand    `cmd:"" help:"Say which entity belongs to which, where calls look that up."`
	Override  overrideCommand  `cmd:"" help:"Change the limits of an entity or a kind, without a deployment."`
	Reset     resetCommand     `cmd:"" help:"Fill a bucket up."`
	Aggregate aggregateCommand `cmd:"" help:"Add up what was consumed, from the table's stream, in windows that usage shows."`
	Usage     usageCommand     `cmd:"" help:"Show what an entity consumed, by hour or day. Changes nothing."`
	Region    regionCommand    `cmd:"" help:"Share limits out between regions whose tables know nothing of each other."`
	Infra     infraCommand     `cmd:"" help:"Print the table, its alarms and its policies for CloudFormation, Terraform or IAM."`
	Metrics   metricsCommand   `cmd:"" help:"Print the metrics, a dashboard and alarms of them for Grafana, CloudFormation or Terraform."`
	Migrate   migrateCommand   `cmd:"" help:"Carry a table over from per-limit items, beside live acquires."`
	Load      loadCommand      `cmd:"" help:"Drive the limits with calls, and report latencies, denials and capacity units."`
	Dev       devCommand       `cmd:"" help:"Serve a DynamoDB in memory, for development, until Ctrl-C."`
	Version   versionCommand   `cmd:"" help:"Print the version."`

	PrintVersion versionFlag `name:"version" help:"Print the version."`
}

// Run runs the command line args, which do not include the program's name, and returns the exit code.
func (p Program) Run(ctx context.Context, args []string) int {
	out := &checkedWriter{w: p.Stdout}
	p.Stdout = out
	exit := -1 // what kong, once it has printed help or the version, wanted to exit with
	parser, err := kong.New(&grammar{},
		kong.Name("sluice"),
		kong.Description("Typed token-bucket rate limits on DynamoDB and Redis, generated from limits.yaml."),
		kong.Writers(p.Stdout, p.Stderr),
		kong.Exit(func(code int) { exit = code }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(p),
	)
	if err != nil {
		return p.fail(err)
	}
	command, err := parser.Parse(args)
	switch {
	case out.err != nil: // help or the version
		return p.fail(out.failed())
	case exit >= 0:
		return exit
	case err != nil:
		if parsed, ok := errors.AsType[*kong.ParseError](err); ok {
			command = parsed.Context // as far as it went
		}
		return p.fail(withHelp(usageError{redisclient.Redact(err.Error())}, command))
	}
	if err = command.Run(); err == nil || errors.Is(err, out.err) { // a command that notices does not say what it could not write
		err = out.failed()
	}
	return p.fail(withHelp(err, command))
}

// say prints a result.
func (p Program) say(format string, args ...any) { _, _ = fmt.Fprintf(p.Stdout, format, args...) }

// note prints progress or an error, for which nothing can be done where it cannot be written.
func (p Program) note(format string, args ...any) { _, _ = fmt.Fprintf(p.Stderr, format, args...) }

// checkedWriter keeps the first error, so that one look at the end finds results that were not written.
type checkedWriter struct {
	w   io.Writer
	err error
}

// Write writes to w unless that has failed before.
func (c *checkedWriter) Write(text []byte) (n int, err error) {
	if c.err == nil {
		n, c.err = c.w.Write(text)
	}
	return n, c.err
}

// failed returns the error of the first write that failed, if one did.
func (c *checkedWriter) failed() error {
	if c.err == nil {
		return nil
	}
	return fmt.Errorf("write the output: %w", c.err)
}

// usageError is a mistake in the command line.
type usageError struct{ text string }

// Error says what is wrong.
func (e usageError) Error() string { return e.text }

// withHelp adds to a mistake in the command line where the usage is: in the help of its command, if it got that far.
func withHelp(err error, command *kong.Context) error {
	if _, usage := errors.AsType[usageError](err); !usage {
		return err
	}
	program := "sluice"
	if command != nil && command.Selected() != nil {
		program = command.Selected().FullPath()
	}
	return fmt.Errorf("%w; run `%s --help`", err, program)
}

// failure is an error whose text is complete as it is: the mistakes of a schema, each with its place in the file.
type failure struct{ error }

// Unwrap returns what failed.
func (e failure) Unwrap() error { return e.error }

// fail prints err, if any, and returns the exit code.
func (p Program) fail(err error) int {
	if err == nil {
		return exitOK
	}
	text := err.Error()
	if _, complete := errors.AsType[failure](err); !complete && !strings.HasPrefix(text, "sluice: ") {
		text = "sluice: " + text
	}
	p.note("%s\n", strings.TrimRight(text, "\n"))
	if _, usage := errors.AsType[usageError](err); usage {
		return exitUsage
	}
	return exitFailure
}
