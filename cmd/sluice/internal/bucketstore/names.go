package bucketstore

import (
	"context"

	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/runtime/store"
)

// Named returns spec. For a name of a template it goes by the catalog: the name may be an alias, or have
// other buckets than its own. A name that was removed from the catalog may have buckets.
func Named(ctx context.Context, catalog store.Catalog, spec *store.Spec) (*store.Spec, error) {
	if spec.Entry == nil || spec.Entry.Name == "" {
		return spec, nil
	}
	template := store.TemplateOf(spec)
	e, found, err := catalog.Get(ctx, template, spec.Entry.Name)
	if err == nil && found && e.Alias != "" {
		e, found, err = catalog.Get(ctx, template, e.Alias)
	}
	if err != nil || !found || e.Alias != "" {
		return spec, err
	}
	return schemafile.Named(template, &e), nil
}

// under returns the resource that buckets of spec are stored under.
func under(spec *store.Spec) string {
	if spec.Entry != nil && spec.Entry.Name == "" {
		return spec.Template
	}
	return spec.Resource
}
