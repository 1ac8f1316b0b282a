package override

import (
	"context"
	"errors"

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"

	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/store"
)

type listCommand struct {
	bucketstore.TableOrRedis
	schemafile.Flag

	Resource string `arg:"" help:"${resource}"`
	JSON     bool   `name:"json" help:"Print a JSON object per entity or kind on a line, in millitokens."`
}

// Help is an example.
func (listCommand) Help() string { return "Example: sluice override list gpt-4" }

// listed is the number of rows that are aligned and printed together.
const listed = 100

// Run prints all overrides of the resource, also those of entities and kinds that are no longer in the
// schema.
func (c listCommand) Run(ctx context.Context, p program.Env) error {
	s, err := c.Read()
	if err != nil {
		return err
	}
	spec, err := s.Overridden(c.Resource)
	if err != nil {
		return err
	}
	at, err := c.Open(ctx, p.Now, c.Flag)
	if err != nil {
		return err
	}
	defer at.Close()
	if spec, err = bucketstore.Named(ctx, at.Catalog(), spec); err != nil {
		return at.Explain(err)
	}
	if c.JSON {
		return c.print(ctx, p, at, spec)
	}
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
				row := append([]string{stored.At, spec.Limits[i]}, format.Limit(*limit, spec.Unit(i))...)
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
		p.Note("nothing is overridden on %s\n", schemafile.Resource(spec))
	}
	return flush()
}

// print prints each override as JSON as soon as it is read.
func (c listCommand) print(
	ctx context.Context, p program.Env, at bucketstore.Store, spec *store.Spec,
) error {
	for stored, err := range at.Overrides().List(ctx, spec) {
		if err != nil {
			return at.Explain(err)
		}
		if !stored.Overrides() {
			continue
		}
		if err := p.JSONLine(jsonOf(spec, stored)); err != nil {
			return err
		}
	}
	return nil
}
