package conformance

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/internal/test/conformance/named"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// gateway is a process with templates.
type gateway struct {
	*named.Limiter

	session store.Session
	spec    *store.Spec // of model

	calls  atomic.Int64 // acquires that the store was asked for
	gets   atomic.Int64 // of the catalog, single names
	lists  atomic.Int64
	events atomic.Int64 // requests about buckets and what decides their numbers
	reads  atomic.Int64 // those that read
	odd    atomic.Int64 // those of a name whose event does not have its template

	mu      sync.Mutex
	fell    string           // says which bucket's version has fallen
	version map[string]int64 // by bucket
}

// gateway opens w's store as a process of its own.
func (w *nameWorld) gateway(clock store.Clock) *gateway {
	w.Helper()
	p := &gateway{version: map[string]int64{}}
	var err error
	p.Limiter, err = named.New(gatewayOf{w.store.Store, p}, runtime.WithClock(clock),
		runtime.WithLogger(slog.New(slog.DiscardHandler)), runtime.WithCacheTTL(planCacheTTL),
		runtime.WithObserver(&store.Observer{Store: func(_ context.Context, e store.StoreEvent) {
			p.events.Add(1)
			if slices.Contains([]string{"member", "levels", "read"}, e.Path) {
				p.reads.Add(1)
			}
			template, _, ofName := strings.Cut(e.Resource, "/")
			if ofName && e.Template != template || !ofName && e.Template != "" {
				p.odd.Add(1)
			}
		}}),
		runtime.WithCallDefaults(runtime.Budget(time.Minute), runtime.OnUnavailable(store.Deny)))
	if err != nil {
		w.Fatalf("%v", err)
	}
	return p
}

// gatewayOf is a store that shows the session of its Limiter, and counts its calls.
type gatewayOf struct {
	store.Store
	*gateway
}

// Open implements store.Store.
func (o gatewayOf) Open(env *store.Env, defs ...store.Definition) (store.Session, error) {
	s, err := o.Store.Open(withoutPauses(env), defs...)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(defs, func(d store.Definition) bool { return d.Spec().Resource == named.Model })
	o.session, o.spec = s, defs[at].Spec()
	return &counted{s, o.gateway}, nil
}

// counted is a session whose calls a gateway counts.
type counted struct {
	store.Session
	of *gateway
}

// Acquire implements store.Session.
func (s *counted) Acquire(ctx context.Context, call *store.Call) error {
	s.of.calls.Add(1)
	defer s.of.see(call)
	return s.Session.Acquire(ctx, call)
}

// see notes whether the version of a bucket has fallen. A store may have none.
func (p *gateway) see(call *store.Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range call.Parts {
		spec := call.Parts[i].Def.Spec()
		for j := range call.Parts[i].Buckets {
			b := &call.Parts[i].Buckets[j]
			if b.After == nil {
				continue
			}
			key := spec.ResourceOf(b.Kind) + "@" + b.Entity
			if b.After.Version < p.version[key] {
				p.fell = fmt.Sprintf("%s from %d to %d", key, p.version[key], b.After.Version)
			}
			p.version[key] = b.After.Version
		}
	}
}

// Catalog implements store.Session.
func (s *counted) Catalog() store.Catalog { return &countedCatalog{s.Session.Catalog(), s.of} }

// countedCatalog is a catalog whose reads a gateway counts.
type countedCatalog struct {
	store.Catalog
	of *gateway
}

// Get implements store.Catalog.
func (c *countedCatalog) Get(ctx context.Context, s *store.Spec, name string) (store.Entry, bool, error) {
	c.of.gets.Add(1)
	return c.Catalog.Get(ctx, s, name)
}

// List implements store.Catalog.
func (c *countedCatalog) List(ctx context.Context, s *store.Spec) iter.Seq2[store.Entry, error] {
	c.of.lists.Add(1)
	return c.Catalog.List(ctx, s)
}

// enter stores an entry, whatever it was, as another process does: it is in force later.
func (w *nameWorld) enter(e store.Entry) {
	w.Helper()
	catalog := w.here.session.Catalog()
	old, _, err := catalog.Get(w.Context(), w.here.spec, e.Name)
	if err == nil {
		e.Revision = old.Revision
		_, err = catalog.Set(w.Context(), w.here.spec, e)
	}
	if err != nil {
		w.Fatalf("set %s: %v", e.Name, err)
	}
	if e.Alias == "" {
		w.entries[e.Name] = &modelEntry{resource: e.ResourceAt(named.Model), at: map[string]amounts{}}
	}
	for _, s := range e.Numbers {
		var a amounts
		for i, l := range s.Limits {
			if l != nil {
				a[i] = l.Capacity / bucket.Milli
			}
		}
		w.entries[e.Name].at[s.At] = a
	}
	w.later()
}

// remove removes a name, as another process does.
func (w *nameWorld) remove(name string) {
	w.Helper()
	catalog := w.here.session.Catalog()
	old, _, err := catalog.Get(w.Context(), w.here.spec, name)
	if err == nil {
		err = catalog.Delete(w.Context(), w.here.spec, name, old.Revision)
	}
	if err != nil {
		w.Fatalf("delete %s: %v", name, err)
	}
	w.later()
}

// entryOf returns an entry with amounts at places.
func entryOf(name string, at map[string]amounts) store.Entry {
	e := store.Entry{Name: name}
	for _, place := range []string{"key", "pro.key", "enterprise.key"} {
		if a := at[place]; a != (amounts{}) {
			limits := []bucket.Limit{a.limit(0), a.limit(1), {}}
			e.Numbers = append(e.Numbers, store.FullOverride(place, limits))
		}
	}
	return e
}
