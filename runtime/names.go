package runtime

import (
	"context"

	"github.com/sluice-go/sluice/runtime/internal/names"
	"github.com/sluice-go/sluice/runtime/store"
)

// Names is a template in a generated Limiter: it has one V, a resource with its prices, for each name of the
// template's catalog. It is safe for concurrent use.
type Names[V any] struct{ untyped *names.Names[V] }

// Named returns the resource of a name, or of the name that it is an alias of, with its current prices. It
// does not change. Call Named for each request: while the catalog is remembered, it does no I/O and does not
// allocate. A changed catalog is in force within WithCacheTTL. Named fails with:
//   - an *InvalidError for a text that cannot be a name;
//   - an *UnknownNameError for a name that the catalog does not have. There is no bucket of it;
//   - the store's error, whatever the failure policy, if this Limiter has not read the catalog yet.
func (n *Names[V]) Named(ctx context.Context, name string) (*V, error) {
	return n.untyped.Get(ctx, name)
}

// BindNames adds a template. Generated constructors call it: of makes the V of a name from its resource and
// the catalog's prices (store.Entry.Prices). The other parameters are Bind's.
func BindNames[E Entity, C, V any](
	b *Builder, def store.Definition, toVector func(C, []int64) []int64, fromVector func([]int64) C,
	of func(named *Resource[E, C], prices []int64) V,
) *Names[V] {
	template := Bind[E](b, def, toVector, fromVector)
	all, err := names.New(names.Config[V]{
		Env: &b.core.env, Template: def, Tasks: &b.core.tasks,
		Catalog: func() store.Catalog { return b.core.session.Catalog() },
		Make: func(named *store.Named) *V {
			r := *template.untyped
			r.def, r.spec = named, named.Spec()
			v := of(&Resource[E, C]{untyped: &r, costs: template.costs}, r.spec.Entry.Prices)
			return &v
		},
	})
	if err != nil && b.err == nil {
		b.err = err
	}
	if err == nil {
		b.core.catalogs[def.Spec().Resource] = all.Invalidate
	}
	return &Names[V]{all}
}
