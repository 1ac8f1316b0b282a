package schemafile

import (
	"slices"
	"strings"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Override returns the scope of an override: of an entity or a kind, or of a kind on a plan, such as pro.key.
// resource may be a name of a template, such as model/gpt-5, for an entity. Of a template, the scope has the
// limits of all names together, too. Unknown names are usage errors.
func (s *Schema) Override(at, resource string) (l Scope, err error) {
	if l.Spec, err = s.Overridden(resource); err != nil {
		return l, err
	}
	l.At, l.override = at, true
	plan, kind, ofPlan := store.SplitPlanAt(at)
	switch {
	case strings.Contains(at, "-"):
		l.Kind, err = s.Entity(at)
	case ofPlan:
		l.Kind, err = s.onPlan(l.Spec, plan, kind)
	default:
		l.Kind, err = s.kind(at)
	}
	if err != nil {
		return l, err
	}
	if l.Spec.Template != "" && !l.OfEntity() {
		return l, program.Usagef("the catalog has the numbers of %s for %s: write them into its file, and run "+
			"`sluice catalog apply`", at, resource)
	}
	for i := range l.Spec.Limits {
		if l.KindWith(i) != store.NoKind {
			return l, nil
		}
	}
	if l.Spec.Template != "" {
		return l, l.elsewhere(resource, l.Own().Name)
	}
	return l, l.charged()
}

// Overridden returns the spec of overrides of a resource, a template, or a name of one.
func (s *Schema) Overridden(resource string) (*store.Spec, error) {
	if s.Template(resource) != "" {
		return s.Buckets(resource)
	}
	return s.Resource(resource)
}

// onPlan returns the kind of that name, whose entities have the numbers of plan.
func (s *Schema) onPlan(spec *store.Spec, plan, name string) (int, error) {
	if spec.Plans == nil {
		return 0, program.Usagef("%s has no plans: pass an entity or a kind", spec.Resource)
	}
	if !slices.Contains(spec.Plans.Names, plan) {
		return 0, program.Usagef("%s has no plan %q: %s", s.File, plan, gen.Cure(plan, spec.Plans.Names))
	}
	kind := slices.Index(s.kindNames(), name)
	if kind < 0 {
		return 0, program.Usagef("%s has no kind %q: %s", s.File, name, gen.Cure(name, s.kindNames()))
	}
	if !spec.OnPlans(kind) {
		return 0, program.Usagef("entities of kind %s are on no plan: leave %s. out", name, plan)
	}
	return kind, nil
}

// OfEntity reports whether l is of one entity.
func (l Scope) OfEntity() bool { return strings.Contains(l.At, "-") }

// KindWith returns the kind whose buckets have the i-th limit, or store.NoKind. An override of a template's
// entity is of the limits of all names together, too. That of a name is of this name alone.
func (l Scope) KindWith(i int) int {
	kind := l.Kind
	if l.override && l.Spec.Template == "" {
		kind = l.Spec.KindWith(l.Kind, i)
	}
	if kind == store.NoKind || !l.Spec.Kinds[kind].Has(i) {
		return store.NoKind
	}
	return kind
}

// own returns the limit of the schema with index i, and its tokens per call. A kind has it.
func (l Scope) own(i int) (limit bucket.Limit, perCall int64) {
	kind := &l.Spec.Kinds[l.KindWith(i)]
	return kind.Limits[i], kind.PerCall[i]
}

// Resource returns the name of a resource as users write it: of a name of a template, model/gpt-5.
func Resource(spec *store.Spec) string {
	switch {
	case spec.Entry == nil:
		return spec.Resource
	case spec.Entry.Name == "": // the buckets of all names
		return spec.Template
	}
	return spec.Template + "/" + spec.Entry.Name
}
