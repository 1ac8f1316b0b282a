// Package limits opens the resources of a limits.yaml on a store, without generated code, and reads the
// entities and costs that requests name.
package limits

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/internal/tool/untyped"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// Schema is the content of a limits.yaml.
type Schema struct {
	Stores []string // that it lists, named as in gen

	kinds     []store.Kind
	specs     []*store.Spec
	resources []gen.Resource
	texts     []gen.Statements
}

// Read reads the limits.yaml at path. The error is a gen.Problems if the file has mistakes.
func Read(path string) (*Schema, error) {
	from, err := gen.Load(path)
	if _, mistakes := errors.AsType[gen.Problems](err); err != nil && !mistakes {
		return nil, fmt.Errorf("%w; pass --file, or run the command in the schema's folder", err)
	}
	if err != nil {
		return nil, err
	}
	s := &Schema{Stores: from.Stores, resources: from.Resources}
	if s.texts, err = gen.LoadStatements(path); err != nil {
		return nil, err
	}
	if len(s.texts) != len(s.resources) {
		return nil, fmt.Errorf("read schema: %s has changed while it was read: read it again", path)
	}
	s.kinds, s.specs = untyped.Specs(from)
	return s, nil
}

// Limits are the resources of a Schema on a store.
type Limits struct {
	*runtime.Limiter

	All    []*Resource // in the order of the schema
	byName map[string]*Resource
	use    use
}

// Open returns the resources of s on a store. It does no I/O.
func (s *Schema) Open(on runtime.Store, opts ...runtime.Option) (*Limits, error) {
	b := runtime.NewBuilder(on, opts...)
	l := &Limits{byName: map[string]*Resource{}}
	for i, spec := range s.specs {
		r := s.resource(i)
		def := untyped.Define(spec, s.texts[i])
		if spec.Names {
			r.names = runtime.BindNames[*Entity](b, def, toVector, slices.Clone[[]int64], r.named)
		} else {
			r.Resource = runtime.Bind[*Entity](b, def, toVector, slices.Clone[[]int64])
		}
		l.All = append(l.All, r)
		l.byName[spec.Resource] = r
	}
	var err error
	if l.Limiter, err = b.Limiter(); err != nil {
		return nil, err
	}
	return l, nil
}

// toVector is the vector of a cost, which is one.
func toVector(cost []int64, dst []int64) []int64 { return append(dst, cost...) }

// Resource returns the resource of a name. The error is an *runtime.InvalidError.
func (l *Limits) Resource(name string) (*Resource, error) {
	if r, ok := l.byName[name]; ok {
		return r, nil
	}
	names := make([]string, len(l.All))
	for i, r := range l.All {
		names[i] = r.Name()
	}
	return nil, unknown(name, names)
}

// unknown returns the error for the name of a resource that is none of names.
func unknown(name string, names []string) error {
	reason := "is none of limits.yaml: "
	if name == "" {
		reason = "is missing: "
	}
	return &runtime.InvalidError{Field: "resource", Value: name, Reason: reason + gen.Cure(name, names)}
}

// Resource returns the resource of a name for a check of what names it: it reads entities and costs, and
// takes no calls. The error is an *runtime.InvalidError.
func (s *Schema) Resource(name string) (*Resource, error) {
	names := make([]string, len(s.specs))
	for i, spec := range s.specs {
		if spec.Resource == name {
			return s.resource(i), nil
		}
		names[i] = spec.Resource
	}
	return nil, unknown(name, names)
}

// Lease is what an acquire took. Costs are in schema order: whole tokens, or nano-units of money.
type Lease = runtime.Lease[[]int64]

// Resource is the entry to one resource. A template takes no calls: Named returns the resource of a name.
type Resource struct {
	*runtime.Resource[*Entity, []int64] // nil for a template

	Spec  *store.Spec // shared: do not change it
	usage []gen.Usage
	names *runtime.Names[Resource] // of a template
}

// resource returns the i-th resource, which takes no calls. The kinds of a template are those of its names.
func (s *Schema) resource(i int) *Resource {
	spec := s.specs[i]
	if spec.Names {
		own := *spec
		own.Template = spec.Resource
		spec = &own
	}
	return &Resource{Spec: spec, usage: s.resources[i].Usage}
}

// Name returns the name of r: model, or model/gpt-5 for a name of a template.
func (r *Resource) Name() string { return r.Spec.Resource }

// IsTemplate reports whether calls have to name one of a catalog.
func (r *Resource) IsTemplate() bool { return r.Spec.Names && r.Spec.Resource == r.Spec.Template }

// named returns a name of the template r, with the catalog's prices.
func (r *Resource) named(of *runtime.Resource[*Entity, []int64], stored []int64) Resource {
	spec, usage := *r.Spec, slices.Clone(r.usage)
	spec.Resource = of.Name()
	for i, price := range stored[:min(len(stored), len(usage))] {
		if price >= 0 {
			usage[i].Price = price
		}
	}
	return Resource{Resource: of, Spec: &spec, usage: usage}
}

// Named returns what calls with a name are made on, "" for one without: r, or a name of the catalog. It fails
// with an *runtime.InvalidError, or as runtime.Names.Named.
func (r *Resource) Named(ctx context.Context, name string) (*Resource, error) {
	if err := r.CheckName(name); err != nil || r.names == nil {
		return r, err
	}
	return r.names.Named(ctx, name)
}

