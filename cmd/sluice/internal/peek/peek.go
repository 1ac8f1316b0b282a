// Package peek is `sluice peek`: it shows a bucket.
package peek

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/internal/tool/texttable"
)

// Command is `sluice peek`.
type Command struct {
	bucketstore.OneBucket

	Entity   string `arg:"" type:"entity" help:"${entity}"`
	Resource string `arg:"" help:"${resource}"`
	JSON     bool   `name:"json" help:"Print a JSON object per bucket on a line, in millitokens."`
}

// Help describes the command.
func (Command) Help() string {
	return "Of a limit in flight it shows how many slots are taken, and until when: processes that are alive " +
		"extend theirs. Of a limit with on_crash: release, it shows what calls have reserved.\n\n" +
		schemafile.UnitsHelp + bucketstore.RootHelp + "Example: sluice peek user-123 gpt-4"
}

// Run reads the bucket consistently and prints its balances.
func (c Command) Run(ctx context.Context, p program.Env) error {
	if err := schemafile.CheckArguments(c.Entity, c.Resource); err != nil {
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
	all, err := at.Inspect(ctx, c.Entity, c.Resource, root)
	if err == nil {
		err = c.InZones(ctx, at, c.Entity, c.Resource, all)
	}
	if err != nil {
		return err
	}
	switch why := c.Unknown(c.Entity, c.Resource); {
	case why == "":
	case len(all) == 0:
		return fmt.Errorf("%s on %s: no bucket is stored, and %s", term.Quote(c.Entity), c.Resource, why)
	default:
		p.Note("note: no call has this bucket: %s\n", term.Escape(why))
	}
	if c.JSON {
		return c.print(p, all)
	}
	if len(all) == 0 {
		p.Say("%s\n", bucketstore.NotStored(c.Entity, c.Resource))
		return nil
	}
	for _, b := range all {
		heading := b.Title(all)
		if b.Pending {
			heading += ": " + bucketstore.BecomesBucket
		}
		p.Say("%s\n", heading)
		if err := texttable.Write(p.Stdout, "  ", "lrrrll", bucketstore.Balances(b)); err != nil {
			return err
		}
	}
	return nil
}

// print prints each bucket as JSON. Without a bucket it prints nothing, and says why on stderr.
func (c Command) print(p program.Env, all []bucketstore.Bucket) error {
	if len(all) == 0 {
		p.Note("%s\n", bucketstore.NotStored(c.Entity, c.Resource))
	}
	for _, b := range all {
		if err := p.JSONLine(bucketstore.JSONOf(b)); err != nil {
			return err
		}
	}
	return nil
}
