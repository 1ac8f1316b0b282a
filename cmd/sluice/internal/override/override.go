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

	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

type Command struct {
	Set     setCommand     `cmd:"" help:"Override limits of one entity, or of all entities of a kind."`
	Get     getCommand     `cmd:"" help:"Show what is overridden for an entity or a kind."`
	List    listCommand    `cmd:"" help:"List all overrides of a resource."`
	Delete  deleteCommand  `cmd:"" help:"End overrides: what is less specific is in force again."`
	Explain explainCommand `cmd:"" help:"Show what decides an entity's limits, and what its bucket has left."`
}

// overrideAt is where an override stands.
type target struct {
	bucketstore.TableOrRedis
	schemafile.Flag

	Who      string `arg:"" help:"Entity as stored, as in user-123, or a kind, as in user."`
	Resource string `arg:"" help:"Name of the resource in limits.yaml, as in gpt-4."`
}

// level reads the schema and finds the level in it.
func (c target) scope() (schemafile.Scope, error) {
	s, err := c.Read()
	if err != nil {
		return schemafile.Scope{}, err
	}
	return s.Scope(c.Who, c.Resource)
}

type getCommand struct{ target }

// Help is an example.
func (getCommand) Help() string { return "Example: sluice override get user-123 gpt-4" }

// Run prints the limits that are overridden here and the revision, which --revision of set and delete takes.
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
	o := overrides{Scope: l, store: at}
	stored, err := o.read(ctx, p)
	if err != nil {
		return err
	}
	rows := [][]string{{"LIMIT", "CAPACITY", "BURST", "REFILL"}}
	for i, limit := range stored[0].Limits {
		if limit != nil {
			rows = append(rows, append([]string{o.Spec.Limits[i]}, format.Limit(*limit)...))
		}
	}
	if len(rows) == 1 {
		p.Say("%s: nothing is overridden, revision %s\n", o, shown(stored[0].Revision))
		return nil
	}
	p.Say("%s: revision %s%s\n", o, shown(stored[0].Revision), managed(stored[0]))
	return texttable.Write(p.Stdout, "  ", "lrrl", rows)
}

// overrideWrite is what set and delete have alike.
type change struct {
	target

	Revision *string `placeholder:"REVISION" help:"Fail unless this is still the revision, as get printed it (none for nothing)."`
}

type setCommand struct {
	change

	Limits []string `arg:"" name:"limit" help:"LIMIT=CAPACITY[/EVERY][,burst=N][,refill=N], in whole tokens."`
}

// Help is an example.
func (setCommand) Help() string {
	return "As in limits.yaml, burst and refill are the capacity unless they are given. EVERY is that of limits.yaml unless given. " +
		"Limits that are not named stay as they are.\n\n" +
		"Example: sluice override set user-123 gpt-4 rpm=200,burst=300 tpm=20_000/1m"
}

// Run overrides the named limits and prints what was in force and what is now.
func (c setCommand) Run(ctx context.Context, p program.Env) error {
	l, err := c.scope()
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
			return program.Usagef("limit %s is there twice: leave one out", l.Spec.Limits[i])
		}
		limits[i] = &limit
		named = append(named, i)
	}
	return c.write(ctx, p, l, named, limits)
}

type listCommand struct {
	bucketstore.TableOrRedis
	schemafile.Flag

	Resource string `arg:"" help:"Name of the resource in limits.yaml, as in gpt-4."`
}

// Help is an example.
func (listCommand) Help() string { return "Example: sluice override list gpt-4" }

// listed is how many rows are aligned, and printed, together.
const listed = 100