// CheckName returns an *runtime.InvalidError unless a call on r has a name if it needs one, and none if not.
func (r *Resource) CheckName(name string) error {
	switch {
	case r.IsTemplate() && name == "":
		return r.invalid("name", "", "is missing: write which name of the catalog the call is on")
	case !r.IsTemplate() && name != "":
		return r.invalid("name", name, "has no meaning: limits.yaml has no names: catalog for it; leave it out")
	}
	return nil
}

// Entity is an entity and those of its ancestors that are known.
type Entity struct{ links []store.Link }

// Chain implements store.Entity.
func (e *Entity) Chain(dst []store.Link) []store.Link { return append(dst, e.links...) }

// Kind returns the index of the entity's kind.
func (e *Entity) Kind() int { return e.links[0].Kind }

// KindOf returns the index of the kind of an entity as stored, which is one of this schema's.
func (r *Resource) KindOf(stored string) int {
	name, _, _ := strings.Cut(stored, "-")
	return max(0, slices.IndexFunc(r.Spec.Kinds, func(k store.Kind) bool { return k.Name == name }))
}

// BucketKind returns the kind of a bucket of an entity as stored. again is true for the second bucket of an
// entity: it is that of all names of a template.
func (r *Resource) BucketKind(stored string, again bool) *store.Kind {
	i := r.KindOf(stored)
	if all := r.Spec.AllNames(i); all != store.NoKind && (again || r.Spec.Kinds[i].Limits == nil) {
		i = all
	}
	return &r.Spec.Kinds[i]
}

// ID is the id of an entity of a kind, without the kind.
type ID struct{ Kind, ID string }

// Entity returns the entity that ids name: of the ids, each of another kind, one is the entity's, and the
// others are of kinds above it. The store looks up the parent of the last one. The error is a
// *runtime.InvalidError.
func (r *Resource) Entity(ids []ID) (*Entity, error) {
	kinds := r.Spec.Kinds
	if len(ids) == 0 {
		return nil, r.invalid("entity", "", "is missing: write its kind and its id, as {%q: \"123\"}",
			r.callers()[0])
	}
	named := make([]string, len(kinds)) // by kind
	given := make([]bool, len(kinds))
	for _, id := range ids {
		i := slices.IndexFunc(kinds, func(k store.Kind) bool { return k.Name == id.Kind })
		switch {
		case i < 0:
			return nil, r.invalid("entity", id.Kind, "is no kind of limits.yaml: %s", gen.Cure(id.Kind, r.kinds()))
		case given[i]:
			return nil, r.invalid("entity", id.Kind, "is there twice: remove one")
		}
		named[i], given[i] = id.ID, true
	}
	kind := r.lowest(given)
	if !r.Spec.HasBucket(kind) {
		return nil, r.invalid("entity", kinds[kind].Name, "is a kind without limits on this resource: call for %s",
			enumerate(r.callers()))
	}
	e := &Entity{links: make([]store.Link, 0, len(ids))}
	for at := kind; len(e.links) < len(ids); at = kinds[at].Parent {
		if at == store.NoParent || !given[at] {
			return nil, r.gap(kind, given)
		}
		e.links = append(e.links, store.Link{Kind: at, ID: named[at]})
	}
	last := &e.links[len(ids)-1]
	last.Lookup = kinds[last.Kind].Parent != store.NoParent
	return e, nil
}

// lowest returns the kind of given that has no other one below it.
func (r *Resource) lowest(given []bool) int {
	kinds := r.Spec.Kinds
	above := make([]bool, len(kinds))
	for i := range kinds {
		if p := kinds[i].Parent; given[i] {
			for ; p != store.NoParent; p = kinds[p].Parent {
				above[p] = true
			}
		}
	}
	for i := range kinds {
		if given[i] && !above[i] {
			return i
		}
	}
	return 0 // kinds are a tree
}

// gap returns the error for kinds that are no chain upwards from kind.
func (r *Resource) gap(kind int, given []bool) error {
	kinds := r.Spec.Kinds
	var missing []string
	above := slices.Clone(given)
	above[kind] = false
	for at := kinds[kind].Parent; at != store.NoParent && slices.Contains(above, true); at = kinds[at].Parent {
		if !given[at] {
			missing = append(missing, kinds[at].Name)
		}
		above[at] = false
	}
	if other := slices.Index(above, true); other >= 0 {
		return r.invalid("entity", kinds[other].Name, "is no kind above %s: remove one of them", kinds[kind].Name)
	}
	return r.invalid("entity", "", "lacks %s: write the id of each kind between the others", enumerate(missing))
}

// invalid returns an error for a field of a request.
func (r *Resource) invalid(field, value, reason string, args ...any) error {
	return &runtime.InvalidError{
		Resource: r.Spec.Resource, Field: field, Value: value, Reason: fmt.Sprintf(reason, args...),
	}
}

// kinds returns the names of all kinds.
func (r *Resource) kinds() (names []string) {
	for _, k := range r.Spec.Kinds {
		if !k.AllNames {
			names = append(names, k.Name)
		}
	}
	return names
}

// Callers returns the indexes of the kinds whose entities may call.
func (r *Resource) Callers() (kinds []int) {
	for i, k := range r.Spec.Kinds {
		if !k.AllNames && r.Spec.HasBucket(i) {
			kinds = append(kinds, i)
		}
	}
	return kinds
}

// callers returns their names.
func (r *Resource) callers() (names []string) {
	for _, i := range r.Callers() {
		names = append(names, r.Spec.Kinds[i].Name)
	}
	return names
}
