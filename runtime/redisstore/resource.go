package redisstore

import (
	"cmp"
	"slices"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/sluice-go/sluice/runtime/redisstore/internal/window"
	"github.com/sluice-go/sluice/runtime/store"
)

// resource is a generated resource, or a name of one that is a template.
type resource struct {
	spec *store.Spec
	*shared

	entry atomic.Pointer[store.Entry] // of a name, the latest that is known; spec has an earlier one
}

// shared is what the session caches of a generated resource. The names of a template have it in common.
type shared struct {
	def     store.Definition
	opened  *resource                  // the resource itself, and no name of it
	scripts []*script                  // by the number of buckets in a chain; the first serves any number
	needs   int                        // the first place in looping whose script serves it
	has     [][]int                    // by kind, the limits that its buckets have, in schema order
	kinds   []atomic.Pointer[override] // by kind, the override last read for it
	plans   atomic.Pointer[override]   // what was last read of all plans
	changed atomic.Int64               // counts this session's writes of its overrides

	names *lru.Cache[nameKey, *resource] // of a template; the least recently used is forgotten first
}

// nameKey is a name of a template, and the resource that its buckets are stored under.
type nameKey struct{ name, resource string }

// newResource returns def as a resource, which caches so many names if it is a template. Chains without a
// script of their own have one of loops. So have all of a resource with plans, or with windows.
func newResource(def Scripter, loops *looping, names int) (*resource, error) {
	spec := def.Spec()
	cached, err := lru.New[nameKey, *resource](names)
	if err != nil {
		return nil, err
	}
	r := &resource{spec: spec, shared: &shared{
		def: def, kinds: make([]atomic.Pointer[override], len(spec.Kinds)), names: cached,
	}}
	r.opened = r
	switch {
	case slices.Contains(spec.Held, true):
		r.needs = holding
	case spec.Plans != nil ||
		slices.ContainsFunc(spec.Kinds, func(k store.Kind) bool { return k.Windows != nil }):
		r.needs = windowed
	}
	r.scripts = []*script{loops[r.needs]}
	for chain := range spec.Kinds { // no chain has more links
		next := r.scripts[0]
		if text := def.Script(chain + 1); text != "" && r.needs == plain {
			next = newScript(text)
		}
		r.scripts = append(r.scripts, next)
	}
	for kind := range spec.Kinds {
		r.has = append(r.has, spec.Kinds[kind].Indexes())
	}
	return r, nil
}

// named returns a name of r, a template. Of the entries that calls have, the latest counts.
func (r *resource) named(spec *store.Spec) *resource {
	key := nameKey{spec.Entry.Name, spec.Resource}
	name, ok := r.names.Get(key)
	if !ok {
		name = &resource{spec: spec, shared: r.shared}
		if other, ok, _ := r.names.PeekOrAdd(key, name); ok {
			name = other
		}
	}
	name.see(spec.Entry)
	return name
}

// see notes an entry of r, a name, unless a later one is known.
func (r *resource) see(e *store.Entry) {
	known := r.entry.Load()
	for (known == nil || known.Version < e.Version) && !r.entry.CompareAndSwap(known, e) {
		known = r.entry.Load()
	}
}

// script returns the script for a chain of n buckets.
func (r *resource) script(n int) *script {
	if n < len(r.scripts) {
		return r.scripts[n]
	}
	return r.scripts[0]
}

// held reports whether the i-th limit counts holds.
func (r *resource) held(i int) bool { return window.Held(r.spec.Held, i) }

// keep caches what was read, unless a later read is cached, and returns what is cached then.
func keep(at *atomic.Pointer[override], read *override) *override {
	for {
		known := at.Load()
		if known != nil && known.number > read.number {
			return known
		}
		if at.CompareAndSwap(known, read) {
			return read
		}
	}
}

// defined returns the resource opened as def, and as the template of a name. It searches a slice: there are
// few resources, and comparing an interface is faster than hashing it.
func defined(resources []*resource, def store.Definition) *resource {
	if name, ok := def.(*store.Named); ok {
		def = name.Of
	}
	i := slices.IndexFunc(resources, func(r *resource) bool { return r.def == def })
	return resources[i]
}

// find returns the opened resource of which spec is, or of whose name. It is nil if there is none.
func find(resources []*resource, spec *store.Spec) *resource {
	opened := cmp.Or(spec.Template, spec.Resource)
	if i := slices.IndexFunc(resources, func(r *resource) bool { return r.spec.Resource == opened }); i >= 0 {
		return resources[i]
	}
	return nil
}
