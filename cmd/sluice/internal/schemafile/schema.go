// Package schemafile reads limits.yaml for commands and checks names and limits against it.
package schemafile

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/internal/tool/untyped"
	"github.com/sluice-go/sluice/runtime/store"
)

// Flag is the flag that names the schema.
type Flag struct {
	File string `default:"limits.yaml" placeholder:"limits.yaml" help:"Path of the schema."`
}

// DefaultFile is the path that Flag has unless another is passed: its tag has it too.
const DefaultFile = "limits.yaml"

// UnitsHelp is the part of the help of commands that read a table without a schema, too.
const UnitsHelp = "Without limits.yaml, the command does not know which limits are of money, and " +
	"shows 1 USD as 1,000,000 tokens.\n\n"

// Schema is a limits.yaml as stores see it.
type Schema struct {
	File   string
	Owner  string
	Stores []string      // the stores that it lists, named as in gen
	Kinds  []store.Kind  // without their limits
	Specs  []*store.Spec // one for each resource
}

// Read reads the schema. Its mistakes are printed as they are, as `sluice generate` does.
func (f Flag) Read() (*Schema, error) {
	from, err := gen.Load(f.File)
	if problems, ok := errors.AsType[gen.Problems](err); ok {
		return nil, program.AsIs(problems)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; pass --file, or run the command in the schema's folder", err)
	}
	s := &Schema{File: f.File, Owner: from.Owner, Stores: from.Stores}
	s.Kinds, s.Specs = untyped.Specs(from)
	return s, nil
}

// Optional is Read for a command that works without a schema, too: it returns nil if there is no limits.yaml
// and no other file is named. A file that is named and missing, or one with mistakes, is an error, since
// amounts of money would be shown as tokens.
func (f Flag) Optional() (*Schema, error) {
	s, err := f.Read()
	if f.File == DefaultFile && errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // a table has the limits too
	}
	return s, err
}

// Lists returns a usage error if the schema does not list store. instead says what to do if another store
// is meant.
func (s *Schema) Lists(store, instead string) error {
	if slices.Contains(s.Stores, store) {
		return nil
	}
	return program.Usagef(
		"%s does not list %s in its stores, so no limiter generated from it uses that store: "+
			"add %[2]s to stores and run `sluice generate`, or %s", s.File, store, instead)
}

// kindNames returns the names of all kinds.
func (s *Schema) kindNames() []string {
	names := make([]string, len(s.Kinds))
	for i, k := range s.Kinds {
		names[i] = k.Name
	}
	return names
}

// Entity returns the kind of an entity, such as user-123. A malformed entity or an unknown kind is a usage
// error. Characters that no call may use are none: see Writable.
func (s *Schema) Entity(text string) (int, error) {
	kind, err := store.KindOf(s.Kinds, text)
	if err != nil {
		return 0, program.Usagef("%v", err)
	}
	return kind, nil
}

// KindOf returns the kind of an entity that Entity has accepted.
func (s *Schema) KindOf(entity string) int {
	name, _, _ := strings.Cut(entity, "-")
	return slices.Index(s.kindNames(), name)
}

// kind returns the kind of that name.
func (s *Schema) kind(name string) (int, error) {
	names := s.kindNames()
	i := slices.Index(names, name)
	if i < 0 {
		return 0, program.Usagef("%s has no kind %q, and %[2]q is no entity, since it has no '-': %[3]s", s.File,
			name,
			gen.Cure(name, names))
	}
	return i, nil
}

// Ancestors returns the kinds above kind, nearest first.
func Ancestors(kinds []store.Kind, kind int) []int {
	var above []int
	for k := kinds[kind].Parent; k != store.NoParent; k = kinds[k].Parent {
		above = append(above, k)
	}
	return above
}

// Needing returns the resources whose calls need the parent of entities of this kind. They charge this kind
// or one below it, and a kind above it is charged too, or is put on plans.
func (s *Schema) Needing(kind int) []string {
	var names []string
	for _, spec := range s.Specs {
		above, below := false, false
		for k := range spec.Kinds {
			if spec.Kinds[k].Limits != nil {
				of := spec.EntityKind(k)
				above = above || slices.Contains(Ancestors(s.Kinds, kind), of)
				below = below || of == kind || slices.Contains(Ancestors(s.Kinds, of), kind)
			}
		}
		planned := spec.OnPlans(kind) && kind != spec.Plans.Kind
		if below && (planned || above && spec.Cascade != store.CascadeNone) {
			names = append(names, spec.Resource)
		}
	}
	return names
}

// Resource returns the spec of a resource.
func (s *Schema) Resource(name string) (*store.Spec, error) {
	names := make([]string, len(s.Specs))
	for i, spec := range s.Specs {
		names[i] = spec.Resource
	}
	i := slices.Index(names, name)
	if i < 0 {
		if template := s.Template(name); template != "" {
			return nil, program.Usagef("%s is a name of the template %s, and this command takes the resources of %s "+
				"alone", name, template, s.File)
		}
		return nil, program.Usagef("%s has no resource %q: %s", s.File, name, gen.Cure(name, names))
	}
	return s.Specs[i], nil
}

