package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
)

type overrideExplain struct {
	rooted

	Entity   string `arg:"" help:"Entity as stored, as in user-123."`
	Resource string `arg:"" help:"Name of the resource in limits.yaml, as in gpt-4."`
}

// Help says what it reads, and gives an example.
func (overrideExplain) Help() string {
	return rootHelp + "Example: sluice override explain user-123 gpt-4"
}

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
	root, err := c.root()
	if err != nil {
		return err
	}
	at, err := c.open(ctx, p, c.schemaFile)
	if err != nil {
		return err
	}
	defer at.close()
	o := overrides{level: l, store: at}
	stored, err := o.read(ctx, p)
	if err != nil {
		return err
	}
	all, err := at.inspect(ctx, c.Entity, c.Resource, root)
	if err != nil {
		return err
	}
	p.say("%s%s\n", o, o.sync(stored))
	if err := texttable.Write(p.Stdout, "  ", "llrrll", o.levels(stored)); err != nil {
		return err
	}
	if l.spec.Shadow {
		p.say("in shadow: calls are charged by these limits, and never refused\n")
	}
	if len(all) == 0 {
		p.say("no bucket is stored: the next acquire makes one, full, with the limits in force\n")
	}
	for _, b := range all {
		state := becomesBucket + ", with the limits in force"
		if !b.pending {
			state = o.state(b, stored, s.file)
		}
		if len(all) > 1 {
			state = "under " + b.root + ", " + state
		}
		p.say("%s\n", state)
		if err := texttable.Write(p.Stdout, "  ", "lrrrll", balances(b)); err != nil {
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
func (o overrides) levels(stored []runtime.Stored) [][]string {
	rows := [][]string{{"LIMIT", "LEVEL", "CAPACITY", "BURST", "REFILL"}}
	deciding := o.deciding(stored)
	said := slices.Clone(stored)
	if o.spec.Regions != nil {
		said = slices.Insert(said, 1, deciding[1])
	}
	for i, name := range o.spec.Limits {
		decided := decides(deciding, i)
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
		for _, s := range said {
			add(s.At, s.Limits[i])
		}
		add(schemaLevel, &o.own().Limits[i])
	}
	return rows
}

// state says whether b has the limits that are in force, and else what will become of them.
func (o overrides) state(b found, stored []runtime.Stored, file string) string {
	l, now := o.level, o.versions(stored)
	differing := l.differing(b, runtime.Resolve(l.own().Limits, o.deciding(stored)...))
	other := "the bucket has other numbers for " + strings.Join(differing, ", ")
	revision, known := b.revision, b.overrides
	switch {
	case len(differing) == 0:
		return "the bucket has the limits in force"
	case revision > l.spec.Revision:
		return fmt.Sprintf("%s, of revision %d: it keeps them, as %s is revision %d", other, revision, file, l.spec.Revision)
	case known > now:
		return other + ", of later overrides than are stored: it keeps them until an override is set or deleted"
	case revision < l.spec.Revision:
		return fmt.Sprintf("%s, of revision %d: the first acquire that can be served, by a process of revision %d, "+
			"gives it those in force", other, revision, l.spec.Revision)
	case known == now:
		return fmt.Sprintf("%s, of revision %d as %s is: it keeps them; the file is not what the service was generated from",
			other, revision, file)
	}
	return fmt.Sprintf("%s: the next acquire that can be served, by a process whose cache (%s) has expired, gives it those in force",
		other, span(runtime.DefaultCacheTTL))
}

// versions adds up the versions of levels, as a bucket's Version has them where no regions share its limits.
func versions(levels []runtime.Stored) (sum int64) {
	for _, l := range levels {
		sum = bucket.Add(sum, version(l))
	}
	return sum
}

// versions adds up the versions of levels, as a bucket's Version has them: that of a share is not below the last change of the
// heartbeat.
func (o overrides) versions(levels []runtime.Stored) int64 {
	sum := versions(levels)
	if own := levels[0]; own.Epoch > 0 && own.Overrides() {
		sum = bucket.Add(sum, max(0, o.beat.Changed(o.now)-version(own)))
	}
	return sum
}

func version(l runtime.Stored) int64 {
	ver, _ := strconv.ParseInt(string(l.Revision), 10, 64) // 0 for none
	return ver
}

// differing returns the names of the limits that b has not or not as in inForce.
func (l level) differing(b found, inForce []bucket.Limit) []string {
	var names []string
	for i, name := range l.spec.Limits {
		if has := b.at(name); has == nil || has.Limit != inForce[i] {
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
