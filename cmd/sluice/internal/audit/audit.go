// Package audit is `sluice audit`: it lists the records of changes.
package audit

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/store"
)

// Command is `sluice audit`.
type Command struct {
	bucketstore.TableOrRedis
	schemafile.Flag

	Entity  string `arg:"" optional:"" type:"entity" help:"${entity}"`
	Kind    string `placeholder:"KIND" help:"Instead: the overrides of a kind."`
	Plans   string `placeholder:"RESOURCE" help:"Instead: the numbers of a resource's plans."`
	Catalog string `placeholder:"RESOURCE" help:"Instead: the names of a template."`
	Since   string `default:"400d" placeholder:"400d" help:"Age of the oldest record to list: 12h, 30d."`
	JSON    bool   `name:"json" help:"Print a JSON object per record on a line, in millitokens."`
}

// Help describes the records.
func (Command) Help() string {
	return "Lists who has changed the plan of an entity, an override, the numbers of a plan or a catalog, " +
		"when, from what, to what and why. A record is written in one transaction with its change, and kept " +
		"for 400 days. Quotas that regional sync stores have none.\n\n" +
		"BY is the ARN as which a command signed in, the access key of a service, the user of a Redis, or what a " +
		"program has passed. The writer states it: CloudTrail proves it.\n\n" +
		"Example: sluice audit org-7 --since 30d"
}

// of returns what to list.
func (c Command) of() (store.Audited, error) {
	given := 0
	for _, text := range []string{c.Entity, c.Kind, c.Plans, c.Catalog} {
		if text != "" {
			given++
		}
	}
	if given != 1 {
		return store.Audited{}, program.Usagef("pass one of an entity, --kind, --plans and --catalog")
	}
	if c.Entity != "" {
		if err := schemafile.CheckEntity(c.Entity); err != nil {
			return store.Audited{}, err
		}
	}
	return store.Audited{Entity: c.Entity, Kind: c.Kind, Plans: c.Plans, Catalog: c.Catalog}, nil
}

// recordJSON is a record in JSON. A limit is an object, other values are text.
type recordJSON struct {
	Time     time.Time      `json:"time"`
	At       string         `json:"at"`
	Resource string         `json:"resource,omitempty"`
	By       string         `json:"by"`
	Reason   string         `json:"reason"`
	Before   map[string]any `json:"before"`
	After    map[string]any `json:"after"`
}

// Run prints the records, oldest first.
func (c Command) Run(ctx context.Context, p program.Env) error {
	of, err := c.of()
	if err != nil {
		return err
	}
	age, wrong := format.ParseAge(c.Since)
	if wrong != "" {
		return program.Usagef("--since %s", wrong)
	}
	at, err := c.Open(ctx, p.Now, c.Flag)
	if err != nil {
		return err
	}
	defer at.Close()
	schema, err := c.Read()
	if err != nil {
		schema = nil // a table has the records without it: amounts of money are shown as tokens
	}
	rows := [][]string{{"TIME", "WHAT", "", "WAS", "NOW", "BY", "REASON"}}
	for record, err := range at.Changes(ctx, of, p.Now().Add(-age)) {
		switch {
		case err != nil:
			return at.Explain(err)
		case c.JSON:
			if err := p.JSONLine(jsonOf(record)); err != nil {
				return err
			}
		default:
			rows = append(rows, rowsOf(schema, of, record)...)
		}
	}
	if c.JSON {
		return nil
	}
	if len(rows) == 1 {
		p.Note("no change is recorded since %s%s\n", format.UTC(p.Now().Add(-age)), schema.Without(of))
		return nil
	}
	return texttable.Write(p.Stdout, "", "lllllll", rows)
}

// rowsOf returns a row for each field that a record changes.
func rowsOf(schema *schemafile.Schema, of store.Audited, c store.Change) (rows [][]string) {
	what := cmp.Or(c.Resource, "plan")
	if c.At != of.Entity && c.At != of.Kind {
		what = c.At
	}
	first := []string{format.UTC(c.Time), term.Escape(what)}
	last := []string{term.Escape(cmp.Or(c.By, "-")), term.Escape(cmp.Or(c.Reason, "-"))}
	names := slices.Collect(maps.Keys(c.Before))
	for name := range c.After {
		if _, both := c.Before[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.DeleteFunc(names, func(name string) bool { return c.Before[name] == c.After[name] })
	if len(names) == 0 { // a new entry without numbers of its own, or one removed
		names = []string{""}
	}
	for _, name := range names {
		shown := name
		if c.Resource == "" { // a plan has but itself
			shown = ""
		}
		row := append(slices.Clone(first), term.Escape(shown), valueOf(schema, c.Resource, name, c.Before[name]),
			valueOf(schema, c.Resource, name, c.After[name]))
		rows = append(rows, append(row, last...))
		first, last = []string{"", ""}, []string{"", ""}
	}
	return rows
}

// valueOf returns a stored value as text.
func valueOf(schema *schemafile.Schema, resource, name, value string) string {
	return bucketstore.FieldText(name, value, schema.Unit(resource, name[strings.LastIndex(name, ".")+1:]))
}

// jsonOf returns a record for programs.
func jsonOf(c store.Change) recordJSON {
	values := func(fields map[string]string) map[string]any {
		all := map[string]any{}
		for name, value := range fields {
			all[name] = value
			if l, ok := bucketstore.LimitOf(name, value); ok {
				all[name] = bucketstore.LimitJSON(l)
			}
		}
		return all
	}
	return recordJSON{c.Time, c.At, c.Resource, c.By, c.Reason, values(c.Before), values(c.After)}
}
