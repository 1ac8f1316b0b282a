package redisstore

import (
	"slices"
	"sync/atomic"

	"github.com/sluice-go/sluice/runtime/redisstore/internal/window"
	"github.com/sluice-go/sluice/runtime/store"
)

// resource is a generated resource with what the session caches of it.
type resource struct {
	def     store.Definition
	spec    *store.Spec
	scripts []*script                  // by the number of buckets in a chain; the first serves any number
	needs   int                        // the first place in looping whose script serves it
	has     [][]int                    // by kind, the limits that its buckets have, in schema order
	kinds   []atomic.Pointer[override] // by kind, the override last read for it
	plans   atomic.Pointer[override]   // what was last read of all plans
	changed atomic.Int64               // counts this session's writes of its overrides
}

// newResource returns def as a resource. Chains without a script of their own have one of loops. So have all
// of a resource with plans, or with windows.
func newResource(def Scripter, loops *looping) *resource {
	spec := def.Spec()
	r := &resource{def: def, spec: spec, kinds: make([]atomic.Pointer[override], len(spec.Kinds))}
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
	return r
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

// defined returns the resource opened as def. It searches a slice: there are few resources, and comparing an
// interface is faster than hashing it.
func defined(resources []*resource, def store.Definition) *resource {
	i := slices.IndexFunc(resources, func(r *resource) bool { return r.def == def })
	return resources[i]
}

// named returns the resource with this name, or nil if it was not opened.
func named(resources []*resource, name string) *resource {
	if i := slices.IndexFunc(resources, func(r *resource) bool { return r.spec.Resource == name }); i >= 0 {
		return resources[i]
	}
	return nil
}
