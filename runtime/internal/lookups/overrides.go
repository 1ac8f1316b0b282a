package lookups

import (
	"context"

	"github.com/sluice-go/sluice/runtime/store"
)

// Overrides is an override store whose writes are reported to a process that caches overrides. It is safe for
// concurrent use if Wrote is.
type Overrides struct {
	store.OverrideStore

	// Wrote is called after each write, failed ones too: it may have been applied. A read that began before
	// may return what was there before. Filled says that the bucket at an entity was filled, or granted
	// something.
	Wrote func(resource, at string, filled bool)
}

// Set implements store.OverrideStore.
func (o *Overrides) Set(ctx context.Context, spec *store.Spec, s store.Stored) (store.Revision, error) {
	defer o.Wrote(spec.Resource, s.At, false)
	return o.OverrideStore.Set(ctx, spec, s)
}

// Fill implements store.OverrideStore.
func (o *Overrides) Fill(ctx context.Context, spec *store.Spec, kind int, entity, root string) error {
	defer o.Wrote(spec.ResourceOf(kind), entity, true)
	return o.OverrideStore.Fill(ctx, spec, kind, entity, root)
}

// Grant implements store.OverrideStore.
func (o *Overrides) Grant(ctx context.Context, spec *store.Spec, g *store.Grant) error {
	defer o.Wrote(spec.ResourceOf(g.Kind), g.Entity, true)
	return o.OverrideStore.Grant(ctx, spec, g)
}
