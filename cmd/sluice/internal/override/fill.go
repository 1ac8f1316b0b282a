package override

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
)

// fill fills the entity's buckets with the limits in force, if it is asked to.
func (o overrides) fill(ctx context.Context, p program.Env, asked bool) error {
	if !asked {
		return nil
	}
	all, err := o.store.Inspect(ctx, o.At, schemafile.Resource(o.Spec), "")
	if err != nil {
		return err
	}
	for _, b := range all {
		if b.Pending {
			return fmt.Errorf("%s: %s: run `sluice reset` after that", b.Title(all), bucketstore.BecomesBucket)
		}
		if err := o.store.Overrides().Fill(ctx, o.Spec, o.Kind, o.At, b.Root); err != nil {
			return o.store.Explain(err)
		}
		p.Say("%s: filled\n", b.Title(all))
		if lost := bucketstore.LeasesLost(b, o.Spec.Limits); lost != "" {
			p.Say("%s\n", lost)
		}
	}
	if len(all) == 0 {
		p.Say("%s\n", bucketstore.NotStored(o.At, schemafile.Resource(o.Spec)))
	}
	return nil
}
