package override

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

type explainCommand struct {
	bucketstore.OneBucket

	Entity   string `arg:"" type:"entity" help:"${entity}"`
	Resource string `arg:"" help:"Name of the resource in limits.yaml, such as gpt-4."`
	JSON     bool   `name:"json" help:"Print a JSON object on a line, in millitokens."`
}

// Help describes the command.
func (explainCommand) Help() string {
	return bucketstore.RootHelp + "RESOURCE may be a name of a template, such as model/gpt-5, or the template " +
		"for the buckets of all its names.\n\n" +
		"Example: sluice override explain user-123 gpt-4"
}

// Run prints the overrides that apply to the entity, the limits in force, and the entity's own bucket.
// Ancestors have commands of their own, since only callers may know the chain.
func (c explainCommand) Run(ctx context.Context, p program.Env) error {
	s, err := c.Read()
	if err != nil {
		return err
	}
	if _, err := s.Entity(c.Entity); err != nil { // a kind has no bucket
		return err
	}
	l, err := s.Bucket(c.Entity, c.Resource)
	if err != nil {
		return err
	}
	root, err := c.CheckRoot()
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
	o := explanation{overrides: overrides{Scope: l, store: at}}
	stored, err := o.sources(ctx, p)
	if err != nil {
		return err
	}
	all, err := at.Inspect(ctx, c.Entity, c.Resource, root)
	if err == nil {
		err = c.InZones(ctx, at, c.Entity, c.Resource, all)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return p.JSONLine(o.explained(all, stored))
	}
	return o.explain(p, all, stored, s.File)
}

// explain prints the overrides that apply, the limits in force, and each bucket of the entity.
func (o explanation) explain(
	p program.Env, all []bucketstore.Bucket, stored []store.Stored, file string,
) error {
	p.Say("%s%s%s\n", o, o.sync(stored), o.follows())
	if err := texttable.Write(p.Stdout, "  ", "llrrll", o.overriding(stored)); err != nil {
		return err
	}
	if o.Spec.Shadow {
		p.Say("in shadow: these limits are charged but never deny a call\n")
	}
	if len(all) == 0 && !o.nameless() {
		p.Say("no bucket is stored: the next acquire makes a full one with the limits in force\n")
	}
	if err := o.showBuckets(p, all, stored, file); err != nil {
		return err
	}
	if above := o.Charges(); len(above) > 0 {
		commands := make([]string, len(above))
		for i, kind := range above {
			commands[i] = fmt.Sprintf("`sluice override explain %s-<id> %s`", kind, o.resourceOf(kind))
		}
		p.Say("a call on kind %s charges its %s too: run %s\n",
			o.Own().Name, strings.Join(above, " and its "), strings.Join(commands, " and "))
	}
	return nil
}

// resourceOf returns the argument for a kind above: a name of a template, or the template if the kind has
// buckets of all names alone.
func (o explanation) resourceOf(kind string) string {
	byName := slices.ContainsFunc(o.Spec.Kinds, func(k store.Kind) bool {
		return k.Name == kind && !k.AllNames && k.Limits != nil
	})
	if o.Spec.Template != "" && !byName {
		return o.Spec.Template
	}
	return schemafile.Resource(o.Spec)
}

// showBuckets prints each bucket of the entity.
func (o explanation) showBuckets(
	p program.Env, all []bucketstore.Bucket, stored []store.Stored, file string,
) error {
	for _, b := range all {
		state := bucketstore.BecomesBucket + ", with the limits in force"
		if !b.Pending {
			state = o.state(b, stored, file)
		}
		if len(all) > 1 {
			state = "under " + term.Quote(b.Root) + ", " + state
		}
		p.Say("%s\n", state)
		if err := texttable.Write(p.Stdout, "  ", "lrrrll", bucketstore.Balances(b)); err != nil {
			return err
		}
	}
	return nil
}

// FlagHelp returns the help texts that are too long for a tag.
func (Command) FlagHelp() kong.Vars {
	return kong.Vars{
		"scope": "Entity, such as user-123, a kind, such as user, or a kind on a plan, such as pro.user. In " +
			"double quotes it is a Go string, as commands print an id with control characters: '\"user-\\x1b\"'.",
	}
}

