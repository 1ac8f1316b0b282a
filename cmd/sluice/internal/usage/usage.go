// Package usage is `sluice usage`: it shows what an entity consumed.
package usage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
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
	By       string  `enum:"hour,day,month,window" default:"day" aliases:"span" help:"${by}"`
	Zone     *string `placeholder:"ZONE" help:"${usage_zone}"`
	Since    string  `default:"7d" placeholder:"7d" help:"${since}"`
	Money    bool    `help:"Show limits of money alone."`
	JSON     bool    `xor:"form" name:"json" help:"Print a JSON object per window, in millitokens."`
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
		"that has not ended is marked as running and may still grow. Refills and allowances are those " +
		"of the schema, without overrides. Of a limit in flight, usage has the slots that calls took when " +
		"they were admitted: its capacity is no bound for an hour, so charts have no line for it.\n\n" +
		"--by window (or --span window) shows each windowed limit by its own windows: those that end " +
		"after --since. Their sum is all that the limit consumed. Usage from before a bucket's first " +
		"window is shown as such. A reset ends a window and begins another that ends 1 ms " +
		"later.\n\n" +
		"With --zone, days and months are those of a zone, which is whole hours from UTC. They are added " +
		"up from hours, which `sluice aggregate` keeps for 35 days unless --keep-hours says otherwise.\n\n" +
		"Limits of money are shown as amounts, with their currency. --money leaves out all others.\n\n" +
		schemafile.UnitsHelp +
		"Example: sluice usage user-123 --by hour --since 12h --svg usage.svg"
}

// Run reads the windows and prints them in the chosen form.
func (c Command) Run(ctx context.Context, p program.Env) error {
	now := p.Now()
	zone, err := c.location()
	if err != nil {
		return err
	}
	question, err := c.question(now, zone)
	if err != nil {
		return err
	}
	s, err := c.schema()
	if err != nil {
		return err
	}
	client, err := c.Client(ctx)
	if err != nil {
		return err
	}
	items, err := c.In(client)
	if err != nil {
		return err
	}
	explain := func(err error) error { return connect.Explain(client, operator.CallError(c.Table, err)) }
	if question.Span == usage.LimitWindow {
		all, err := c.readWindows(ctx, items, question)
		if err != nil {
			return explain(err)
		}
		if c.Money {
			all = slices.DeleteFunc(all, func(u usage.WindowUsage) bool { return s.Unit(u.Resource, u.Limit) == "" })
		}
		return c.showWindows(p, s, all, question, now)
	}
	all, err := c.read(ctx, items, question)
	if err != nil {
		return explain(err)
	}
	if c.Money {
		all = budgets(s, all)
	}
	if zone != time.UTC {
		days, err := c.readDays(ctx, items, question, now)
		if err != nil {
			return explain(err)
		}
		if err := c.checkComplete(all, days, zone, now); err != nil {
			return err
		}
	}
	return c.show(p, s, group(all, question), question, now)
}

// read reads the windows that the question's are made of, by start and resource.
func (c Command) read(ctx context.Context, items usage.Querier, q usage.Question) ([]usage.Usage, error) {
	switch {
	case q.Since.Location() != time.UTC:
		q.Span = usage.Hour
		q.Since = q.Since.UTC().Truncate(usage.Day.Length()) // so that days are complete
	case q.Span == month:
		q.Span = usage.Day
	}
	return collect(usage.Read(ctx, items, c.Table, q))
}

// readDays reads the days in UTC that lie within the question's time.
func (c Command) readDays(ctx context.Context, items usage.Querier, q usage.Question, now time.Time) (
	[]usage.Usage, error) {
	q.Span, q.Until = usage.Day, now
	return collect(usage.Read(ctx, items, c.Table, q))
}

