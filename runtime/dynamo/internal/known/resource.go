package known

import (
	"slices"
	"strings"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Resource is a generated resource, opened for a session, or a name of one that is a template.
type Resource struct {
	Def    store.Definition
	Spec   *store.Spec
	byKind []wire.Resource
	*shared

	entry       atomic.Pointer[store.Entry] // of a name, the latest that is known; Spec has an earlier one
	entryWrites atomic.Int64                // this session's writes of it
}

// NewResource returns a resource whose overrides are not known. If it is a template, names is how many of its
// names it remembers. The error is that of wire.ResourcesOf.
func NewResource(def store.Definition, names int) (*Resource, error) {
	all, err := wire.ResourcesOf(def)
	if err != nil {
		return nil, err
	}
	r := &Resource{Def: def, Spec: def.Spec(), byKind: all, shared: &shared{
		kinds: make([]atomic.Pointer[override.Override], len(all)), writes: make([]atomic.Int64, len(all)),
	}}
	r.opened = r
	r.names, err = lru.New[nameKey, *Resource](names)
	return r, err
}

// shared is what a session knows of a resource. The names of a template have it in common.
type shared struct {
	opened *Resource                           // the resource itself, and no name of it
	kinds  []atomic.Pointer[override.Override] // by kind, its override as last read
	writes []atomic.Int64                      // by kind, this session's writes of that override

	plans      atomic.Pointer[override.Plans] // as last read
	planWrites atomic.Int64                   // this session's writes of them

	names *lru.Cache[nameKey, *Resource] // names of a template; the least recently used is dropped first
}

// Opened returns the resource itself: of a name, its template.
func (r *Resource) Opened() *Resource { return r.opened }

// template returns the resource under which there are overrides of kinds, plans, and overrides of all names.
func (r *Resource) template() string { return r.opened.Spec.Resource }

// Wrote notes that this process has written the override of a resource, r or a name of r. It is at an entity,
// as stored, a kind or a plan. filled says that it has filled the entity's bucket instead. cached returns a
// bucket by its kind and id, nil if nothing is known of it. An override of r is one of all its names.
func (r *Resource) Wrote(
	resource, at string, filled bool, cached func(r *Resource, kind int, id string) *Bucket,
) {
	own := resource == r.Spec.Resource
	if own {
		r.wrote(at, filled, cached)
	}
	for _, named := range r.names.Values() {
		if resource == named.Spec.Resource || own && item.IsEntity(at) {
			named.wrote(at, filled && !own, cached)
		}
	}
}

func (r *Resource) wrote(at string, filled bool, cached func(r *Resource, kind int, id string) *Bucket) {
	if _, _, ofPlan := store.SplitPlanAt(at); ofPlan {
		r.planWrites.Add(1)
		return
	}
	for i := range r.writes {
		kind := &r.Spec.Kinds[i]
		if at == kind.Name {
			r.writes[i].Add(1)
		} else if id, ok := strings.CutPrefix(at, kind.Prefix); ok {
			if b := cached(r, i, id); b != nil {
				b.own.Add(1)
				if filled {
					b.Invalidate()
				}
			}
		}
	}
}

// keepKind keeps the override of a kind as it was read, unless the known one was read after more writes.
func (r *Resource) keepKind(kind int, read *override.Override) {
	known := r.kinds[kind].Load()
	for (known == nil || known.Writes <= read.Writes) && !r.kinds[kind].CompareAndSwap(known, read) {
		known = r.kinds[kind].Load()
	}
}

// nameKey is a name of a template, and the resource that its buckets are stored under.
type nameKey struct{ name, resource string }

// Named returns a name of r, a template, for which a call was made. Of the catalog's entries that calls and
// reads have shown, the latest counts.
func (r *Resource) Named(n *store.Named) *Resource {
	spec := n.Spec()
	key := nameKey{spec.Entry.Name, spec.Resource}
	named, ok := r.names.Get(key)
	if !ok {
		named = r.open(n)
		if other, ok, _ := r.names.PeekOrAdd(key, named); ok {
			named = other
		}
	}
	named.see(spec.Entry)
	return named
}

// open returns a name of r, of which nothing else is known.
func (r *Resource) open(n *store.Named) *Resource {
	named := &Resource{Def: n, Spec: n.Spec(), byKind: make([]wire.Resource, len(r.byKind)), shared: r.shared}
	for kind := range r.byKind {
		switch of := r.byKind[kind]; {
		case of.Generated == nil:
		case r.Spec.Kinds[kind].AllNames:
			named.byKind[kind] = of
		default:
			named.byKind[kind] = of.Named(named.Spec)
		}
	}
	return named
}

// see notes e, an entry of r, which is a name, unless a later entry is known.
func (r *Resource) see(e *store.Entry) {
	known := r.entry.Load()
	for (known == nil || known.Version < e.Version) && !r.entry.CompareAndSwap(known, e) {
		known = r.entry.Load()
	}
}

// newEntry reports whether shape, of a bucket of a kind, was made by an older entry than the known one.
func (r *Resource) newEntry(shape *override.Resolved, kind int) bool {
	return r.Spec.ByName(kind) && shape.Entry < r.entry.Load().Version
}

// readsEntry reports whether v's entry in the catalog is to be read, together with v's overrides. Otherwise
// the entry that calls remember is used.
func (v *View) readsEntry() bool {
	return v.Resource.Spec.ByName(v.Kind) && v.Needs&(NeedNewer|NeedWhole) != 0
}

// nameKeys returns the keys of the sources that only buckets of one name have, as far as v has to read them.
func (v *View) nameKeys() (keys []item.Item) {
	if v.Resource.Spec.ByName(v.Kind) {
		keys = append(keys, item.OverrideKey(v.Resource.template(), v.Entity))
	}
	if v.readsEntry() {
		keys = append(keys, item.CatalogKey(v.Resource.template(), v.Resource.Spec.Entry.Name))
	}
	return keys
}

// addNameSources adds to from the sources that only buckets of one name have, as they were read for v. If
// the entry was removed or has become an alias, the entry that calls remember stays: calls find out about
// the change by themselves.
func (v *View) addNameSources(read *fetched, from *override.Sources) (err error) {
	r := v.Resource
	if !r.Spec.ByName(v.Kind) {
		return nil
	}
	if from.OfAll, err = read.override(r.Spec, r.template(), v.Entity); err != nil {
		return err
	}
	if v.readsEntry() {
		raw := read.items[item.KeyOf(item.CatalogKey(r.template(), r.Spec.Entry.Name))]
		e, found, err := override.DecodeEntry(r.opened.Spec, raw)
		if err != nil {
			return err
		}
		if found && e.Alias == "" {
			r.see(&e)
		}
	}
	from.Entry = r.entry.Load()
	return nil
}

// WroteEntry notes that this process has written the catalog's entry of a name of r, a template.
func (r *Resource) WroteEntry(name string) {
	for _, named := range r.names.Values() {
		if named.Spec.Entry.Name == name {
			named.entryWrites.Add(1)
		}
	}
}

// leftOverrideUnread reports whether DynamoDB left an override of v unprocessed, or its entry.
func (f *fetched) leftOverrideUnread(v *View) bool {
	spec := v.Resource.Spec
	keys := append(v.nameKeys(), item.OverrideKey(spec.ResourceOf(v.Kind), v.Entity),
		item.OverrideKey(v.Resource.template(), spec.Kinds[v.Kind].Name))
	return slices.ContainsFunc(keys, func(key item.Item) bool { return f.unprocessed[item.KeyOf(key)] })
}
