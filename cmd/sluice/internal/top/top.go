// Package top is `sluice top`: it lists the most used buckets of a resource.
package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"
)

// Command is `sluice top`.
type Command struct {
	bucketstore.TableOrRedis
	schemafile.Flag

	Resource string `arg:"" help:"${resource}"`

	Limit *string        `placeholder:"LIMIT" help:"List this limit only."`
	Kind  *string        `placeholder:"KIND" help:"List and read entities of this kind only."`
	Most  int            `default:"20" help:"Number of rows, 1 to 1000."`
	JSON  bool           `name:"json" help:"Print the list as JSON, in millitokens."`
	Watch bool           `help:"Redraw the list on a terminal until Ctrl-C."`
	Every *time.Duration `placeholder:"2s" help:"${every}"`
}

// Help describes the list.
func (Command) Help() string {
	return "Each row is a limit of a bucket. The rows are sorted by the used portion of the burst: " +
		"debt, above 100%, comes first. Buckets that have been unused for long are full, have " +
		"expired, and are not listed.\n\n" +
		"The command reads all buckets of the resource or of --kind, one call after the other. This " +
		"costs about half a read unit per bucket, at each redraw of --watch too. It consumes nothing " +
		"of a limit. The list may be a moment behind.\n\n" + schemafile.UnitsHelp +
		"With --redis, SCAN visits all keys of that Redis, a thousand at a time, on each master of a " +
		"cluster. The limits are those of limits.yaml and of overrides.\n\n" +
		"Example: sluice top gpt-4 --limit tpm --kind user"
}

// Run reads the buckets and prints the most used ones.
func (c Command) Run(ctx context.Context, p program.Env) error {
	screen := p.Screen()
	if err := c.check(screen); err != nil {
		return err
	}
	at, err := c.Open(ctx, p.Now, c.Flag)
	if err != nil {
		return err
	}
	defer at.Close()
	if c.Watch {
		return c.watch(program.Patient(ctx), p, at, time.After)
	}
	b, err := c.read(ctx, p, at)
	if err != nil {
		return err
	}
	if len(b.strange) > 0 {
		p.Note("not listed, since %s does not have them for %s: %s\n", c.File, c.Resource,
			strings.Join(slices.Sorted(maps.Keys(b.strange)), ", "))
	}
	if err := c.missing(b, at); err != nil {
		return err
	}
	if c.JSON {
		if err := p.JSON(b); err != nil {
			return err
		}
	} else if err := b.write(p.Stdout, term.NewBar(screen)); err != nil {
		return err
	}
	return b.wrong()
}

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// check returns a usage error for arguments that are wrong or exclude each other. screen tells whether
// results go to a terminal.
func (c Command) check(screen bool) error {
	if err := schemafile.CheckResource(c.Resource); err != nil {
		return err
	}
	text := ""
	switch {
	case c.Limit != nil && !nameForm.MatchString(*c.Limit):
		text = fmt.Sprintf("--limit %q cannot be the name of a limit: pass one such as rpm, or leave the flag "+
			"out to list all", *c.Limit)
	case c.Kind != nil && !nameForm.MatchString(*c.Kind):
		text = fmt.Sprintf("--kind %q cannot be a kind: pass one of limits.yaml, or leave the flag out to list all",
			*c.Kind)
	case c.Most < 1 || c.Most > 1000:
		text = fmt.Sprintf("--most %d is out of range: pass 1 to 1000", c.Most)
	case c.Every != nil && !c.Watch:
		text = "--every is for --watch: pass both"
	case c.Every != nil && *c.Every < 100*time.Millisecond:
		text = fmt.Sprintf("--every %v is too short: pass 100ms or more", *c.Every)
	case c.Watch && c.JSON:
		text = "--watch and --json exclude each other: pass one of them"
	case c.Watch && !screen:
		text = "--watch needs a terminal: leave it out if the output goes elsewhere"
	}
	if text == "" {
		return nil
	}
	return program.Usagef("%s", text)
}

// read reads all buckets and keeps the rows to print. A bucket counts as it is at its read.
func (c Command) read(ctx context.Context, p program.Env, at bucketstore.Store) (*board, error) {
	b := &board{Resource: c.Resource, Rows: []row{}, most: c.Most, seen: map[string]bool{},
		strange: map[string]bool{}}
	from := at.Source()
	b.Table, b.Namespace, b.Redis, b.Prefix = from.Table, from.Namespace, from.Redis, from.Prefix
	if b.Table != "" {
		b.ReadUnits = new(float64)
	}
	kind := ""
	if c.Kind != nil {
		kind = *c.Kind
	}
	if c.Limit != nil {
		b.only = *c.Limit
	}
	began := p.Now()
	progress := newProgress(p.Stderr, term.IsTerminal(p.Stderr), began)
	defer progress.Wipe()
	for page, err := range at.List(ctx, c.Resource, kind) {
		if err != nil {
			return nil, err
		}
		b.add(page)
		progress.show(p.Now(), b.Buckets)
	}
	b.Seconds = p.Now().Sub(began).Seconds()
	return b, nil
}

// missing returns the error for a list without rows.
func (c Command) missing(b *board, at bucketstore.Store) error {
	switch {
	case len(b.Rows) > 0 || b.malformed > 0:
		return nil
	case b.Buckets > 0:
		return fmt.Errorf("no bucket of %s has a limit %s: pass one of %s", c.Resource, b.only,
			term.Quote(strings.Join(b.names(), ", ")))
	}
	which := c.Resource
	if c.Kind != nil {
		which += " for kind " + *c.Kind
	}
	place, alternatives := at.Place()
	text := fmt.Sprintf("no bucket of %s in %s: none was used, all have expired, or the name, %s is wrong",
		which,
		place, alternatives)
	if b.others > 0 {
		text += "; there are " + format.Quantity(b.others, "per-limit item") +
			", which `sluice migrate` or the next acquire converts into buckets"
	}
	return errors.New(text)
}

// watch draws the list again and again until ctx ends.
func (c Command) watch(
	ctx context.Context, p program.Env, at bucketstore.Store, after func(time.Duration) <-chan time.Time,
) error {
	every := 2 * time.Second
	if c.Every != nil {
		every = *c.Every
	}
	for {
		b, err := c.read(ctx, p, at)
		if err == nil {
			err = c.draw(p.Stdout, b, at, every)
		}
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-after(every):
		case <-ctx.Done():
			return nil
		}
	}
}

// clearScreen moves the cursor to the first line of a terminal and erases everything.
const clearScreen = "\x1b[H\x1b[2J"

// draw replaces the screen by b in one write, so that it does not flicker. A list without rows is no
// failure: the next one may have some.
func (c Command) draw(w io.Writer, b *board, at bucketstore.Store, every time.Duration) error {
	var text strings.Builder
	text.WriteString(clearScreen)
	if err := c.missing(b, at); err != nil {
		text.WriteString(err.Error() + "\n")
	} else if err := b.write(&text, term.NewBar(true)); err != nil {
		return err
	}
	if b.malformed > 0 {
		text.WriteString(format.Quantity(b.malformed, "bucket") +
			" malformed: run the command without --watch to see which\n")
	}
	fmt.Fprintf(&text, "again every %s until Ctrl-C\n", format.Span(every))
	_, err := io.WriteString(w, text.String())
	return err
}

// FlagHelp returns the help texts that are too long for a tag.
func (Command) FlagHelp() kong.Vars {
	return kong.Vars{
		"every": "With --watch: the pause before the next read, 100ms or more. The default is 2s.",
	}
}
