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

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"
)

type Command struct {
	bucketstore.TableOrRedis
	schemafile.Flag

	Resource string `arg:"" help:"Name of the resource in limits.yaml, as in gpt-4."`

	Limit *string        `placeholder:"LIMIT" help:"List this limit alone."`
	Kind  *string        `placeholder:"KIND" help:"List entities of this kind alone, as in user; others are not read."`
	Most  int            `default:"20" help:"How many rows to print, 1 to 1000. 20 fit a terminal of 24 lines."`
	JSON  bool           `name:"json" help:"Print the list as JSON, in millitokens."`
	Watch bool           `help:"Draw the list again and again, on a terminal, until Ctrl-C."`
	Every *time.Duration `placeholder:"2s" help:"With --watch: how long to wait before it is read again, 100ms or more. The default is 2s."`
}

// Help says what it reads.
func (Command) Help() string {
	return "Each row is a limit of a bucket, by the share of its burst that is used: debt, above 100%, comes first. " +
		"Buckets that nobody has used for long have expired, are full, and are not listed.\n\n" +
		"All buckets of the resource are read, or of --kind, one call after the other: about half a read unit each, every time that " +
		"--watch draws. Nothing is consumed of a limit. The list may be a moment behind.\n\n" +
		"With --redis, SCAN goes through all keys of that Redis, a thousand at a time, on each master of a cluster; the numbers are those " +
		"of limits.yaml and of overrides.\n\n" +
		"Example: sluice top gpt-4 --limit tpm --kind user"
}

// Run reads the buckets and prints those that are nearest to their limits.
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
		return c.watch(ctx, p, at, time.After)
	}
	b, err := c.read(ctx, p, at)
	if err != nil {
		return err
	}
	if len(b.strange) > 0 {
		p.Note("not listed, since %s does not have them on %s: %s\n", c.File, c.Resource, strings.Join(slices.Sorted(maps.Keys(b.strange)), ", "))
	}
	if err := c.lacking(b, at); err != nil {
		return err
	}
	if c.JSON {
		if err := p.Json(b); err != nil {
			return err
		}
	} else if err := b.write(p.Stdout, term.NewBar(screen)); err != nil {
		return err
	}
	return b.wrong()
}

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// check holds the arguments against what there can be, and each other. screen says that results go to a terminal.
func (c Command) check(screen bool) error {
	text := ""
	switch {
	case !schemafile.ResourceForm.MatchString(c.Resource):
		text = fmt.Sprintf("resource %q: want its name in limits.yaml, as in gpt-4", c.Resource)
	case c.Limit != nil && !nameForm.MatchString(*c.Limit):
		text = fmt.Sprintf("--limit %q: want a limit's name, as in rpm; without --limit all are listed", *c.Limit)
	case c.Kind != nil && !nameForm.MatchString(*c.Kind):
		text = fmt.Sprintf("--kind %q: want a kind in limits.yaml, as in user; without --kind all are listed", *c.Kind)
	case c.Most < 1 || c.Most > 1000:
		text = fmt.Sprintf("--most %d: want 1 to 1000", c.Most)
	case c.Every != nil && !c.Watch:
		text = "--every is about --watch: pass both"
	case c.Every != nil && *c.Every < 100*time.Millisecond:
		text = fmt.Sprintf("--every %v: want 100ms or more", *c.Every)
	case c.Watch && c.JSON:
		text = "--watch draws for people, --json is for programs: pass one"
	case c.Watch && !screen:
		text = "--watch needs a terminal to draw on: leave it out where the output goes elsewhere"
	}
	if text == "" {
		return nil
	}
	return program.Usagef("%s", text)
}

// read reads all buckets and keeps the rows that are to be printed. A bucket counts as it is when it is read.
func (c Command) read(ctx context.Context, p program.Env, at bucketstore.Store) (*board, error) {
	b := &board{Resource: c.Resource, Rows: []row{}, most: c.Most, seen: map[string]bool{}, strange: map[string]bool{}}
	from := at.Source()
	b.Table, b.Redis, b.Prefix = from.Table, from.Redis, from.Prefix
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

// lacking is the error for a list that has nothing to print.
func (c Command) lacking(b *board, at bucketstore.Store) error {
	switch {
	case len(b.Rows) > 0 || b.malformed > 0:
		return nil
	case b.Buckets > 0:
		return fmt.Errorf("no bucket of %s has a limit %s: they have %s", c.Resource, b.only, strings.Join(b.names(), ", "))
	}
	which := c.Resource
	if c.Kind != nil {
		which += " for kind " + *c.Kind
	}
	place, alternatives := at.Place()
	text := fmt.Sprintf("no bucket of %s in %s: never used, expired since, or another name, %s is meant", which, place, alternatives)
	if b.others > 0 {
		text += "; apart from " + format.Quantity(b.others, "per-limit item") + ", of which `sluice migrate` or the next acquire makes buckets"
	}
	return errors.New(text)
}

// watch draws the list until ctx is over, which is how it ends.
func (c Command) watch(ctx context.Context, p program.Env, at bucketstore.Store, after func(time.Duration) <-chan time.Time) error {
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

// clearScreen takes a terminal back to its first line and empties it.
const clearScreen = "\x1b[H\x1b[2J"

// draw puts b in place of what is on the terminal, by one write, or it would flicker. A list that has nothing to print now may have
// some the next time.
func (c Command) draw(w io.Writer, b *board, at bucketstore.Store, every time.Duration) error {
	var text strings.Builder
	text.WriteString(clearScreen)
	if err := c.lacking(b, at); err != nil {
		text.WriteString(err.Error() + "\n")
	} else if err := b.write(&text, term.NewBar(true)); err != nil {
		return err
	}
	if b.malformed > 0 {
		text.WriteString(format.Quantity(b.malformed, "bucket") + " malformed: without --watch they are named\n")
	}
	fmt.Fprintf(&text, "again every %s, until Ctrl-C\n", format.Span(every))
	_, err := io.WriteString(w, text.String())
	return err
}
