package cli

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/bucket"
)

type peekCommand struct {
	rooted

	Entity   string `arg:"" help:"Entity as stored: its kind, '-', its id, as in user-123."`
	Resource string `arg:"" help:"Name of the resource in limits.yaml, as in gpt-4."`
}

// Help says what it reads, and gives an example.
func (peekCommand) Help() string { return rootHelp + "Example: sluice peek user-123 gpt-4" }

// Run reads the bucket consistently and prints its limits as they are now.
func (c peekCommand) Run(ctx context.Context, p Program) error {
	if err := checkArguments(c.Entity, c.Resource); err != nil {
		return err
	}
	root, err := c.root()
	if err != nil {
		return err
	}
	at, err := c.open(ctx, p, c.schemaFile)
	if err != nil {
		return err
	}
	defer at.close()
	all, err := at.inspect(ctx, c.Entity, c.Resource, root)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		p.say("%s\n", notStored(c.Entity, c.Resource))
		return nil
	}
	for _, b := range all {
		heading := b.title(all)
		if b.pending {
			heading += ": " + becomesBucket
		}
		p.say("%s\n", heading)
		if err := texttable.Write(p.Stdout, "  ", "lrrrll", balances(b)); err != nil {
			return err
		}
	}
	return nil
}

// notStored says what it means that there is no bucket.
func notStored(entity, resource string) string {
	return fmt.Sprintf("%s on %s: nothing is stored under this name: never used, expired, misspelt, "+
		"or the arguments are the wrong way round; an unused bucket is full", entity, resource)
}

// balances returns the rows of b's limits.
func balances(b found) [][]string {
	rows := [][]string{{"LIMIT", "AVAILABLE", "CAPACITY", "BURST", "REFILL", "FULL IN"}}
	for _, l := range b.limits {
		row := append([]string{l.name, tokens(l.available)}, numbers(l.Limit)...)
		rows = append(rows, append(row, fullIn(l.fullIn)))
	}
	return rows
}

var (
	entityForm   = regexp.MustCompile(`^[a-z][a-z0-9_]*-[^#]+$`)
	resourceForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._/-]{0,63}$`)
)

// checkArguments refuses what no bucket can be called: a peek at it would say "full" and mislead.
func checkArguments(entity, resource string) error {
	if err := checkEntity(entity); err != nil {
		return err
	}
	return checkResource(resource)
}

func checkEntity(entity string) error {
	if !entityForm.MatchString(entity) {
		return usageError{fmt.Sprintf("entity %q: want kind and id as they are stored: user-123 is User{ID: \"123\"}", entity)}
	}
	return nil
}

func checkResource(resource string) error {
	if !resourceForm.MatchString(resource) {
		return usageError{fmt.Sprintf("resource %q: want its name in limits.yaml, as in gpt-4", resource)}
	}
	return nil
}

// tokens writes millitokens as whole tokens, thousands apart, with a tenth where there is one, rounded down: what is shown
// is there.
func tokens(milli int64) string {
	const tenth = bucket.Milli / 10
	n := milli / tenth
	if milli%tenth < 0 {
		n--
	}
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	if n%10 == 0 {
		return sign + texttable.Count(n/10)
	}
	return fmt.Sprintf("%s%s.%d", sign, texttable.Count(n/10), n%10)
}

// span writes a period as limits.yaml does: 1m and not 1m0s, 1d and not 24h.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// fullIn writes how long until a limit is full, rounded up to a tenth of a second.
func fullIn(d time.Duration) string {
	const tenth = 100 * time.Millisecond
	switch rest := d % tenth; {
	case d <= 0:
		return "now"
	case rest > 0:
		d += tenth - rest
	}
	return span(max(d, 0))
}
