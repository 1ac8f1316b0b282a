package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/internal/texttable"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
)

type overrideExplain struct {
	connection
	schemaFile

	Entity   string `arg:"" help:"Entity as stored, as in user-123."`
	Resource string `arg:"" help:"Name of the resource in limits.yaml, as in gpt-4."`
}

// Help is an example.
func (overrideExplain) Help() string { return "Example: sluice override explain user-123 gpt-4" }

// Run prints what each level says of the entity's limits, which decides, and the entity's own bucket. Those of its
// ancestors are explained by commands of their own: their chain may be known to callers alone.
func (c overrideExplain) Run(ctx context.Context, p Program) error {
	s, err := c.read()
	if err != nil {
		return err
	}
	if _, err := s.entity(c.Entity); err != nil { // a kind has no bucket
		return err
	}
	l, err := s.level(c.Entity, c.Resource)
	if err != nil {
		return err
	}
	o, err := c.open(ctx, p, l)
	if err != nil {
		return err
	}
	stored, err := o.read(ctx)
	if err != nil {
		return err
	}
	img, err := dynamo.Inspect(ctx, o.client, c.Table, c.Entity, c.Resource)
	if err != nil {
		return explain(o.client, err)
	}
	var items *bucket.Image
	if img == nil {
		if items, err = c.inItems(ctx, p, o.client, c.Entity, c.Resource); err != nil {
			return err
		}
	}
	p.say("%s\n", o)
	if err := texttable.Write(p.Stdout, "  ", "llrrll", o.levels(stored)); err != nil {
		return err
	}
	if items != nil {
		img = items
		p.say("%s, with the limits in force\n", becomesBucket)
	} else {
		p.say("%s\n", o.state(img, stored, s.file))
	}
	if img != nil {
		if err := texttable.Write(p.Stdout, "  ", "lrrrll", balances(img, p.Now().UnixMilli())); err != nil {
			return err
		}
	}
	if above := o.charges(); len(above) > 0 {
		commands := make([]string, len(above))
		for i, kind := range above {
			commands[i] = fmt.Sprintf("`sluice override explain %s-<id> %s`", kind, c.Resource)
		}
		p.say("a call on a %s charges its %s too: run %s\n",
			o.own().Name, strings.Join(above, " and its "), strings.Join(commands, " and "))
	}
	return nil
}

// levels returns the rows of what each level says of each limit.
func (l level) levels(stored []runtime.Stored) [][]string {
	rows := [][]string{{"LIMIT", "LEVEL", "CAPACITY", "BURST", "REFILL"}}
	for i, name := range l.spec.Limits {
		decided := decides(stored, i)
		add := func(at string, limit *bucket.Limit) {
			row := []string{name, at, "-", "-", "-"}
			if limit != nil {
				row = append(row[:2], numbers(*limit)...)
			}
			if at == decided {
				row = append(row, "in force")
			}
			rows, name = append(rows, row), ""
		}
		for _, s := range stored {
			add(s.At, s.Limits[i])
		}
		add(schemaLevel, &l.own().Limits[i])
	}
	return rows
}

// state says whether img, which may be nil, has the limits that are in force, and else what will become of them.
func (l level) state(img *bucket.Image, stored []runtime.Stored, file string) string {
	if img == nil {
		return "no bucket is stored: the next acquire makes one, full, with the limits in force"
	}
	differing := l.differing(img, runtime.Resolve(l.own().Limits, stored...))
	other := "the bucket has other numbers for " + strings.Join(differing, ", ")
	revision, known := dynamo.SplitVersion(img.Version)
	switch {
	case len(differing) == 0:
		return "the bucket has the limits in force"
	case revision > l.spec.Revision:
		return fmt.Sprintf("%s, of revision %d: it keeps them, as %s is revision %d", other, revision, file, l.spec.Revision)
	case known > versions(stored):
		return other + ", of later overrides than are stored: it keeps them until an override is set or deleted"
	case revision < l.spec.Revision:
		return fmt.Sprintf("%s, of revision %d: the first acquire that can be served, by a process of revision %d, "+
			"gives it those in force", other, revision, l.spec.Revision)
	case known == versions(stored):
		return fmt.Sprintf("%s, of revision %d as %s is: it keeps them; the file is not what the service was generated from",
			other, revision, file)
	}
	return fmt.Sprintf("%s: the next acquire that can be served, by a process whose cache (%s) has expired, gives it those in force",
		other, span(runtime.DefaultCacheTTL))
}

// versions adds up the versions of levels, as a bucket's Version has them.
func versions(levels []runtime.Stored) (sum int64) {
	for _, l := range levels {
		version, _ := strconv.ParseInt(string(l.Revision), 10, 64) // 0 for none
		sum = bucket.Add(sum, version)
	}
	return sum
}

// differing returns the names of the limits that img has not or not as in inForce.
func (l level) differing(img *bucket.Image, inForce []bucket.Limit) []string {
	var names []string
	for i, name := range l.spec.Limits {
		at := slices.IndexFunc(img.Extra, func(b bucket.Named) bool { return b.Name == name })
		if at < 0 || img.Extra[at].Limit != inForce[i] {
			names = append(names, name)
		}
	}
	return names
}

// charges returns the kinds of the other buckets that a call on an entity of l's kind charges, nearest first.
func (l level) charges() []string {
	if l.spec.Cascade == runtime.CascadeNone {
		return nil
	}
	var kinds []string
	for _, k := range ancestors(l.spec.Kinds, l.kind) {
		if l.spec.Kinds[k].Limits != nil {
			kinds = append(kinds, l.spec.Kinds[k].Name)
		}
	}
	return kinds
}
