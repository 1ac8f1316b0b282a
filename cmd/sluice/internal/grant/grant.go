// Package grant is `sluice grant`: it adds credits to a bucket.
package grant

import (
	"context"
	"fmt"
	"strings"

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Command is `sluice grant`.
type Command struct {
	bucketstore.OneBucket

	Entity   string   `arg:"" type:"entity" help:"${entity}"`
	Resource string   `arg:"" help:"${resource}"`
	Amounts  []string `arg:"" name:"limit=amount" help:"Amount to add, such as credits=500 or budget=12.50."`
	ID       string   `name:"id" required:"" placeholder:"ID" help:"Id of the grant, such as an invoice's."`
	JSON     bool     `name:"json" help:"Print a JSON object, in millitokens."`
}

// Help describes the command.
func (Command) Help() string {
	return "Adds to the balance of limits that have a window: credits that stay, for limits with window: " +
		"never; for others, a refund that lasts until the open window ends. A window that is over is " +
		"opened.\n\n" +
		"A grant counts once for each --id of an entity and resource, for 400 days. Run it again if its " +
		"outcome is not known. The same id with other amounts is an error. Other processes see the " +
		"balance within a second. RESOURCE may be a name of a template, such as model/gpt-5, or the template for " +
		"the buckets of all its names.\n\n" +
		"On a Redis cluster, the key of a bucket contains its root: the last entity that a call on it charges. " +
		"That is --root. Without it, it is the entity itself if no kind above it is charged; else the stored " +
		"parents have to lead to it.\n\n" +
		"Example: sluice grant org-7 gpt-4 credits=500 --id invoice-2041"
}

// Run grants, and prints the balances after it.
func (c Command) Run(ctx context.Context, p program.Env) error {
	s, err := c.Read()
	if err != nil {
		return err
	}
	l, err := s.Bucket(c.Entity, c.Resource)
	if err != nil {
		return err
	}
	g := &store.Grant{ID: c.ID, Kind: l.Kind, Entity: c.Entity}
	if g.Amounts, err = c.amounts(l); err != nil {
		return err
	}
	if err := g.Check(l.Spec); err != nil {
		return program.Usagef("%s", program.Text(err))
	}
	root, err := c.CheckRoot()
	if err != nil {
		return err
	}
	at, err := c.OpenToWrite(ctx, p.Now, c.Flag, s.Owner)
	if err != nil {
		return err
	}
	defer at.Close()
	if l.Spec, err = bucketstore.Named(ctx, at.Catalog(), l.Spec); err != nil {
		return at.Explain(err)
	}
	if e := l.Spec.Entry; e != nil && e.Name != "" && e.Revision == "" {
		return &store.UnknownNameError{Resource: l.Spec.Template, Name: e.Name}
	}
	if g.Root, err = at.Root(ctx, l, root); err != nil {
		return err
	}
	calendars, err := bucketstore.CalendarsOf(ctx, at, l)
	if err != nil {
		return err
	}
	g.Windows = calendars.Of
	if err := at.Overrides().Grant(ctx, l.Spec, g); err != nil {
		return at.Explain(err)
	}
	return c.print(ctx, p, at, l, g)
}

// amounts reads what is to be added, by limit of l.
func (c Command) amounts(l schemafile.Scope) ([]int64, error) {
	all := make([]int64, len(l.Spec.Limits))
	for _, text := range c.Amounts {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, program.Usagef("%q is not LIMIT=AMOUNT: write it like %s=100", text, l.Spec.Limits[0])
		}
		i, err := l.Limit(name)
		if err != nil {
			return nil, err
		}
		parse := gen.ParseCount
		if l.Spec.Unit(i) != "" {
			parse = gen.ParseAmount
		}
		n, why := parse(value)
		switch {
		case why != "":
			return nil, program.Usagef("amount %q of %s %s", value, name, why)
		case n == 0:
			return nil, program.Usagef("amount of %s is 0: pass what to add, or leave it out", name)
		case all[i] != 0:
			return nil, program.Usagef("%s is given twice: leave one out", name)
		}
		all[i] = bucket.Mul(n, l.Spec.Scale(i))
	}
	return all, nil
}

// grantedJSON is a grant in JSON.
type grantedJSON struct {
	Entity   string             `json:"entity"`
	Resource string             `json:"resource"`
	ID       string             `json:"id"`
	Limits   []grantedLimitJSON `json:"limits"`
}

type grantedLimitJSON struct {
	Limit     string `json:"limit"`
	Granted   int64  `json:"granted_milli"`
	Available *int64 `json:"available_milli"` // null if the bucket is gone since
}

// print shows what was granted, and what each limit has now. Calls may have consumed some of it.
func (c Command) print(
	ctx context.Context, p program.Env, at bucketstore.Store, l schemafile.Scope, g *store.Grant,
) error {
	all, err := at.Inspect(ctx, c.Entity, c.Resource, g.Root)
	if err != nil {
		return err
	}
	out := grantedJSON{c.Entity, c.Resource, c.ID, nil}
	rows := [][]string{{"LIMIT", "GRANTED", "AVAILABLE"}}
	for i, n := range g.Amounts {
		if n == 0 {
			continue
		}
		name, unit := l.Spec.Limits[i], l.Spec.Unit(i)
		one, available := grantedLimitJSON{Limit: name, Granted: n}, "-"
		if len(all) > 0 && all[0].At(name) != nil {
			one.Available = &all[0].At(name).Available
			available = format.Number(*one.Available, unit)
		}
		out.Limits, rows = append(out.Limits, one), append(rows, []string{name, format.Number(n, unit), available})
	}
	if c.JSON {
		return p.JSONLine(out)
	}
	p.Say("%s on %s: grant %s counts once\n", term.Quote(c.Entity), c.Resource, term.Quote(c.ID))
	if err := texttable.Write(p.Stdout, "  ", "lrr", rows); err != nil {
		return fmt.Errorf("print the grant: %w", err)
	}
	return nil
}
