package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-go/sluice/cmd/sluice/internal/connect"
	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/internal/tool/migrate"
)

type Command struct {
	connect.TableOnly
	schemafile.Flag

	DryRun  bool `help:"Say what would be done and what it would cost; write nothing."`
	Verify  bool `help:"Hold the marked items against the buckets; write nothing."`
	Cleanup bool `help:"Delete the items that buckets have taken over."`

	Expired    bool    `help:"With --cleanup: delete the items whose bucket has expired since, too."`
	Resource   *string `placeholder:"RESOURCE" help:"Work on this resource alone."`
	Segments   int     `default:"4" help:"How many segments of the table are worked on at once, 1 to 100; a run that goes on keeps its own."`
	WriteUnits int     `default:"100" help:"Write units to use a second; 0 for as many as there are."`
	JSON       bool    `name:"json" help:"Print the report as JSON, its lists in full."`
}

// Help says what to do, in order.
func (Command) Help() string {
	return `Per-limit items, #BUCKET#<resource>#<limit>, become buckets, #BUCKET#<resource>: refilled until now, with what was consumed. Each bucket is put, and its items are marked, in one transaction, beside acquires of programs that do the same for what they need. In order:

1. sluice migrate --dry-run: what there is, what it costs, whose numbers differ from limits.yaml's, and whose last refill is far ahead. Override and mend those before 2.

2. Stop whoever writes per-limit items, and deploy programs with dynamo.PerLimitItems(). They carry over what they need.

3. sluice migrate: it may be ended and run again at any time, and goes on where it was.

4. sluice migrate --verify: items against buckets, and whose numbers differ.

5. sluice migrate --cleanup: deletes the items that were taken over.

6. Once it says that none is left: remove dynamo.PerLimitItems(). Until then Check fails in programs without it.

The exit code is 1 if anything is wrong with a bucket or an item; of --verify and --cleanup, also if an item is left that nothing has taken over.`
}

// Run does the job and prints its report, as far as it came.
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
	config := migrate.Config{
		Job: job, Client: client, Table: c.Table, Specs: s.Specs, Segments: c.Segments, Units: c.WriteUnits, Expired: c.Expired,
		Now: p.Now, Progress: p.Stderr, Terminal: term.IsTerminal(p.Stderr),
	}
	if c.Resource != nil {
		config.Resource = *c.Resource
	}
	report, err := migrate.Run(ctx, config)
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

// check reads the schema and holds the flags against it and each other.
func (c Command) check() (*schemafile.Schema, migrate.Job, error) {
	var jobs []string
	job := migrate.Carry
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
	case len(jobs) > 1:
		return nil, "", program.Usagef("%s are steps of their own: run one after the other", strings.Join(jobs, " and "))
	case c.Expired && !c.Cleanup:
		return nil, "", program.Usagef("--expired is about what --cleanup deletes: pass both")
	case c.Segments < 1 || c.Segments > migrate.MostSegments:
		return nil, "", program.Usagef("--segments %d: want 1 to %d", c.Segments, migrate.MostSegments)
	case c.WriteUnits < 0:
		return nil, "", program.Usagef("--write-units %d: want at least 1, or 0 for as many as there are", c.WriteUnits)
	case c.Resource != nil && *c.Resource == "": // a variable that is not set must not mean all
		return nil, "", program.Usagef("--resource is empty: want its name in limits.yaml, as in gpt-4; without --resource all are worked on")
	}
	s, err := c.Read()
	if err == nil && c.Resource != nil {
		_, err = s.Resource(*c.Resource)
	}
	return s, job, err
}

// stopped says how to go on after err.
func (c Command) stopped(ctx context.Context, client *dynamodb.Client, job migrate.Job, err error) error {
	next := "it goes on where this run was"
	if job == migrate.DryRun || job == migrate.Verify {
		next = "it begins anew"
	}
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted; run the same command again: %s", next)
	}
	return fmt.Errorf("%w; then run the same command again: %s", connect.Explain(client, err), next)
}

// wrongIn is the error for a report that somebody has to do something about.
func wrongIn(r *migrate.Report) error {
	var wrong []string
	add := func(n int, thing, how string) {
		if n > 0 {
			wrong = append(wrong, format.Quantity(n, thing)+" "+how)
		}
	}
	add(len(r.Wrong), "bucket", "wrong")
	add(len(r.Beside), "bucket", "beside items")
	add(int(r.Missed), "bucket", "passed over by the runs before: run `sluice migrate` again")
	if r.Job == migrate.Verify || r.Job == migrate.Cleanup {
		n := 0
		for _, l := range r.Left {
			n += int(l.Items)
		}
		add(n, "item", "left that nothing has taken over")
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
	return p.Json(r)
}
