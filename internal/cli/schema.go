package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// schemaFile is the limits.yaml that a command holds its arguments against: what it does not know must not reach the table.
type schemaFile struct {
	File string `default:"limits.yaml" placeholder:"limits.yaml" help:"The schema."`
}

// schema is a limits.yaml as stores see it.
type schema struct {
	file   string
	stores []string        // as gen.Schema has them
	kinds  []runtime.Kind  // without limits
	specs  []*runtime.Spec // by resource
}

// read reads the schema. Its mistakes are printed as they are, as generate does.
func (f schemaFile) read() (*schema, error) {
	from, err := gen.Load(f.File)
	if problems, ok := errors.AsType[gen.Problems](err); ok {
		return nil, failure{problems}
	}
	if err != nil {
		return nil, fmt.Errorf("%w; pass --file, or run this where the schema is", err)
	}
	s := &schema{file: f.File, stores: from.Stores}
	for _, k := range from.Kinds {
		s.kinds = append(s.kinds, runtime.Kind{Name: k.Name, Prefix: k.Name + "-", Parent: k.Parent})
	}
	for _, r := range from.Resources {
		s.specs = append(s.specs, specOf(r, from.Revision, s.kinds))
	}
	return s, nil
}

// lists refuses a store that is not among the schema's. instead is what to do where that store is not meant.
func (s *schema) lists(store, instead string) error {
	if slices.Contains(s.stores, store) {
		return nil
	}
	return usageError{fmt.Sprintf("%s does not list %s in its stores, so that no limiter generated from it looks there: "+
		"add %[2]s to stores and run `sluice generate`, or %s", s.file, store, instead)}
}

// specOf describes r as generated code does.
func specOf(r gen.Resource, revision int64, kinds []runtime.Kind) *runtime.Spec {
	spec := &runtime.Spec{
		Resource: r.Name, Revision: revision, Limits: r.Limits, Removed: r.Removed, Kinds: slices.Clone(kinds),
		LazySettle: r.LazySettle, Shadow: r.Shadow,
	}
	if g := r.Regions; g != nil {
		spec.Regions = &runtime.Regions{Names: g.Names, Floor: g.Floor, Window: g.Window}
	}
	switch r.Cascade {
	case "compensated":
		spec.Cascade = runtime.CascadeCompensated
	case "none":
		spec.Cascade = runtime.CascadeNone
	}
	switch r.OnUnavailable {
	case "deny":
		spec.OnUnavailable = runtime.Deny
	case "local":
		spec.OnUnavailable = runtime.Local
	default:
		spec.OnUnavailable = runtime.Allow
	}
	for _, c := range r.Charged {
		kind := &spec.Kinds[c.Kind]
		kind.PerCall = c.PerCall
		for _, n := range c.Limits {
			kind.Limits = append(kind.Limits, limitOf(n))
		}
	}
	return spec
}

// limitOf returns n in the units of buckets.
func limitOf(n gen.Numbers) bucket.Limit {
	return bucket.Limit{
		Capacity: bucket.Mul(n.Capacity, bucket.Milli),
		Burst:    bucket.Mul(n.Burst, bucket.Milli),
		Refill:   bucket.Mul(n.Refill, bucket.Milli),
		Period:   n.Period.Milliseconds(),
	}
}

// kindNames returns the names of all kinds.
func (s *schema) kindNames() []string {
	names := make([]string, len(s.kinds))
	for i, k := range s.kinds {
		names[i] = k.Name
	}
	return names
}

// entity returns the kind of an entity as stored, such as user-123.
func (s *schema) entity(text string) (int, error) {
	if err := (runtime.Member{Entity: text}).Check(s.kinds); err != nil {
		return 0, usageError{err.Error()}
	}
	return s.kindOf(text), nil
}

// kindOf returns the kind of an entity that has been checked.
func (s *schema) kindOf(entity string) int {
	name, _, _ := strings.Cut(entity, "-")
	return slices.Index(s.kindNames(), name)
}

// kind returns the kind of that name.
func (s *schema) kind(name string) (int, error) {
	names := s.kindNames()
	i := slices.Index(names, name)
	if i < 0 {
		return 0, usageError{fmt.Sprintf("%s has no kind %q, and an entity has a '-': %s", s.file, name, gen.Cure(name, names))}
	}
	return i, nil
}

// ancestors returns the kinds above kind, nearest first.
func ancestors(kinds []runtime.Kind, kind int) []int {
	var above []int
	for k := kinds[kind].Parent; k != runtime.NoParent; k = kinds[k].Parent {
		above = append(above, k)
	}
	return above
}

// needing returns the resources whose calls need the parent of entities of a kind: they charge a kind above it and one that
// it is, or that is below it.
func (s *schema) needing(kind int) []string {
	var names []string
	for _, spec := range s.specs {
		above, below := false, false
		for k := range spec.Kinds {
			if spec.Kinds[k].Limits != nil {
				above = above || slices.Contains(ancestors(s.kinds, kind), k)
				below = below || k == kind || slices.Contains(ancestors(s.kinds, k), kind)
			}
		}
		if above && below && spec.Cascade != runtime.CascadeNone {
			names = append(names, spec.Resource)
		}
	}
	return names
}

// resource returns what the schema has of a resource.
func (s *schema) resource(name string) (*runtime.Spec, error) {
	names := make([]string, len(s.specs))
	for i, spec := range s.specs {
		names[i] = spec.Resource
	}
	i := slices.Index(names, name)
	if i < 0 {
		return nil, usageError{fmt.Sprintf("%s has no resource %q: %s", s.file, name, gen.Cure(name, names))}
	}
	return s.specs[i], nil
}

// level is one that can override limits of a resource.
type level struct {
	spec *runtime.Spec
	kind int
	at   string // an entity as stored, or a kind
}

// level returns the level that who names on a resource.
func (s *schema) level(who, resource string) (l level, err error) {
	if l.spec, err = s.resource(resource); err != nil {
		return l, err
	}
	l.at = who
	if strings.Contains(who, "-") {
		l.kind, err = s.entity(who)
	} else {
		l.kind, err = s.kind(who)
	}
	if err != nil {
		return l, err
	}
	return l, l.charged()
}

// charged refuses a kind that has no bucket: nothing would ever read its override.
func (l level) charged() error {
	if l.own().Limits != nil {
		return nil
	}
	var others []string
	for _, k := range l.spec.Kinds {
		if k.Limits != nil {
			others = append(others, k.Name)
		}
	}
	return usageError{fmt.Sprintf("%s has no bucket for kind %s: its entities in the schema are %s",
		l.spec.Resource, l.own().Name, strings.Join(others, ", "))}
}

// own returns l's kind.
func (l level) own() *runtime.Kind { return &l.spec.Kinds[l.kind] }

// up returns l and the stored levels above it, in order of precedence.
func (l level) up() []string {
	if name := l.own().Name; l.at != name {
		return []string{l.at, name}
	}
	return []string{l.at}
}

// limit returns the index of the limit of that name.
func (l level) limit(name string) (int, error) {
	i := slices.Index(l.spec.Limits, name)
	if i < 0 {
		return 0, usageError{fmt.Sprintf("%s has no limit %q: %s", l.spec.Resource, name, gen.Cure(name, l.spec.Limits))}
	}
	return i, nil
}
