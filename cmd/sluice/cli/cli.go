// Package cli is the command line of sluice.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/aggregate"
	"github.com/sluice-go/sluice/cmd/sluice/internal/breaking"
	"github.com/sluice-go/sluice/cmd/sluice/internal/dev"
	"github.com/sluice-go/sluice/cmd/sluice/internal/entity"
	"github.com/sluice-go/sluice/cmd/sluice/internal/generate"
	"github.com/sluice-go/sluice/cmd/sluice/internal/infra"
	"github.com/sluice-go/sluice/cmd/sluice/internal/initialize"
	"github.com/sluice-go/sluice/cmd/sluice/internal/load"
	"github.com/sluice-go/sluice/cmd/sluice/internal/metrics"
	"github.com/sluice-go/sluice/cmd/sluice/internal/migrate"
	"github.com/sluice-go/sluice/cmd/sluice/internal/override"
	"github.com/sluice-go/sluice/cmd/sluice/internal/peek"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/region"
	"github.com/sluice-go/sluice/cmd/sluice/internal/reset"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schema"
	"github.com/sluice-go/sluice/cmd/sluice/internal/table"
	"github.com/sluice-go/sluice/cmd/sluice/internal/top"
	"github.com/sluice-go/sluice/cmd/sluice/internal/usage"
	"github.com/sluice-go/sluice/cmd/sluice/internal/version"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/internal/tool/redisclient"
)

// Exit codes.
const (
	ExitOK      = 0
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
	Generate  generate.Command   `cmd:"" help:"Write the Go package that limits.yaml describes."`
	Breaking  breaking.Command   `cmd:"" help:"List what a change of limits.yaml breaks: data in the table, callers, behaviour."`
	Schema    schema.Command     `cmd:"" help:"Print the reference of limits.yaml: every key, and the errors it can give."`
	Init      initialize.Command `cmd:"" help:"Write a starter limits.yaml and a go:generate line for it."`
	Table     table.Command      `cmd:"" help:"Create or check the DynamoDB table."`
	Peek      peek.Command       `cmd:"" help:"Show what a bucket has left. Changes nothing."`
	Top       top.Command        `cmd:"" help:"List a resource's buckets, nearest to their limits first. Changes nothing."`
	Entity    entity.Command     `cmd:"" help:"Say which entity belongs to which, where calls look that up."`
	Override  override.Command   `cmd:"" help:"Change the limits of an entity or a kind, without a deployment."`
	Reset     reset.Command      `cmd:"" help:"Fill a bucket up."`
	Aggregate aggregate.Command  `cmd:"" help:"Add up what was consumed, from the table's stream, in windows that usage shows."`
	Usage     usage.Command      `cmd:"" help:"Show what an entity consumed, by hour or day. Changes nothing."`
	Region    region.Command     `cmd:"" help:"Share limits out between regions whose tables know nothing of each other."`
	Infra     infra.Command      `cmd:"" help:"Print the table, its alarms and its policies for CloudFormation, Terraform or IAM."`
	Metrics   metrics.Command    `cmd:"" help:"Print the metrics, a dashboard and alarms of them for Grafana, CloudFormation or Terraform."`
	Migrate   migrate.Command    `cmd:"" help:"Carry a table over from per-limit items, beside live acquires."`
	Load      load.Command       `cmd:"" help:"Drive the limits with calls, and report latencies, denials and capacity units."`
	Dev       dev.Command        `cmd:"" help:"Serve a DynamoDB in memory, for development, until Ctrl-C."`
	Version   version.Command    `cmd:"" help:"Print the version."`

	PrintVersion version.Flag `name:"version" help:"Print the version."`
}

// Run runs the command line args, which do not include the program's name, and returns the exit code.
func (p Program) Run(ctx context.Context, args []string) int {
	out := &program.Output{W: p.Stdout}
	p.Stdout = out
	e := program.Env{Stdout: out, Stderr: p.Stderr, Now: p.Now}
	exit := -1 // what kong, once it has printed help or the version, wanted to exit with
	parser, err := kong.New(&grammar{},
		kong.Name("sluice"),
		kong.Description("Typed token-bucket rate limits on DynamoDB and Redis, generated from limits.yaml."),
		kong.Writers(p.Stdout, p.Stderr),
		kong.Exit(func(code int) { exit = code }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(e),
	)
	if err != nil {
		return p.fail(err)
	}
	command, err := parser.Parse(args)
	switch {
	case out.Err != nil: // help or the version
		return p.fail(notWritten(out))
	case exit >= 0:
		return exit
	case err != nil:
		if parsed, ok := errors.AsType[*kong.ParseError](err); ok {
			command = parsed.Context // as far as it went
		}
		return p.fail(withHelp(program.Usagef("%s", redisclient.Redact(err.Error())), command))
	}
	if err = command.Run(); err == nil || errors.Is(err, out.Err) { // a command that notices does not say what it could not write
		err = notWritten(out)
	}
	return p.fail(withHelp(err, command))
}

// notWritten returns the error of the first write to out that failed, if one did.
func notWritten(out *program.Output) error {
	if out.Err == nil {
		return nil
	}
	return fmt.Errorf("write the output: %w", out.Err)
}

// withHelp adds to a mistake in the command line where the usage is: in the help of its command, if it got that far.
func withHelp(err error, command *kong.Context) error {
	if _, usage := errors.AsType[program.UsageError](err); !usage {
		return err
	}
	program := "sluice"
	if command != nil && command.Selected() != nil {
		program = command.Selected().FullPath()
	}
	return fmt.Errorf("%w; run `%s --help`", err, program)
}

// fail prints err, if any, and returns the exit code.
func (p Program) fail(err error) int {
	if err == nil {
		return ExitOK
	}
	text := err.Error()
	if _, complete := errors.AsType[program.Formatted](err); !complete && !strings.HasPrefix(text, "sluice: ") {
		text = "sluice: " + text
	}
	_, _ = fmt.Fprintln(p.Stderr, strings.TrimRight(text, "\n"))
	if _, usage := errors.AsType[program.UsageError](err); usage {
		return exitUsage
	}
	return exitFailure
}
