package schemafile

import (
	"slices"
	"strings"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/runtime/store"
)

// Buckets returns the spec of buckets that are stored under a resource's name. It may be a template's name,
// for the buckets of all its names, or a name of it, such as model/gpt-5. Others are usage errors.
func (s *Schema) Buckets(resource string) (*store.Spec, error) {
	for _, spec := range s.Specs {
		name, ofTemplate := strings.CutPrefix(resource, spec.Resource+"/")
		switch {
		case !spec.Names:
		case spec.Resource == resource:
			return Named(spec, &store.Entry{}), nil
		case ofTemplate:
			if reason := store.CheckName(name); reason != "" {
				return nil, program.Usagef("%v", &store.InvalidError{
					Resource: spec.Resource, Field: "name", Value: name, Reason: reason,
				})
			}
			return Named(spec, &store.Entry{Name: name}), nil
		}
	}
	return s.Resource(resource)
}

// Named returns the spec of a name of a template. An Entry without a name is for the buckets of all names.
func Named(template *store.Spec, e *store.Entry) *store.Spec {
	return store.NewNamed(definition{template}, e).Spec()
}

// definition is a template without generated code.
type definition struct{ spec *store.Spec }

// Spec implements store.Definition.
func (d definition) Spec() *store.Spec { return d.spec }

// BucketKind returns the kind of that name whose entities have buckets of spec, which Buckets has returned,
// or store.NoKind.
func BucketKind(spec *store.Spec, name string) int {
	return slices.IndexFunc(spec.Kinds, func(k store.Kind) bool {
		ofAll := spec.Entry != nil && spec.Entry.Name == ""
		return k.Name == name && k.Limits != nil && k.AllNames == ofAll
	})
}

// Bucket returns the scope of buckets that are stored under a name, as Buckets takes it: those of an entity,
// or of a kind. Unknown names are usage errors.
func (s *Schema) Bucket(at, resource string) (l Scope, err error) {
	if l.Spec, err = s.Buckets(resource); err != nil {
		return l, err
	}
	if l.Spec.Template == "" {
		return s.Scope(at, resource)
	}
	l.At, l.Kind = at, store.NoKind
	if strings.Contains(at, "-") {
		_, err = s.Entity(at)
	} else {
		_, err = s.kind(at)
	}
	if err != nil {
		return l, err
	}
	kind, _, _ := strings.Cut(at, "-")
	if l.Kind = BucketKind(l.Spec, kind); l.Kind == store.NoKind {
		return l, l.elsewhere(resource, kind)
	}
	return l, nil
}

// elsewhere returns the usage error for a kind that has no bucket under a template, or under a name of one.
func (l Scope) elsewhere(resource, kind string) error {
	other, where := l.Spec.Template, "buckets of all names"
	if resource == l.Spec.Template {
		other, where = l.Spec.Template+"/NAME", "a bucket for each name"
	}
	if !slices.ContainsFunc(l.Spec.Kinds, func(k store.Kind) bool { return k.Name == kind && k.Limits != nil }) {
		return program.Usagef("%s has no bucket for kind %s", l.Spec.Template, kind)
	}
	return program.Usagef("%s has no bucket for kind %s, which has %s: pass %s", resource, kind, where, other)
}

// Template returns the template that resource is a name of, "" for none, and for a nil Schema.
func (s *Schema) Template(resource string) string {
	if s == nil {
		return ""
	}
	for _, spec := range s.Specs {
		if spec.Names && strings.HasPrefix(resource, spec.Resource+"/") {
			return spec.Resource
		}
	}
	return ""
}
