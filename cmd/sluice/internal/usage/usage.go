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

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/internal/tool/chart"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/usage"
)

type Command struct {
	connect.TableOnly

	Entity   string  `arg:"" help:"Entity as stored: its kind, '-', its id, as in user-123."`
	Resource *string `placeholder:"RESOURCE" help:"Only this resource, by its name in limits.yaml. The default is all."`
	By       string  `enum:"hour,day" default:"day" help:"How long a window is: hour or day, in UTC."`
	Since    string  `default:"7d" placeholder:"7d" help:"From when on: how long ago, such as 7d or 12h, or a date, such as 2026-11-21."`
	JSON     bool    `xor:"form" name:"json" help:"Print an object per window, in millitokens, each on a line."`
	CSV      bool    `xor:"form" name:"csv" help:"Print comma-separated values."`
	Plot     bool    `xor:"form" help:"Print bars."`
	SVG      *string `xor:"form" name:"svg" placeholder:"FILE" help:"Write a chart to this file, in place of what is there."`
	File     *string `placeholder:"limits.yaml" help:"The schema, for what --plot and --svg say refills. The default is limits.yaml, where that is."`
}

// AfterApply refuses the default table, too, where the environment has a Redis: others of its commands are about that.
func (c Command) AfterApply(command *kong.Context) error {
	if err := c.TableOnly.AfterApply(command); err != nil {
		return err
	}
	if os.Getenv("SLUICE_REDIS_URL") == "" || os.Getenv("SLUICE_TABLE") != "" || connect.Given(command, "endpoint", "region", "table") != nil {
		return nil
	}
	name, why := connect.NotOnRedis(command)
	return fmt.Errorf("SLUICE_REDIS_URL is set, and %s is about DynamoDB alone: %s; for a table pass --table", name, why)
}

// Help says where the windows come from.
func (Command) Help() string {
	return "Windows are added up from the table's stream, by an aggregator. What is given back later than it was taken counts in the " +
		"window in which it is given back, which can so be negative. A window " +
		"that is not over yet is marked as running, and may still grow. What refills is what the schema says, not an override.\n\n" +
		"Example: sluice usage user-123 --by hour --since 12h --svg usage.svg"
}

// Run reads the windows and prints them in the form that is asked for.
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
	var all []usage.Usage
	for u, err := range usage.Read(ctx, client, c.Table, question) {
		if err != nil {
			return connect.Explain(client, operator.CallError(c.Table, err))
		}
		all = append(all, u)
	}
	if len(all) == 0 { // a file of an older chart stays as it is
		p.Note("%s\n", c.none(question))
		return nil
	}
	slices.SortStableFunc(all, func(a, b usage.Usage) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Resource, b.Resource))
	})
	switch {
	case c.JSON:
		return printJSON(p.Stdout, all, now)
	case c.CSV:
		return printCSV(p.Stdout, all, now)
	case c.Plot:
		return c.chart(s, all, now).Text(p.Stdout)
	case c.SVG != nil:
		return c.write(p, c.chart(s, all, now))
	}
	return printTable(p.Stdout, all, now)
}

// dateForm is how dates begin: what does is no period.
var dateForm = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}`)

// question checks the arguments, and says what they ask for at now.
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
		return q, program.Usagef("--svg is empty: pass a FILE")
	case c.File != nil && *c.File == "":
		return q, program.Usagef("--file is empty: pass the schema's, or leave the flag out for limits.yaml")
	case c.File != nil && !drawn:
		return q, program.Usagef("--file is about --plot and --svg: pass one of them")
	}
	if day, err := time.Parse(time.DateOnly, c.Since); err == nil {
		if q.Since = day; day.After(now) {
			return q, program.Usagef("--since %s: that day has not begun in UTC", c.Since)
		}
		return q, nil
	}
	if dateForm.MatchString(c.Since) {
		return q, program.Usagef("--since %s: want a day that there is, alone, as in 2026-11-21", c.Since)
	}
	ago, why := format.ParseAge(c.Since)
	if why != "" {
		return q, program.Usagef("--since: period %q %s; or a date, such as 2026-11-21", c.Since, why)
	}
	q.Since = now.Add(-ago)
	return q, nil
}

// schema reads the schema; nil where none is named and none is there.
func (c Command) schema() (*schemafile.Schema, error) {
	if c.File != nil {
		return schemafile.Flag{File: *c.File}.Read()
	}
	const usual = "limits.yaml"
	if _, err := os.Stat(usual); errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // a chart without a schema lacks lines, and that is all
	}
	return schemafile.Flag{File: usual}.Read()
}

// none says what it means that there is no window.
func (c Command) none(q usage.Question) string {
	what := q.Entity
	if q.Resource != "" {
		what += " on " + q.Resource
	}
	from := q.Since.UTC().Truncate(q.Span.Length()) // the window that holds the instant is looked for, too
	return fmt.Sprintf("%s: no usage by %s is stored since %s: nothing was consumed, or it has not been counted: `sluice aggregate`, or a "+
		"Lambda function on the table's stream, does that", what, q.Span, from.Format("2006-01-02 15:04 UTC"))
}

// write writes the chart's file.
func (c Command) write(p program.Env, drawn chart.Chart) error {
	if err := replaceFile(*c.SVG, drawn.SVG); err != nil {
		return fmt.Errorf("--svg %s: %w", *c.SVG, err)
	}
	p.Note("wrote %s\n", *c.SVG) // not beside the picture, where the file is /dev/stdout
	return nil
}
