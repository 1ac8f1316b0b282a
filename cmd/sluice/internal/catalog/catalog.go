// Package catalog is `sluice catalog`: it lists the names of templates, and applies a file of names to them.
package catalog

import (
	"context"
	"errors"
	"fmt"
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

// Command is `sluice catalog`.
type Command struct {
	List  listCommand  `cmd:"" help:"List the names of a template."`
	Apply applyCommand `cmd:"" help:"Make the names of templates those of a file."`
}

type listCommand struct {
	bucketstore.TableOrRedis
	schemafile.Flag

	Resource string `arg:"" help:"Name of a template in limits.yaml, such as model."`
	JSON     bool   `name:"json" help:"Print a JSON object per name on a line."`
}

// Help is an example.
func (listCommand) Help() string { return "Example: sluice catalog list model" }

// entryJSON is a name in JSON. A limit is its capacity, burst, refill and period, in millitokens and ms, with
// spaces between them. A price is in pico-units.
type entryJSON struct {
	Name     string            `json:"name"`
	Revision string            `json:"revision"`
	Fields   map[string]string `json:"fields"`
}

// Run prints the names and what they restate.
func (c listCommand) Run(ctx context.Context, p program.Env) error {
	s, err := c.Read()
	if err != nil {
		return err
	}
	spec, err := s.Resource(c.Resource)
	if err == nil && !spec.Names {
		err = program.Usagef("%s is no template: pass a resource with names: catalog", c.Resource)
	}
	if err != nil {
		return err
	}
	at, err := c.Open(ctx, p.Now, c.Flag)
	if err != nil {
		return err
	}
	defer at.Close()
	rows := [][]string{{"NAME", "", "IS"}}
	for e, err := range at.Catalog().List(ctx, spec) {
		if err != nil {
			return at.Explain(err)
		}
		fields := e.Fields(spec)
		if c.JSON {
			if err := p.JSONLine(entryJSON{e.Name, string(e.Revision), fields}); err != nil {
				return err
			}
			continue
		}
		names := slices.Sorted(maps.Keys(fields))
		if len(names) == 0 {
			names = []string{""}
		}
		name := term.Quote(e.Name)
		for _, field := range names {
			rows = append(rows, []string{name, field, valueOf(spec, field, fields[field])})
			name = ""
		}
	}
	if c.JSON {
		return nil
	}
	if len(rows) == 1 {
		p.Note("the catalog of %s has no name\n", spec.Resource)
		return nil
	}
	return texttable.Write(p.Stdout, "", "lll", rows)
}

// valueOf returns the value of a field as text.
func valueOf(spec *store.Spec, field, value string) string {
	unit := ""
	if i := slices.Index(spec.Limits, field[strings.LastIndex(field, ".")+1:]); i >= 0 {
		unit = spec.Unit(i)
	}
	return bucketstore.FieldText(field, value, unit)
}

type applyCommand struct {
	bucketstore.TableOrRedis
	schemafile.Flag
	bucketstore.Reason

	Path   string `arg:"" help:"File with the names of templates."`
	DryRun bool   `help:"Print what would change, and write nothing."`
	Force  bool   `help:"Change names whose buckets were used in the last day, too."`
}

// Help describes the file.
func (applyCommand) Help() string {
	return "For each template in the file, writes the names that differ, and removes names that the file does " +
		"not have. Other templates stay as they are. A name has the keys usage, entities and plans, which " +
		"restate those of limits.yaml. aliases are other names that share its buckets; buckets is the resource " +
		"that had these before.\n\n" +
		"If the buckets of a name were used in the last day, nothing is written that removes the name or gives " +
		"it other buckets, unless --force is given. " +
		"A run that was interrupted goes on when it is repeated.\n\n" +
		"Example: sluice catalog apply catalog.yaml --dry-run"
}

// change is a difference between a file and a catalog.
type change struct {
	spec          *store.Spec
	was, now      store.Entry       // without a name for a new name, and for one that is removed
	before, after map[string]string // the fields of both
}

// Run prints the differences and writes them.
func (c applyCommand) Run(ctx context.Context, p program.Env) error {
	s, err := c.Read()
	if err != nil {
		return err
	}
	all, err := read(s, c.Path)
	if err != nil {
		return err
	}
	open, end := program.Finishing(ctx, !c.DryRun)
	defer end()
	at, err := c.OpenToWrite(open, p.Now, c.Flag, "")
	if err != nil {
		return err
	}
	defer at.Close()
	if ctx, err = c.Recorded(ctx, at); err != nil {
		return err
	}
	var changes []change
	for _, w := range all {
		if err := w.check(at); err != nil {
			return err
		}
		some, err := compare(ctx, at.Catalog(), w)
		if err != nil {
			return at.Explain(err)
		}
		changes = append(changes, some...)
	}
	if !c.Force {
		if err := inUse(ctx, at, changes, p.Now().Add(-24*time.Hour)); err != nil {
			return err
		}
	}
	if err := printDiff(p, changes); err != nil {
		return err
	}
	if c.DryRun {
		p.Say("would write %s\n", format.Quantity(len(changes), "name"))
		return nil
	}
	for i, one := range changes {
		if err := one.write(ctx, at.Catalog()); err != nil {
			return fmt.Errorf("%w; %d of %d are written: run the command again, and it goes on", at.Explain(err), i,
				len(changes))
		}
	}
	p.Say("wrote %s\n", format.Quantity(len(changes), "name"))
	if len(changes) > 0 {
		p.Note("%s\n", bucketstore.TakenUp())
	}
	return nil
}

// check returns why at cannot store one of the entries: then nothing is written.
func (w wanted) check(at bucketstore.Store) error {
	for _, e := range w.entries {
		for _, numbers := range e.Numbers {
			if err := bucketstore.Check(at, w.spec, numbers); err != nil {
				return fmt.Errorf("name %s: %w; nothing was written", term.Quote(e.Name), err)
			}
		}
	}
	return nil
}

// compare returns how a catalog differs from what is wanted, in an order in which no alias is of an alias
// meanwhile. Entries come first, then aliases, and of these last the ones that were entries. Names that are
// removed come after them, aliases before others.
func compare(ctx context.Context, catalog store.Catalog, w wanted) (changes []change, err error) {
	there := map[string]store.Entry{}
	for e, err := range catalog.List(ctx, w.spec) {
		if err != nil {
			return nil, err
		}
		there[e.Name] = e
	}
	for _, now := range w.entries {
		was := there[now.Name]
		delete(there, now.Name)
		now.Revision = was.Revision
		one := change{w.spec, was, now, was.Fields(w.spec), now.Fields(w.spec)}
		if was.Name == "" || !maps.Equal(one.before, one.after) {
			changes = append(changes, one)
		}
	}
	wereEntries := func(c change) int {
		if c.now.Alias != "" && c.was.Name != "" && c.was.Alias == "" {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(changes, func(a, b change) int { return wereEntries(a) - wereEntries(b) })
	names := slices.Sorted(maps.Keys(there))
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case (there[a].Alias == "") == (there[b].Alias == ""):
			return 0
		case there[a].Alias != "":
			return -1
		}
		return 1
	})
	for _, name := range names {
		was := there[name]
		changes = append(changes, change{spec: w.spec, was: was, before: was.Fields(w.spec)})
	}
	return changes, nil
}

