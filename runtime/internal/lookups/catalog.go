package lookups

import (
	"context"

	"github.com/sluice-go/sluice/runtime/store"
)

// Catalog is a catalog whose writes are reported to a process that remembers entries. It is safe for
// concurrent use if Wrote is.
type Catalog struct {
	store.Catalog

	// Wrote is called after each write, failed ones too: it may have been applied.
	Wrote func(template, name string)
}

// Set implements store.Catalog.
func (c *Catalog) Set(ctx context.Context, spec *store.Spec, e store.Entry) (store.Revision, error) {
	defer c.Wrote(spec.Resource, e.Name)
	return c.Catalog.Set(ctx, spec, e)
}

// Delete implements store.Catalog.
func (c *Catalog) Delete(ctx context.Context, spec *store.Spec, name string, rev store.Revision) error {
	defer c.Wrote(spec.Resource, name)
	return c.Catalog.Delete(ctx, spec, name, rev)
}
