package limittest

import (
	"slices"
	"testing"

	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// Entry is a name of a catalog, with the prices and numbers that are different for it.
type Entry = store.Entry

// Names adds names to the catalog of a template, in the table of a store that StoreOn made on engine:
//
//	engine := memdynamo.New()
//	lim, err := limits.New(limittest.StoreOn(t, engine))
//	…
//	limittest.Names(t, engine, lim, limits.Model, limittest.Entry{Name: "gpt-5"})
//
// A Limiter that has read the catalog before sees them within its WithCacheTTL. An entry replaces the one
// that is there under its name.
func Names(
	t testing.TB, engine *memdynamo.Engine, lim interface{ Specs() []*store.Spec }, template string,
	entries ...Entry,
) {
	t.Helper()
	specs := lim.Specs()
	i := slices.IndexFunc(specs, func(s *store.Spec) bool { return s.Resource == template && s.Names })
	if i < 0 {
		t.Fatalf("limittest: %s is no resource with names: catalog: pass its constant, such as limits.Model",
			template)
	}
	catalog := operator.NewCatalog(engine.Client(), Table, store.SystemClock().Now)
	for _, e := range entries {
		before, _, err := catalog.Get(t.Context(), specs[i], e.Name)
		if err == nil {
			e.Revision = before.Revision
			_, err = catalog.Set(t.Context(), specs[i], e)
		}
		if err != nil {
			t.Fatalf("limittest: %v", err)
		}
	}
}