// collect returns what is yielded, or the first error.
func collect[T any](yielded iter.Seq2[T, error]) (all []T, err error) {
	for u, err := range yielded {
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

// group returns the windows that the question asks for, of what read returned.
func group(all []usage.Usage, q usage.Question) []usage.Usage {
	if q.Since.Location() != time.UTC || q.Span == month {
		all = slices.DeleteFunc(all, func(u usage.Usage) bool { return u.Start.Before(q.Since) })
		return regroup(all, q.Span, q.Since.Location())
	}
	slices.SortStableFunc(all, byStart)
	return all
}

// show prints windows in the chosen form.
func (c Command) show(p program.Env, s *schemafile.Schema, all []usage.Usage, q usage.Question,
	now time.Time) error {
	if len(all) == 0 { // the file of an older chart is not changed
		p.Note("%s\n", c.none(q))
		return nil
	}
	switch {
	case c.JSON:
		return printJSON(p, s, all, now)
	case c.CSV:
		return printCSV(p.Stdout, s, all, now)
	case c.Plot:
		return c.chart(s, all, now).Text(p.Stdout)
	case c.SVG != nil:
		return c.write(p, c.chart(s, all, now))
	}
	return printTable(p.Stdout, s, all, now)
}

// dateForm matches the beginning of a date. No period begins like this.
var dateForm = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}`)

// question returns what the arguments ask at now. It begins with the start of the first hour, day or month,
// in the zone; windows of limits are those that end after it. Wrong arguments are usage errors.
func (c Command) question(now time.Time, zone *time.Location) (q usage.Question, err error) {
	q = usage.Question{Entity: c.Entity, Span: usage.Span(c.By)}
	if err := schemafile.CheckEntity(c.Entity); err != nil {
		return q, err
	}
	if c.Resource != nil {
		if q.Resource = *c.Resource; schemafile.CheckResource(q.Resource) != nil {
			return q, schemafile.CheckResource(q.Resource)
		}
	}
	switch {
	case c.SVG != nil && *c.SVG == "":
		return q, program.Usagef("--svg is empty: pass the name of a file")
	case c.File != nil && *c.File == "":
		return q, program.Usagef("--file is empty: pass the path of the schema, or leave the flag out for " +
			"limits.yaml")
	case c.SVG != nil && !c.drawsTime():
		return q, program.Usagef("--svg draws hours and days in UTC: pass --plot instead, or another --by and no " +
			"--zone")
	}
	if q.Since, err = c.since(now, zone); err != nil || q.Span == usage.LimitWindow {
		return q, err
	}
	q.Since = windowStart(q.Span, q.Since)
	if zone == time.UTC {
		return q, nil
	}
	return q, checkHours(zone, q.Since, now)
}

// since returns the instant of --since, in a zone.
func (c Command) since(now time.Time, zone *time.Location) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, c.Since); err == nil {
		begins := midnight(day.Year(), day.Month(), day.Day(), zone)
		if begins.After(now) {
			return begins, program.Usagef("--since %s: that day has not begun in %s: pass an earlier one", c.Since,
				zone)
		}
		return begins, nil
	}
	if dateForm.MatchString(c.Since) {
		return now, program.Usagef("--since %s is not a date: pass one such as 2026-11-21", c.Since)
	}
	ago, why := format.ParseAge(c.Since)
	if why != "" {
		return now, program.Usagef("--since: period %q %s; or pass a date, such as 2026-11-21", c.Since, why)
	}
	return now.Add(-ago).In(zone), nil
}

// schema reads the schema. It returns nil if none is named and limits.yaml does not exist.
func (c Command) schema() (*schemafile.Schema, error) {
	if c.File != nil {
		return schemafile.Flag{File: *c.File}.Read()
	}
	if _, err := os.Stat(schemafile.DefaultFile); errors.Is(err, fs.ErrNotExist) {
		if c.Money {
			return nil, program.Usagef("--money needs the schema, which names the limits of money, and there is no "+
				"%s here: pass --file", schemafile.DefaultFile)
		}
		return nil, nil //nolint:nilnil // without a schema, a chart has no lines for refills
	}
	return schemafile.Flag{File: schemafile.DefaultFile}.Read()
}

// none says what it means that there is no window.
func (c Command) none(q usage.Question) string {
	what := term.Quote(q.Entity)
	if q.Resource != "" {
		what += " on " + q.Resource
	}
	return fmt.Sprintf("%s: no usage by %s is stored since %s %s: nothing was consumed, or neither `sluice "+
		"aggregate` nor a Lambda function has counted it", what, q.Span, q.Since.Format("2006-01-02 15:04"),
		q.Since.Location())
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
		"by": "Length of a window: hour, day or month, in UTC or in --zone; or window, each limit's own.",
		"usage_zone": "The zone of days, months, --since and the ends of windows, such as Europe/Berlin. The " +
			"default is UTC.",
		"since": "Begin of the first window: an age, such as 7d or 12h, or a date, such as 2026-11-21.",
		"usage_file": "The schema, which names the limits of money, and from which --plot and --svg take " +
			"refills. The " +
			"default is limits.yaml, if it exists.",
	}
}

// NoRedisReason implements an interface of package connect.
func (Command) NoRedisReason() string { return "Redis has no stream of consumption" }
