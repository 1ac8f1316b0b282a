// Package usage is `sluice usage`: it shows what an entity consumed.
package usage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/connect"
	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/internal/tool/chart"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/usage"
)

// Command is `sluice usage`.
type Command struct {
	connect.TableOnly
	connect.Namespaced

	Entity   string  `arg:"" type:"entity" help:"${entity}"`
	Resource *string `placeholder:"RESOURCE" help:"Show this resource only. The default is all."`
	By       string  `enum:"hour,day" default:"day" help:"Length of a window: hour or day, in UTC."`
	Since    string  `default:"7d" placeholder:"7d" help:"${since}"`
	JSON     bool    `xor:"form" name:"json" help:"Print a JSON object per window on a line, in millitokens."`
	CSV      bool    `xor:"form" name:"csv" help:"Print comma-separated values."`
	Plot     bool    `xor:"form" help:"Print bars."`
	SVG      *string `xor:"form" name:"svg" placeholder:"FILE" help:"Write a chart to this file, or replace it."`
	File     *string `placeholder:"limits.yaml" help:"${usage_file}"`
}

// AfterApply also refuses the default table if the environment names a Redis, which other commands would
// use.
func (c Command) AfterApply(command *kong.Context) error {
	if err := c.TableOnly.AfterApply(command); err != nil {
		return err
	}
	if os.Getenv("SLUICE_REDIS_URL") == "" || os.Getenv("SLUICE_TABLE") != "" ||
		connect.Given(command, "endpoint", "region", "table") != nil {
		return nil
	}
	return fmt.Errorf("SLUICE_REDIS_URL is set, and %s works on a table only: %s; pass --table",
		connect.Name(command), connect.NoRedisReason(command))
}

// Help describes windows.
func (Command) Help() string {
	return "`sluice aggregate` adds windows up from the table's stream. Tokens that are given back " +
		"count in the window in which they are given back, so a window can be negative. A window " +
		"that has not ended is marked as running and may still grow. Refills are those of the " +
		"schema, without overrides.\n\n" +
		"Example: sluice usage user-123 --by hour --since 12h --svg usage.svg"
}

// Run reads the windows and prints them in the chosen form.
func (c Command) Run(ctx context.Context, p program.Env) error {
	now := p.Now()
	question, err := c.question(now)
	if err != nil {
		return err
	}
	var s *schemafile.Schema
	if c.Plot || c.SVG != nil {
		if s, err = c.schema(); err != nil {
			return err
		}
	}
	client, err := c.Client(ctx)
	if err != nil {
		return err
	}
	items, err := c.In(client)
	if err != nil {
		return err
	}
	var all []usage.Usage
	for u, err := range usage.Read(ctx, items, c.Table, question) {
		if err != nil {
			return connect.Explain(client, operator.CallError(c.Table, err))
		}
		all = append(all, u)
	}
	if len(all) == 0 { // the file of an older chart is not changed
		p.Note("%s\n", c.none(question))
		return nil
	}
	slices.SortStableFunc(all, func(a, b usage.Usage) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Resource, b.Resource))
	})
	switch {
	case c.JSON:
		return printJSON(p, all, now)
	case c.CSV:
		return printCSV(p.Stdout, all, now)
	case c.Plot:
		return c.chart(s, all, now).Text(p.Stdout)
	case c.SVG != nil:
		return c.write(p, c.chart(s, all, now))
	}
	return printTable(p.Stdout, all, now)
}

// dateForm matches the beginning of a date. No period begins like this.
var dateForm = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}`)

// question returns the query of the arguments at now. Wrong arguments are usage errors.
func (c Command) question(now time.Time) (q usage.Question, err error) {
	q = usage.Question{Entity: c.Entity, Span: usage.Span(c.By)}
	if err := schemafile.CheckEntity(c.Entity); err != nil {
		return q, err
	}
	if c.Resource != nil {
		if q.Resource = *c.Resource; schemafile.CheckResource(q.Resource) != nil {
			return q, schemafile.CheckResource(q.Resource)
		}
	}
	switch drawn := c.Plot || c.SVG != nil; {
	case c.SVG != nil && *c.SVG == "":
		return q, program.Usagef("--svg is empty: pass the name of a file")
	case c.File != nil && *c.File == "":
		return q, program.Usagef("--file is empty: pass the path of the schema, or leave the flag out for " +
			"limits.yaml")
	case c.File != nil && !drawn:
		return q, program.Usagef("--file is for --plot and --svg: pass one of them")
	}
	if day, err := time.Parse(time.DateOnly, c.Since); err == nil {
		if q.Since = day; day.After(now) {
			return q, program.Usagef("--since %s: that day has not begun in UTC: pass an earlier one", c.Since)
		}
		return q, nil
	}
	if dateForm.MatchString(c.Since) {
		return q, program.Usagef("--since %s is not a date: pass one such as 2026-11-21", c.Since)
	}
	ago, why := format.ParseAge(c.Since)
	if why != "" {
		return q, program.Usagef("--since: period %q %s; or pass a date, such as 2026-11-21", c.Since, why)
	}
	q.Since = now.Add(-ago)
	return q, nil
}

// schema reads the schema. It returns nil if none is named and limits.yaml does not exist.
func (c Command) schema() (*schemafile.Schema, error) {
	if c.File != nil {
		return schemafile.Flag{File: *c.File}.Read()
	}
	const usual = "limits.yaml"
	if _, err := os.Stat(usual); errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // without a schema, a chart has no lines for refills
	}
	return schemafile.Flag{File: usual}.Read()
}

// none says what it means that there is no window.
func (c Command) none(q usage.Question) string {
	what := term.Quote(q.Entity)
	if q.Resource != "" {
		what += " on " + q.Resource
	}
	from := q.Since.UTC().Truncate(q.Span.Length()) // the read includes the window that contains this instant
	return fmt.Sprintf("%s: no usage by %s is stored since %s: nothing was consumed, or neither `sluice "+
		"aggregate` nor a Lambda function has counted it", what, q.Span, from.Format("2006-01-02 15:04 UTC"))
}

// write writes the chart to its file.
func (c Command) write(p program.Env, drawn chart.Chart) error {
	if err := replaceFile(*c.SVG, drawn.SVG); err != nil {
		return fmt.Errorf("--svg %s: %w", *c.SVG, err)
	}
	p.Note("wrote %s\n", *c.SVG) // to stderr, since the file may be /dev/stdout
	return nil
}

// FlagHelp returns the help texts that are too long for a tag.
func (Command) FlagHelp() kong.Vars {
	return kong.Vars{
		"since": "Begin of the first window: an age, such as 7d or 12h, or a date, such as 2026-11-21.",
		"usage_file": "The schema, from which --plot and --svg take refills. The default is limits.yaml, if it " +
			"exists.",
	}
}

// NoRedisReason implements an interface of package connect.
func (Command) NoRedisReason() string { return "Redis has no stream of consumption" }
