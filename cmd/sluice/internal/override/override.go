// Package override is `sluice override`: it changes limits of entities and kinds at run time.
package override

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Command is `sluice override`.
type Command struct {
	Set     setCommand     `cmd:"" help:"Override limits of an entity or of all entities of a kind."`
	Get     getCommand     `cmd:"" help:"Show the overrides of an entity or a kind."`
	List    listCommand    `cmd:"" help:"List all overrides of a resource."`
	Delete  deleteCommand  `cmd:"" help:"End overrides of an entity or a kind."`
	Explain explainCommand `cmd:"" help:"Show where an entity's limits come from, and its bucket."`
	Export  exportCommand  `cmd:"" help:"Print all overrides, for import."`
	Import  importCommand  `cmd:"" help:"Write the overrides of a file, once all its rows are checked."`
}

// target are the flags and arguments that name a scope: an entity or a kind on a resource.
type target struct {
	bucketstore.TableOrRedis
	schemafile.Flag

	At       string `arg:"" name:"scope" type:"entity" help:"${scope}"`
	Resource string `arg:"" help:"${resource}"`
}

// scope reads the schema and finds the scope in it.
func (c target) scope() (schemafile.Scope, error) {
	s, err := c.Read()
	if err != nil {
		return schemafile.Scope{}, err
	}
	return s.Override(c.At, c.Resource)
}

type getCommand struct {
	target

	JSON bool `name:"json" help:"Print a JSON object, in millitokens."`
}

// Help is an example.
func (getCommand) Help() string { return "Example: sluice override get user-123 gpt-4" }

// Run prints the overridden limits and the revision, which --revision of set and delete takes.
func (c getCommand) Run(ctx context.Context, p program.Env) error {
	l, err := c.scope()
	if err != nil {
		return err
	}
	at, err := c.Open(ctx, p.Now, c.Flag)
	if err != nil {
		return err
	}
	defer at.Close()
	if l.Spec, err = bucketstore.Named(ctx, at.Catalog(), l.Spec); err != nil {
		return at.Explain(err)
	}
	o := overrides{Scope: l, store: at}
	stored, err := o.read(ctx, p)
	if err != nil {
		return err
	}
	if c.JSON {
		return p.JSONLine(jsonOf(o.Spec, stored[0]))
	}
	rows := [][]string{{"LIMIT", "CAPACITY", "BURST", "REFILL"}}
	for i, limit := range stored[0].Limits {
		if limit != nil {
			rows = append(rows, append([]string{o.Spec.Limits[i]}, format.Limit(*limit, o.Spec.Unit(i))...))
		}
	}
	if len(rows) == 1 {
		p.Say("%s: nothing is overridden, revision %s\n", o, shown(stored[0].Revision))
		return nil
	}
	p.Say("%s: revision %s%s\n", o, shown(stored[0].Revision), managed(stored[0]))
	return texttable.Write(p.Stdout, "  ", "lrrl", rows)
}

// change are the flags of set and delete.
type change struct {
	target
	bucketstore.Reason

	Revision *string `placeholder:"REVISION" help:"Fail unless get still prints this revision."`
	refill   bool    // fill the entity's bucket after the write
}

type setCommand struct {
	change

	Limits []string `arg:"" name:"limit" help:"LIMIT=CAPACITY[/EVERY][,burst=N][,refill=N], in tokens or money."`
	Refill bool     `help:"Fill the entity's bucket too, so that a raised limit admits at once."`
}

// Help describes the arguments.
func (setCommand) Help() string {
	return "As in limits.yaml, burst and refill are the capacity unless given. EVERY is that of " +
		"limits.yaml unless given. Of a limit with windows or in flight, only the capacity can be given. Limits " +
		"that are not named do not change.\n\n" +
		"After a lower capacity of a limit in flight, running calls go on, and new ones are denied until there " +
		"is room.\n\n" +
		"An override of a template is of each of its names. For an entity it may be of one name: model/gpt-5. " +
		"The catalog has the numbers of a name for all entities.\n\n" +
		"Example: sluice override set user-123 gpt-4 rpm=200,burst=300 tpm=20_000/1m"
}

// Run overrides the named limits and prints the limits before and after.
func (c setCommand) Run(ctx context.Context, p program.Env) error {
	l, err := c.scope()
	if err == nil {
		err = l.Writable()
	}
	if err != nil {
		return err
	}
	limits := make([]*bucket.Limit, len(l.Spec.Limits))
	var named []int
	for _, text := range c.Limits {
		i, limit, err := l.Parse(text)
		if err != nil {
			return err
		}
		if limits[i] != nil {
			return program.Usagef("limit %s is given twice: leave one out", l.Spec.Limits[i])
		}
		limits[i] = &limit
		named = append(named, i)
	}
	switch {
	case c.Refill && !l.OfEntity():
		return program.Usagef("--refill fills the bucket of one entity, and %s is a kind: leave it out, and run "+
			"`sluice reset` for each entity that cannot wait", l.At)
	case c.Refill && l.Spec.Names && l.Spec.Template == "":
		return program.Usagef("--refill fills one bucket, and %s has one for each name: leave it out, and run "+
			"`sluice reset` for those that cannot wait", c.Resource)
	}
	c.refill = c.Refill
	return c.write(ctx, p, l, named, limits)
}

// overrideJSON is an override in JSON.
type overrideJSON struct {
	At       string                           `json:"at"` // an entity, or a kind
	Resource string                           `json:"resource"`
	Revision string                           `json:"revision"`
	Epoch    int64                            `json:"epoch,omitempty"` // of the regional sync that manages it
	Limits   map[string]bucketstore.LimitJSON `json:"limits"`
}