// Run prints all overrides of the resource, those of entities and kinds that the schema no longer has included.
func (c listCommand) Run(ctx context.Context, p program.Env) error {
	s, err := c.Read()
	if err != nil {
		return err
	}
	spec, err := s.Resource(c.Resource)
	if err != nil {
		return err
	}
	at, err := c.Open(ctx, p.Now, c.Flag)
	if err != nil {
		return err
	}
	defer at.Close()
	var rows [][]string
	flush := func() error {
		written := rows
		rows = nil
		return texttable.Write(p.Stdout, "", "llrrlll", written)
	}
	none := true
	for stored, err := range at.Overrides().List(ctx, spec) {
		if err != nil {
			return errors.Join(flush(), at.Explain(err))
		}
		if none {
			rows = append(rows, []string{"AT", "LIMIT", "CAPACITY", "BURST", "REFILL", "REVISION"})
			if none = false; spec.Regions != nil {
				rows[0] = append(rows[0], "BY")
			}
		}
		for i, limit := range stored.Limits {
			if limit != nil {
				row := append([]string{stored.At, spec.Limits[i]}, format.Limit(*limit)...)
				if row = append(row, shown(stored.Revision)); spec.Regions != nil {
					row = append(row, by(stored))
				}
				rows = append(rows, row)
			}
		}
		if len(rows) >= listed {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if none {
		p.Note("nothing is overridden on %s\n", spec.Resource)
	}
	return flush()
}

type deleteCommand struct {
	change

	Limits []string `arg:"" optional:"" name:"limit" help:"Limits whose override ends: all, if none is named."`
}

// Help is an example.
func (deleteCommand) Help() string { return "Example: sluice override delete user-123 gpt-4 rpm" }

// Run ends overrides of the named limits, or of all, and prints what was in force and what is now.
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

// overrides is one level of one resource, and where it is stored.
type overrides struct {
	schemafile.Scope

	store bucketstore.Store
	beat  store.Heartbeat // of regional sync, where it has to do with the resource, as of read
	now   int64           // then, ms
}

// String names the level as commands do.
func (o overrides) String() string { return o.At + " on " + o.Spec.Resource }

// read returns what o and the stored levels above it say, in order of precedence.
func (o *overrides) read(ctx context.Context, p program.Env) ([]store.Stored, error) {
	stored, err := o.store.Overrides().Get(ctx, o.Spec, o.Up()...)
	if err == nil && o.Spec.Regions != nil {
		o.now = p.Now().UnixMilli()
		o.beat, err = o.store.Overrides().Heartbeat(ctx)
	}
	return stored, o.store.Explain(err)
}

// deciding returns the levels that decide o's limits, in order of precedence: levels, but where regions share limits out, a share that
// is not in force says nothing, and what the region keeps comes before what all of them have.
func (o overrides) deciding(levels []store.Stored) []store.Stored {
	if o.Spec.Regions == nil || len(levels) < 2 { // a kind's are for all regions
		return levels
	}
	return append(store.InRegion(o.Spec, o.Kind, levels, o.beat, o.now), levels[1:]...)
}

// write makes the named limits of l as they are in limits, nil for none, if c.Revision, or else the one that it reads, is
// still what is stored.
func (c change) write(ctx context.Context, p program.Env, l schemafile.Scope, named []int, limits []*bucket.Limit) error {
	if c.Revision != nil && *c.Revision == "" { // a variable that is not set must not make the write unconditional
		return program.Usagef("--revision is empty: want what get prints, or none where nothing is overridden")
	}
	at, err := c.Open(ctx, p.Now, c.Flag)
	if err != nil {
		return err
	}
	defer at.Close()
	o := overrides{Scope: l, store: at}
	before, err := o.read(ctx, p)
	if err != nil {
		return err
	}
	if c.Revision != nil && *c.Revision != shown(before[0].Revision) {
		return o.lost(fmt.Sprintf("is at revision %s, not %s", shown(before[0].Revision), *c.Revision))
	}
	after := slices.Clone(before)
	was := before[0].Limits
	if before[0].Epoch > 0 { // a share: sync's, not the operator's
		was = make([]*bucket.Limit, len(was))
	}
	after[0].Limits, after[0].Epoch = slices.Clone(was), 0
	for _, i := range named {
		after[0].Limits[i] = limits[i]
	}
	if slices.EqualFunc(was, after[0].Limits, sameLimit) {
		p.Say("%s: nothing to change, revision %s%s\n", o, shown(before[0].Revision), managed(before[0]))
		return nil
	}
	after[0].Revision, err = o.store.Overrides().Set(ctx, o.Spec, after[0])
	if _, conflict := errors.AsType[*store.ConflictError](err); conflict {
		return o.lost("has been changed meanwhile")
	}
	if err != nil {
		return o.store.Explain(err)
	}
	p.Say("%s: revision %s, was %s\n", o, shown(after[0].Revision), shown(before[0].Revision))
	rows := [][]string{{"LIMIT", "", "CAPACITY", "BURST", "REFILL", "FROM"}}
	for i, name := range o.Spec.Limits {
		if !slices.Equal(o.inForce(before, i), o.inForce(after, i)) || !sameLimit(was[i], after[0].Limits[i]) {
			rows = append(rows,
				append([]string{name, "was"}, o.inForce(before, i)...),
				append([]string{"", "now"}, o.inForce(after, i)...))
		}
	}
	if err := texttable.Write(p.Stdout, "  ", "llrrll", rows); err != nil {
		return err
	}
	p.Say("%s\n%s", o.takenUp(), o.toRegions(before[0], after[0]))
	return nil
}

// lost is the error of a write that somebody else came before, and what to do.
func (o overrides) lost(how string) error {
	return fmt.Errorf("the override of %s at %s %s: nothing was written; run `sluice override get %[2]s %[1]s`",
		o.Spec.Resource, o.At, how)
}

// inForce returns the numbers of limit i that levels give, and the level that they are from.
func (o overrides) inForce(levels []store.Stored, i int) []string {
	levels = o.deciding(levels)
	return append(format.Limit(store.Resolve(o.Own().Limits, levels...)[i]), decides(levels, i))
}

// schemaLevel is what the level below all others is called.
const schemaLevel = "schema"

// decides returns the level that decides limit i.
func decides(levels []store.Stored, i int) string {
	if at := store.Decides(levels, i); at < len(levels) {
		return levels[at].At
	}
	return schemaLevel
}

func sameLimit(a, b *bucket.Limit) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// shown writes a revision. None has a name, so that --revision can say that nothing may be there.
func shown(r store.Revision) string {
	if r == "" {
		return "none"
	}
	return string(r)
}
