package redisstore

import (
	"slices"
	"sync/atomic"

	"github.com/sluice-go/sluice/runtime"
)

// resource is a generated resource with what is remembered of it.
type resource struct {
	def     runtime.Definition
	spec    *runtime.Spec
	scripts []*script               // by the length of a chain; the first is of none
	kinds   []atomic.Pointer[level] // by kind, what was last read of it
	changed atomic.Int64            // how often this session has changed its overrides
}

func (s *session) newResource(def Scripter) *resource {
	spec := def.Spec()
	r := &resource{def: def, spec: spec, kinds: make([]atomic.Pointer[level], len(spec.Kinds)), scripts: []*script{s.fallback}}
	for chain := range spec.Kinds { // no chain has more links
		charge := s.fallback
		if text := def.Script(chain + 1); text != "" {
			charge = newScript(text)
		}
		r.scripts = append(r.scripts, charge)
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

// resource returns what was opened as def. There are few, and an interface is hashed slower than compared.
func (s *session) resource(def runtime.Definition) *resource {
	i := slices.IndexFunc(s.resources, func(r *resource) bool { return r.def == def })
	return s.resources[i]
}

// named returns the resource of a name, nil if it was not opened.
func (s *session) named(name string) *resource {
	if i := slices.IndexFunc(s.resources, func(r *resource) bool { return r.spec.Resource == name }); i >= 0 {
		return s.resources[i]
	}
	return nil
}