func jsonOf(spec *store.Spec, s store.Stored) overrideJSON {
	out := overrideJSON{s.At, schemafile.Resource(spec), shown(s.Revision), s.Epoch,
		map[string]bucketstore.LimitJSON{}}
	for i, limit := range s.Limits {
		if limit != nil {
			out.Limits[spec.Limits[i]] = bucketstore.LimitJSON(*limit)
		}
	}
	return out
}

type deleteCommand struct {
	change

	Limits []string `arg:"" optional:"" name:"limit" help:"Limits whose override ends. The default is all."`
}

// Help is an example.
func (deleteCommand) Help() string { return "Example: sluice override delete user-123 gpt-4 rpm" }

// Run ends the overrides of the named limits, or of all, and prints the limits before and after.
func (c deleteCommand) Run(ctx context.Context, p program.Env) error {
	l, err := c.scope()
	if err != nil {
		return err
	}
	var named []int
	for _, name := range c.Limits {
		i, err := l.Limit(name)
		if err != nil {
			return err
		}
		named = append(named, i)
	}
	for i := range l.Spec.Limits {
		if len(c.Limits) == 0 {
			named = append(named, i)
		}
	}
	return c.write(ctx, p, l, named, make([]*bucket.Limit, len(l.Spec.Limits)))
}

// overrides is a scope and the store of its overrides.
type overrides struct {
	schemafile.Scope

	store bucketstore.Store
	beat  store.Heartbeat // of regional sync, if regions divide the limits; set by read
	now   int64           // the time of read, ms
}

// String names the scope.
func (o overrides) String() string { return term.Quote(o.At) + " on " + schemafile.Resource(o.Spec) }

// read returns the overrides that apply to the scope, in order of precedence.
func (o *overrides) read(ctx context.Context, p program.Env) ([]store.Stored, error) {
	stored, err := o.store.Overrides().Get(ctx, o.Spec, o.Up()...)
	if err == nil && o.Spec.Regions != nil {
		o.now = p.Now().UnixMilli()
		o.beat, err = o.store.Overrides().Heartbeat(ctx)
	}
	return stored, o.store.Explain(err)
}

// deciding returns the overrides in force, in order of precedence. If regions divide the limits, a quota
// that is not in force is left out, and what the region keeps precedes the override of the kind.
func (o overrides) deciding(overriding []store.Stored) []store.Stored {
	if o.Spec.Regions == nil || len(overriding) < 2 { // an override of a kind is for all regions
		return overriding
	}
	return append(store.InRegion(o.Spec, o.Kind, overriding, o.beat, o.now), overriding[1:]...)
}

// write stores limits for the named ones, nil for none. It fails if the stored revision is neither the one
// that it read nor that of --revision.
func (c change) write(
	ctx context.Context, p program.Env, l schemafile.Scope, named []int, limits []*bucket.Limit,
) error {
	// an unset variable must not make the write unconditional
	if c.Revision != nil && *c.Revision == "" {
		return program.Usagef("--revision is empty: pass the revision that get prints, or none if nothing is " +
			"overridden")
	}
	at, err := c.OpenToWrite(ctx, p.Now, c.Flag, "")
	if err != nil {
		return err
	}
	defer at.Close()
	if ctx, err = c.Recorded(ctx, at); err != nil {
		return err
	}
	if l.Spec, err = bucketstore.Named(ctx, at.Catalog(), l.Spec); err != nil {
		return at.Explain(err)
	}
	if e := l.Spec.Entry; e != nil && e.Revision == "" && slices.ContainsFunc(limits, isLimit) {
		return &store.UnknownNameError{Resource: l.Spec.Template, Name: e.Name}
	}
	o := overrides{Scope: l, store: at}
	was, err := o.rank(ctx, p)
	if err != nil {
		return err
	}
	before := was.own()
	if c.Revision != nil && *c.Revision != shown(before.Revision) {
		return o.lost(fmt.Sprintf("is at revision %s, not %s", shown(before.Revision), *c.Revision))
	}
	after, old := before, before.Limits
	if before.Epoch > 0 { // a quota, which sync has stored and not an operator
		old = make([]*bucket.Limit, len(old))
	}
	after.Limits, after.Epoch = slices.Clone(old), 0
	for _, i := range named {
		after.Limits[i] = limits[i]
	}
	if slices.EqualFunc(old, after.Limits, sameLimit) {
		p.Say("%s: nothing to change, revision %s%s\n", o, shown(before.Revision), managed(before))
		return o.fill(ctx, p, c.refill)
	}
	after.Revision, err = o.store.Overrides().Set(ctx, o.Spec, after)
	if _, conflict := errors.AsType[*store.ConflictError](err); conflict {
		return o.lost("has been changed by another write")
	}
	if err != nil {
		return o.store.Explain(err)
	}
	p.Say("%s: revision %s, was %s\n", o, shown(after.Revision), shown(before.Revision))
	if err := o.printChange(p, was, old, after); err != nil {
		return err
	}
	p.Say("%s\n%s", o.takenUp(), o.toRegions(before, after))
	return o.fill(ctx, p, c.refill)
}

// lost returns the error of a write that another write came before.
func (o overrides) lost(how string) error {
	return fmt.Errorf("the override of %s at %s %s: nothing was written; run `sluice override get %s %[1]s`",
		schemafile.Resource(o.Spec), term.Quote(o.At), how, term.Argument(o.At))
}

// schemaLevel names the origin of limits that are not overridden.
const schemaLevel = "schema"

// decides returns the origin of limit i.
func decides(overriding []store.Stored, i int) string {
	if at := store.Decides(overriding, i); at < len(overriding) {
		return overriding[at].At
	}
	return schemaLevel
}

func isLimit(l *bucket.Limit) bool { return l != nil }

func sameLimit(a, b *bucket.Limit) bool {
	return a == b || a != nil && b != nil && *a == *b
}