// overriding returns the rows of the overrides that apply and of the limits in force.
func (o overrides) overriding(stored []store.Stored) [][]string {
	rows := [][]string{{"LIMIT", "LEVEL", "CAPACITY", "BURST", "REFILL"}}
	for i, name := range o.Spec.Limits {
		for _, from := range o.sourcesOf(stored, i) {
			row := []string{name, from.at, "-", "-", "-"}
			if from.limit != nil {
				row = append(row[:2], format.Limit(*from.limit, o.Spec.Unit(i))...)
			}
			if from.inForce {
				row = append(row, "in force")
			}
			rows, name = append(rows, row), ""
		}
	}
	return rows
}

// source is what an override or the schema has of one limit: nil for nothing.
type source struct {
	at      string
	limit   *bucket.Limit
	inForce bool
}

// sourcesOf returns the sources of limit i, in order of precedence. Of a limit that the kind does not have,
// they are the overrides that are left from before, none of which is in force.
func (o overrides) sourcesOf(stored []store.Stored, i int) (all []source) {
	has, decided := o.Own().Has(i), decides(o.deciding(stored), i)
	for _, s := range o.origins(stored) {
		if has || s.Limits[i] != nil {
			all = append(all, source{s.At, s.Limits[i], has && s.At == decided})
		}
	}
	if has {
		all = append(all, source{schemaLevel, &o.Own().Limits[i], schemaLevel == decided})
	}
	return all
}

// origins returns what is stored, and what a region keeps if regions divide the limits, in order of
// precedence.
func (o overrides) origins(stored []store.Stored) []store.Stored {
	if o.Spec.Regions == nil {
		return stored
	}
	return slices.Insert(slices.Clone(stored), 1, o.deciding(stored)[1])
}

// inForce returns the columns of limit i that overrides lead to, and their origin.
func (o overrides) inForce(overriding []store.Stored, i int) []string {
	kind := o.KindWith(i)
	if kind == store.NoKind {
		return []string{"-", "-", "-", ""}
	}
	overriding = o.deciding(overriding)
	inForce := store.Resolve(o.Spec.Kinds[kind].Limits, overriding...)[i]
	return append(format.Limit(inForce, o.Spec.Unit(i)), decides(overriding, i))
}

// state says whether b has the limits in force, and else when it gets them.
func (o explanation) state(b bucketstore.Bucket, stored []store.Stored, file string) string {
	l, now := o.Scope, o.versions(stored)
	differing := differing(l, b, store.Resolve(l.Own().Limits, o.deciding(stored)...))
	other := "the bucket has other limits for " + strings.Join(differing, ", ")
	revision, known := b.Revision, b.Overrides
	switch {
	case len(differing) == 0:
		return "the bucket has the limits in force"
	case revision > l.Spec.Revision:
		return fmt.Sprintf("%s, of revision %d: it keeps them, since %s is revision %d", other, revision, file,
			l.Spec.Revision)
	case known > now:
		return other +
			", from later overrides than the stored ones: it keeps them until an override is set or deleted"
	case revision < l.Spec.Revision:
		return fmt.Sprintf(
			"%s, of revision %d: the first admitted acquire of a process of revision %d gives it those in force",
			other, revision, l.Spec.Revision)
	case known == now:
		return fmt.Sprintf("%s, of revision %d like %s: it keeps them; the service was generated from another file",
			other, revision, file)
	}
	return fmt.Sprintf("%s: the next admitted acquire of a process whose cache (%s) has expired gives it "+
		"those in force",
		other, format.Span(store.DefaultCacheTTL))
}

// versions returns the sum of the overrides' versions, as in a bucket's Version. The version of a quota is
// at least that of the last change of the heartbeat.
func (o explanation) versions(overriding []store.Stored) int64 {
	sum := bucket.Add(bucketstore.Versions(overriding), o.beside)
	if own := overriding[0]; own.Epoch > 0 && own.Overrides() {
		sum = bucket.Add(sum, max(0, o.beat.Changed(o.now)-bucketstore.Version(own)))
	}
	return sum
}

// differing returns the names of the limits of b that are missing or not as in inForce.
func differing(l schemafile.Scope, b bucketstore.Bucket, inForce []bucket.Limit) []string {
	var names []string
	for i, name := range l.Spec.Limits {
		has := b.At(name)
		if same := has != nil && has.Limit == inForce[i]; !same && (has != nil || l.Own().Has(i)) {
			names = append(names, name)
		}
	}
	return names
}

// shown writes a revision. The absence of one is written as none, which --revision accepts.
func shown(r store.Revision) string {
	if r == "" {
		return "none"
	}
	return string(r)
}
