// Package migrate is `sluice migrate`: it converts per-limit items into buckets.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/sluice-go/sluice/cmd/sluice/internal/connect"
	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/cmd/sluice/internal/tool/migrate"
)

// Command is `sluice migrate`.
type Command struct {
	connect.TableOnly
	schemafile.Flag
	Namespace *string `hidden:"" env:"SLUICE_NAMESPACE" placeholder:"NAME"`

	DryRun  bool `help:"Print the work and its cost; write nothing."`
	Verify  bool `help:"Compare the marked items with the buckets; write nothing."`
	Cleanup bool `help:"Delete the items that buckets have replaced."`

	Expired    bool    `help:"With --cleanup: also delete items whose bucket has expired."`
	Resource   *string `placeholder:"RESOURCE" help:"Convert this resource only."`
	Segments   int     `default:"4" help:"${segments}"`
	WriteUnits int     `default:"100" help:"Write units per second to use; 0 is no bound."`
	JSON       bool    `name:"json" help:"Print the report as JSON, with complete lists."`
}

// Help lists the steps of a migration.
func (Command) Help() string {
	return "It converts per-limit items, #BUCKET#<resource>#<limit>, into buckets, #BUCKET#<resource>, " +
		"with their consumption and refilled until now. One transaction puts a bucket and marks its " +
		"items. It runs beside acquires of programs with migrating.New, which convert the " +
		"items that they need. In order:\n\n" +
		"1. sluice migrate --dry-run prints the work and its cost, items with other limits than " +
		"limits.yaml, and items whose last refill is far ahead. Override the former and correct the " +
		"latter before step 2.\n\n" +
		"2. Stop all programs that write per-limit items, and deploy programs with " +
		"migrating.New.\n\n" +
		"3. sluice migrate converts. It may be stopped and run again at any time, and resumes at the " +
		"same place.\n\n" +
		"4. sluice migrate --verify compares items with buckets.\n\n" +
		"5. sluice migrate --cleanup deletes the converted items.\n\n" +
		"6. Once it says that none is left, use dynamo.New again. Until then, Check fails " +
		"in programs without it.\n\n" +
		"The exit code is 1 if a bucket or an item is wrong. With --verify and --cleanup, it is also " +
		"1 if an item is left that is not converted."
}

// Run does the job and prints its report, even if the job is incomplete.
func (c Command) Run(ctx context.Context, p program.Env) error {
	s, job, err := c.check()
	if err != nil {
		return err
	}
	client, err := c.Client(ctx)
	if err != nil {
		return err
	}
	if _, err := operator.CheckTable(ctx, client, c.Table); err != nil {
		return connect.Explain(client, err)
	}
	if err := operator.CheckOwner(ctx, client, c.Table, s.Owner); err != nil {
		return connect.Explain(client, err)
	}
	config := migrate.Config{
		Job: job, Client: client, Table: c.Table, Specs: s.Specs, Segments: c.Segments, Units: c.WriteUnits,
		Expired: c.Expired,
		Now:     p.Now, Progress: p.Stderr, Terminal: term.IsTerminal(p.Stderr),
	}
	if c.Resource != nil {
		config.Resource = *c.Resource
	}
	report, err := migrate.Run(program.Patient(ctx), config)
	if report == nil {
		return err
	}
	c.fillIn(s, report)
	if shown := c.show(p, report); shown != nil {
		return shown
	}
	if err != nil {
		return c.stopped(ctx, client, job, err)
	}
	return wrongIn(report)
}

// check reads the schema and returns the job. Flags that are wrong or exclude each other are usage errors.
func (c Command) check() (*schemafile.Schema, migrate.Job, error) {
	var jobs []string
	job := migrate.Convert
	for _, j := range []struct {
		job   migrate.Job
		given bool
	}{{migrate.DryRun, c.DryRun}, {migrate.Verify, c.Verify}, {migrate.Cleanup, c.Cleanup}} {
		if j.given {
			job = j.job
			jobs = append(jobs, "--"+string(j.job))
		}
	}
	switch {
	case c.Namespace != nil:
		return nil, "", program.Usagef("a namespace has no per-limit items: leave --namespace and " +
			"SLUICE_NAMESPACE out")
	case len(jobs) > 1:
		return nil, "", program.Usagef("%s exclude each other: run one after the other",
			strings.Join(jobs, " and "))
	case c.Expired && !c.Cleanup:
		return nil, "", program.Usagef("--expired is for --cleanup: pass both")
	case c.Segments < 1 || c.Segments > migrate.MostSegments:
		return nil, "", program.Usagef("--segments %d is out of range: pass 1 to %d", c.Segments,
			migrate.MostSegments)
	case c.WriteUnits < 0:
		return nil, "", program.Usagef("--write-units %d is negative: pass 1 or more, or 0 for no bound",
			c.WriteUnits)
	case c.Resource != nil && *c.Resource == "": // an unset variable must not mean all
		return nil, "", program.Usagef("--resource is empty: pass its name in limits.yaml, or leave the flag " +
			"out for all")
	}
	s, err := c.Read()
	if err == nil && c.Resource != nil {
		_, err = s.Resource(*c.Resource)
	}
	return s, job, err
}

// stopped adds to err how to resume.
func (c Command) stopped(ctx context.Context, client *dynamodb.Client, job migrate.Job, err error) error {
	next := "it resumes at the same place"
	if job == migrate.DryRun || job == migrate.Verify {
		next = "it starts again"
	}
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted; run the same command again: %s", next)
	}
	return fmt.Errorf("%w; then run the same command again: %s", connect.Explain(client, err), next)
}

// wrongIn returns the error for a report with problems that somebody has to solve.
func wrongIn(r *migrate.Report) error {
	var wrong []string
	add := func(n int, thing, how string) {
		if n > 0 {
			wrong = append(wrong, format.Quantity(n, thing)+" "+how)
		}
	}
	add(len(r.Wrong), "bucket", "wrong")
	add(len(r.Beside), "bucket", "beside items")
	add(int(r.Missed), "bucket", "missed by the runs before: run `sluice migrate` again")
	if r.Job == migrate.Verify || r.Job == migrate.Cleanup {
		n := 0
		for _, l := range r.Left {
			n += int(l.Items)
		}
		add(n, "item", "left that is not converted")
	}
	if len(wrong) == 0 {
		return nil
	}
	return errors.New(strings.Join(wrong, ", "))
}

// show prints the report.
func (c Command) show(p program.Env, r *migrate.Report) error {
	if !c.JSON {
		return describe(p, r)
	}
	return p.JSON(r)
}

// FlagHelp returns the help texts that are too long for a tag.
func (Command) FlagHelp() kong.Vars {
	return kong.Vars{
		"segments": "Segments of the table to convert at once, 1 to 100. A resumed run keeps its own.",
	}
}

// NoRedisReason implements an interface of package connect.
func (Command) NoRedisReason() string { return "Redis has no per-limit items" }