// inUse returns an error if changes remove a name, or give it other buckets, although its buckets were used
// since an instant. It does not if another name goes on with these.
func inUse(ctx context.Context, at bucketstore.Store, changes []change, since time.Time) error {
	kept := map[string]bool{}
	for _, c := range changes {
		if c.now.Name != "" && c.now.Alias == "" {
			kept[c.now.ResourceAt(c.spec.Resource)] = true
		}
	}
	for _, c := range changes {
		had := c.was.ResourceAt(c.spec.Resource)
		if c.was.Name == "" || c.was.Alias != "" || kept[had] {
			continue
		}
		entity, err := bucketstore.UsedSince(ctx, at, had, since)
		if err != nil {
			return at.Explain(err)
		}
		if entity != "" {
			return fmt.Errorf("name %s of %s is in use: %s has used its bucket in the last day; nothing was written: "+
				"keep the name and its buckets in the file, or pass --force", term.Quote(c.was.Name), c.spec.Resource,
				term.Quote(entity))
		}
	}
	return nil
}

// write writes c.
func (c change) write(ctx context.Context, catalog store.Catalog) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	ctx, done := program.Finish(ctx)
	defer done()
	var err error
	if c.now.Name == "" {
		err = catalog.Delete(ctx, c.spec, c.was.Name, c.was.Revision)
	} else {
		_, err = catalog.Set(ctx, c.spec, c.now)
	}
	if _, conflict := errors.AsType[*store.ConflictError](err); conflict {
		return fmt.Errorf("name %s of %s has been changed by another write", term.Quote(c.was.Name+c.now.Name),
			c.spec.Resource)
	}
	return err
}

// printDiff prints what changes, field by field.
func printDiff(p program.Env, changes []change) error {
	rows := [][]string{{"TEMPLATE", "NAME", "", "", "WAS", "NOW"}}
	for _, c := range changes {
		name, what := c.now.Name, "changed"
		switch {
		case c.was.Name == "":
			what = "new"
		case c.now.Name == "":
			name, what = c.was.Name, "removed"
		}
		first := []string{c.spec.Resource, term.Quote(name), what}
		fields := slices.Collect(maps.Keys(c.before))
		for field := range c.after {
			if _, both := c.before[field]; !both {
				fields = append(fields, field)
			}
		}
		slices.Sort(fields)
		fields = slices.DeleteFunc(fields, func(f string) bool { return c.before[f] == c.after[f] })
		if len(fields) == 0 {
			rows = append(rows, append(first, "", "", ""))
		}
		for _, field := range fields {
			rows = append(rows, append(slices.Clone(first), field, valueOf(c.spec, field, c.before[field]),
				valueOf(c.spec, field, c.after[field])))
			first = []string{"", "", ""}
		}
	}
	if len(rows) == 1 {
		return nil
	}
	return texttable.Write(p.Stdout, "", "llllll", rows)
}