// Unit returns the currency of a limit of money. It is empty for tokens, for names that the schema does not
// have, and for a nil Schema.
func (s *Schema) Unit(resource, limit string) string {
	if s == nil {
		return ""
	}
	for _, spec := range s.Specs {
		own := spec.Resource == resource || spec.Resource == s.Template(resource)
		if i := slices.Index(spec.Limits, limit); own && i >= 0 {
			return spec.Unit(i)
		}
	}
	return ""
}

// Unknown says why no call of the schema has a bucket of entity on resource: the schema has no such resource
// or kind, or that kind has no bucket. It returns an empty string if calls have one, and without a schema.
func (f Flag) Unknown(entity, resource string) string {
	s, err := f.Read()
	if err != nil { // a table has the limits too: the schema is optional
		return ""
	}
	if _, err := s.Bucket(entity, resource); err != nil {
		return program.Text(err)
	}
	return ""
}

// Scope is an entity or a kind on a resource: what an override is for.
type Scope struct {
	Spec *store.Spec
	Kind int
	// At is an entity, such as user-123, or the name of a kind. Of an override it may be a kind on a plan.
	At string

	override bool // Override has returned it
}

// Scope returns the scope of an entity or a kind on a resource. Unknown names are usage errors.
func (s *Schema) Scope(at, resource string) (l Scope, err error) {
	if l.Spec, err = s.Resource(resource); err != nil {
		return l, err
	}
	l.At = at
	if strings.Contains(at, "-") {
		l.Kind, err = s.Entity(at)
	} else {
		l.Kind, err = s.kind(at)
	}
	if err != nil {
		return l, err
	}
	return l, l.charged()
}

// charged returns a usage error for a kind without a bucket: no call would ever read its override.
func (l Scope) charged() error {
	if l.Own().Limits != nil {
		return nil
	}
	var others []string
	for _, k := range l.Spec.Kinds {
		if k.Limits != nil && !k.AllNames {
			others = append(others, k.Name)
		}
	}
	if len(others) == 0 {
		return program.Usagef("all names of %s have its limits together: leave %s out, and change them in "+
			"limits.yaml or by `sluice override set`", l.resource(), l.Own().Name)
	}
	which := "bucket"
	if l.Spec.Names {
		which = "bucket by name"
	}
	return program.Usagef("%s has no %s for kind %s: pass an entity or a kind of %s", l.resource(), which,
		l.Own().Name, strings.Join(others, ", "))
}

// Writable returns a usage error for an entity that no call may name. Its override can be read and deleted.
func (l Scope) Writable() error {
	if !l.OfEntity() {
		return nil
	}
	if err := (store.Member{Entity: l.At}).Check(l.Spec.Kinds); err != nil {
		return program.Usagef("%v", err)
	}
	return nil
}

// Own returns the kind.
func (l Scope) Own() *store.Kind { return &l.Spec.Kinds[l.Kind] }

// Up returns the scopes of overrides that apply, in order of precedence: an entity, then its kind.
func (l Scope) Up() []string {
	if l.OfEntity() {
		return []string{l.At, l.Own().Name}
	}
	return []string{l.At}
}

// resource returns the name of the resource in the schema, or that of a name of a template. The spec of
// buckets of all names has a "/" behind it.
func (l Scope) resource() string { return strings.TrimSuffix(l.Spec.Resource, "/") }

// Limit returns the index of a limit.
func (l Scope) Limit(name string) (int, error) {
	i := slices.Index(l.Spec.Limits, name)
	if i < 0 {
		return 0, program.Usagef("%s has no limit %q: %s", l.resource(), name, gen.Cure(name, l.Spec.Limits))
	}
	return i, nil
}

// Has returns a usage error if buckets of the kind do not have the limit with index i.
func (l Scope) Has(i int) error {
	if l.KindWith(i) != store.NoKind {
		return nil
	}
	if l.Spec.Template != "" && l.Spec.KindWith(l.Kind, i) != store.NoKind {
		return program.Usagef("all names of %s have %s together: override it on %[1]s", l.Spec.Template,
			l.Spec.Limits[i])
	}
	if slices.Contains(l.Spec.KindsWith(i), l.Own().Name) {
		return program.Usagef("all names of %s have %s together: leave it out, and change it in limits.yaml or by "+
			"`sluice override set`", l.resource(), l.Spec.Limits[i])
	}
	return program.Usagef("%s of %s is no limit of kind %s, but of %s: leave it out, or see its kinds in "+
		"limits.yaml",
		l.Spec.Limits[i], l.resource(), l.Own().Name, strings.Join(l.Spec.KindsWith(i), ", "))
}

// Charges returns the kinds of the other buckets that a call on an entity of this kind charges, nearest
// first.
func (l Scope) Charges() []string {
	if l.Spec.Cascade == store.CascadeNone {
		return nil
	}
	var kinds []string
	for _, k := range Ancestors(l.Spec.Kinds, l.Kind) {
		if l.Spec.HasBucket(k) {
			kinds = append(kinds, l.Spec.Kinds[k].Name)
		}
	}
	return kinds
}
