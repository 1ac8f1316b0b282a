package schemafile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// schemaFile is the limits.yaml that a command holds its arguments against: what it does not know must not reach the table.
type Flag struct {
	File string `default:"limits.yaml" placeholder:"limits.yaml" help:"The schema."`
}

// schema is a limits.yaml as stores see it.
type Schema struct {
	File   string
	Stores []string      // as gen.Schema has them
	Kinds  []store.Kind  // without limits
	Specs  []*store.Spec // by resource
}

// read reads the schema. Its mistakes are printed as they are, as generate does.
func (f Flag) Read() (*Schema, error) {
	from, err := gen.Load(f.File)
	if problems, ok := errors.AsType[gen.Problems](err); ok {
		return nil, program.AsIs(problems)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; pass --file, or run this where the schema is", err)
	}
	s := &Schema{File: f.File, Stores: from.Stores}
	for _, k := range from.Kinds {
		s.Kinds = append(s.Kinds, store.Kind{Name: k.Name, Prefix: k.Name + "-", Parent: k.Parent})
	}
	for _, r := range from.Resources {
		s.Specs = append(s.Specs, specOf(r, from.Revision, s.Kinds))
	}
	return s, nil
}

// lists refuses a store that is not among the schema's. instead is what to do where that store is not meant.
func (s *Schema) Lists(store, instead string) error {
	if slices.Contains(s.Stores, store) {
		return nil
	}
	return program.Usagef("%s does not list %s in its stores, so that no limiter generated from it looks there: "+
		"add %[2]s to stores and run `sluice generate`, or %s", s.File, store, instead)
}

// specOf describes r as generated code does.
func specOf(r gen.Resource, revision int64, kinds []store.Kind) *store.Spec {
	spec := &store.Spec{
		Resource: r.Name, Revision: revision, Limits: r.Limits, Removed: r.Removed, Kinds: slices.Clone(kinds),
		LazySettle: r.LazySettle, Shadow: r.Shadow,
	}
	if g := r.Regions; g != nil {
		spec.Regions = &store.Regions{Names: g.Names, Floor: g.Floor, Window: g.Window}
	}
	switch r.Cascade {
	case "compensated":
		spec.Cascade = store.CascadeCompensated
	case "none":
		spec.Cascade = store.CascadeNone
	}
	switch r.OnUnavailable {
	case "deny":
		spec.OnUnavailable = store.Deny
	case "local":
		spec.OnUnavailable = store.Local
	default:
		spec.OnUnavailable = store.Allow
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
func (s *Schema) kindNames() []string {
	names := make([]string, len(s.Kinds))
	for i, k := range s.Kinds {
		names[i] = k.Name
	}
	return names
}

// entity returns the kind of an entity as stored, such as user-123.
func (s *Schema) Entity(text string) (int, error) {
	if err := (store.Member{Entity: text}).Check(s.Kinds); err != nil {
		return 0, program.Usagef("%v", err)
	}
	return s.KindOf(text), nil
}

// kindOf returns the kind of an entity that has been checked.
func (s *Schema) KindOf(entity string) int {
	name, _, _ := strings.Cut(entity, "-")
	return slices.Index(s.kindNames(), name)
}

// kind returns the kind of that name.
func (s *Schema) kind(name string) (int, error) {
	names := s.kindNames()
	i := slices.Index(names, name)
	if i < 0 {
		return 0, program.Usagef("%s has no kind %q, and an entity has a '-': %s", s.File, name, gen.Cure(name, names))
	}
	return i, nil
}

// ancestors returns the kinds above kind, nearest first.
func Ancestors(kinds []store.Kind, kind int) []int {
	var above []int
	for k := kinds[kind].Parent; k != store.NoParent; k = kinds[k].Parent {
		above = append(above, k)
	}
	return above
}

// needing returns the resources whose calls need the parent of entities of a kind: they charge a kind above it and one that
// it is, or that is below it.
func (s *Schema) Needing(kind int) []string {
	var names []string
	for _, spec := range s.Specs {
		above, below := false, false
		for k := range spec.Kinds {
			if spec.Kinds[k].Limits != nil {
				above = above || slices.Contains(Ancestors(s.Kinds, kind), k)
				below = below || k == kind || slices.Contains(Ancestors(s.Kinds, k), kind)
			}
		}
		if above && below && spec.Cascade != store.CascadeNone {
			names = append(names, spec.Resource)
		}
	}
	return names
}

// resource returns what the schema has of a resource.
func (s *Schema) Resource(name string) (*store.Spec, error) {
	names := make([]string, len(s.Specs))
	for i, spec := range s.Specs {
		names[i] = spec.Resource
	}
	i := slices.Index(names, name)
	if i < 0 {
		return nil, program.Usagef("%s has no resource %q: %s", s.File, name, gen.Cure(name, names))
	}
	return s.Specs[i], nil
}

// level is one that can override limits of a resource.
type Scope struct {
	Spec *store.Spec
	Kind int
	At   string // an entity as stored, or a kind
}

// level returns the level that who names on a resource.
func (s *Schema) Scope(who, resource string) (l Scope, err error) {
	if l.Spec, err = s.Resource(resource); err != nil {
		return l, err
	}
	l.At = who
	if strings.Contains(who, "-") {
		l.Kind, err = s.Entity(who)
	} else {
		l.Kind, err = s.kind(who)
	}
	if err != nil {
		return l, err
	}
	return l, l.charged()
}

// charged refuses a kind that has no bucket: nothing would ever read its override.
func (l Scope) charged() error {
	if l.Own().Limits != nil {
		return nil
	}
	var others []string
	for _, k := range l.Spec.Kinds {
		if k.Limits != nil {
			others = append(others, k.Name)
		}
	}
	return program.Usagef("%s has no bucket for kind %s: its entities in the schema are %s",
		l.Spec.Resource, l.Own().Name, strings.Join(others, ", "))
}

// own returns l's kind.
func (l Scope) Own() *store.Kind { return &l.Spec.Kinds[l.Kind] }

// up returns l and the stored levels above it, in order of precedence.
func (l Scope) Up() []string {
	if name := l.Own().Name; l.At != name {
		return []string{l.At, name}
	}
	return []string{l.At}
}

// limit returns the index of the limit of that name.
func (l Scope) Limit(name string) (int, error) {
	i := slices.Index(l.Spec.Limits, name)
	if i < 0 {
		return 0, program.Usagef("%s has no limit %q: %s", l.Spec.Resource, name, gen.Cure(name, l.Spec.Limits))
	}
	return i, nil
}

// charges returns the kinds of the other buckets that a call on an entity of l's kind charges, nearest first.
func (l Scope) Charges() []string {
	if l.Spec.Cascade == store.CascadeNone {
		return nil
	}
	var kinds []string
	for _, k := range Ancestors(l.Spec.Kinds, l.Kind) {
		if l.Spec.Kinds[k].Limits != nil {
			kinds = append(kinds, l.Spec.Kinds[k].Name)
		}
	}
	return kinds
}
