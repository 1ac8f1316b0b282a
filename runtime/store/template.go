package store

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/money"
)

// Entry is a name of a template's catalog, as stored. It is an alias of another entry, or has what is
// different for calls on this name.
type Entry struct {
	Name     string   // gpt-5-mini
	Revision Revision // "" if nothing ever was stored
	Version  int64    // of the stored numbers, ms; 0 if nothing ever was stored
	// Alias is the name whose entry counts for this one, "" for none. Then the rest is empty.
	Alias string
	// Buckets is the resource that the entry's buckets are stored under, if that is not <template>/<name>: the
	// one that had the name before there was a template.
	Buckets string
	// Numbers are the limits that the entry restates: at a kind, for all plans, or at PlanAt.
	Numbers []Stored
	// Prices has the price of one unit of each usage of the template, in schema order and pico-units of its
	// currency. A negative price stands for the one of limits.yaml. Prices is nil if all are those.
	Prices []int64
}

// NumbersAt returns what e restates at a kind, or at PlanAt: nil for nothing.
func (e *Entry) NumbersAt(at string) []*bucket.Limit {
	if i := slices.IndexFunc(e.Numbers, func(s Stored) bool { return s.At == at }); i >= 0 {
		return e.Numbers[i].Limits
	}
	return nil
}

// Check returns an *InvalidError for what no catalog of spec, a template, can have.
func (e *Entry) Check(spec *Spec) error {
	field, value, reason := "name", e.Name, CheckName(e.Name)
	if reason == "" && e.Alias != "" {
		field, value, reason = "alias", e.Alias, CheckName(e.Alias)
	}
	if reason == "" && len(e.Prices) > len(spec.Usages) {
		field, value = "prices", fmt.Sprint(e.Prices)
		reason = fmt.Sprintf("are more than the %d usages of the template", len(spec.Usages))
	}
	for _, numbers := range e.Numbers {
		if reason == "" && len(numbers.Limits) > len(spec.Limits) {
			field, value = "numbers", numbers.At
			reason = fmt.Sprintf("are more than the %d limits of the template", len(spec.Limits))
		}
	}
	if reason == "" {
		return nil
	}
	return &InvalidError{Resource: spec.Resource, Field: field, Value: value, Reason: reason}
}

// ResourceAt returns the resource that the entry's buckets are stored under, as a name of template.
func (e *Entry) ResourceAt(template string) string {
	if e.Buckets != "" {
		return e.Buckets
	}
	return template + "/" + e.Name
}

// Prices fills to with the prices of what calls on a name consume. stored has those of the name's entry,
// where a negative price stands for the one of limits.yaml, schema. Generated code calls it.
func Prices(to []money.Price, stored []int64, schema ...money.Price) {
	copy(to, schema)
	for i, price := range stored[:min(len(stored), len(to))] {
		if price >= 0 {
			to[i] = money.Price(price)
		}
	}
}

// PricesText writes prices of usages: input 2.5/1M, call 0.01 USD. Generated code calls it.
func PricesText(currency string, prices []money.Price, usages ...string) string {
	texts := make([]string, len(usages))
	for i, usage := range usages {
		texts[i] = usage + " " + prices[i].String()
	}
	return strings.Join(texts, ", ") + " " + currency
}

// Catalog keeps the names of templates. Its methods are safe for concurrent use. Reads are consistent, except
// List. spec is a template's.
type Catalog interface {
	// Get returns what is stored of name; found is false if nothing is. It does not follow an alias.
	Get(ctx context.Context, spec *Spec, name string) (e Entry, found bool, err error)
	// Set stores e if e.Revision is still what is stored under its name, else it fails with a *ConflictError. It
	// returns the new revision. The Version rises. It leaves what is stored of limits, kinds, plans and usages
	// that spec does not have: they are another binary's. It also fails with the error of e.Check.
	Set(ctx context.Context, spec *Spec, e Entry) (Revision, error)
	// Delete removes a name, if rev is still its revision. Its version is kept: the name may come back.
	Delete(ctx context.Context, spec *Spec, name string, rev Revision) error
	// List yields the entries of spec's catalog, sorted by name, and ends with the first error.
	List(ctx context.Context, spec *Spec) iter.Seq2[Entry, error]
}

// maxName is the maximal length of a name in bytes.
const maxName = 128

// CheckName returns why name cannot be a name of a template, or "" if it can.
func CheckName(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > maxName:
		return fmt.Sprintf("has %d bytes, more than %d", len(name), maxName)
	}
	if reason := malformed(name); reason != "" {
		return reason
	}
	if strings.Contains(name, "%") {
		return "contains '%', with which keys of Redis escape other characters: leave it out"
	}
	return CheckText(name)
}

// Named is a name of a template as a Definition. Its Spec is the template's, with another Resource, and with
// Template and Entry set. It is not changed once made.
type Named struct {
	Of Definition // the template

	spec *Spec
}

// NewNamed returns the name e of a template.
func NewNamed(of Definition, e *Entry) *Named {
	spec := *of.Spec()
	spec.Template, spec.Entry = spec.Resource, e
	spec.Resource = e.ResourceAt(spec.Template)
	return &Named{of, &spec}
}

// Spec implements Definition.
func (n *Named) Spec() *Spec { return n.spec }

// TemplateOf returns s, or of a name the Spec of its template: overrides of kinds, of plans, and of all names
// are stored under that.
func TemplateOf(s *Spec) *Spec {
	if s.Template == "" {
		return s
	}
	of := *s
	of.Resource, of.Template, of.Entry = s.Template, "", nil
	return &of
}

// ByName reports whether buckets of a kind are of one name of a template.
func (s *Spec) ByName(kind int) bool { return s.Template != "" && !s.Kinds[kind].AllNames }

// ResourceOf returns the resource that buckets of a kind are stored under. It is the Resource, or for buckets
// of all names together their template.
func (s *Spec) ResourceOf(kind int) string {
	if s.Template != "" && s.Kinds[kind].AllNames {
		return s.Template
	}
	return s.Resource
}

// HasBucket reports whether entities of a kind have a bucket, if only of all names together.
func (s *Spec) HasBucket(kind int) bool {
	return s.Kinds[kind].Limits != nil || s.AllNames(kind) != NoKind
}

// AllNames returns the index in Kinds of the buckets of all names together that entities of a kind have, or
// NoKind.
func (s *Spec) AllNames(kind int) int {
	if s.Template == "" {
		return NoKind
	}
	for i := range s.Kinds {
		if s.Kinds[i].AllNames && s.Kinds[i].Name == s.Kinds[kind].Name {
			return i
		}
	}
	return NoKind
}

// KindWith returns which bucket of entities of a kind has the i-th limit: kind, the index of their bucket of
// all names together, or NoKind.
func (s *Spec) KindWith(kind, i int) int {
	for k := range s.Kinds {
		if s.Kinds[k].Name == s.Kinds[kind].Name && s.Kinds[k].Has(i) {
			return k
		}
	}
	return NoKind
}

// EntityKind returns the kind of the entities that have a bucket of a kind. It is kind itself, except for
// buckets of all names, which stand in Kinds once more.
func (s *Spec) EntityKind(kind int) int {
	if !s.Kinds[kind].AllNames {
		return kind
	}
	return slices.IndexFunc(s.Kinds, func(k Kind) bool { return k.Name == s.Kinds[kind].Name })
}

// EntryAt returns where an entry of a template's catalog may restate numbers: at each kind that has a bucket
// by name, for all plans, and at each plan.
func (s *Spec) EntryAt() (all []string) {
	for i := range s.Kinds {
		if s.Kinds[i].AllNames || s.Kinds[i].Limits == nil {
			continue
		}
		all = append(all, s.Kinds[i].Name)
		if s.OnPlans(i) {
			for _, plan := range s.Plans.Names {
				all = append(all, PlanAt(plan, s.Kinds[i].Name))
			}
		}
	}
	return all
}

// Beginnings of Stored.At in lists of what decides the limits of a name.
const (
	AtAllNames = "all."     // of the entity's override of all names
	AtCatalog  = "catalog." // of what the catalog has for the name, at a kind or a plan
)

// Sources returns what e, the entry of a name of spec, has for entities of a kind, in order of precedence.
// First comes what it has for their plan, unless that is empty, and then what it has for all plans.
func (e *Entry) Sources(spec *Spec, plan string, kind int) (all []Stored) {
	at := []string{spec.Kinds[kind].Name}
	if plan != "" {
		at = slices.Insert(at, 0, PlanAt(plan, at[0]))
	}
	for _, at := range at {
		limits := e.NumbersAt(at)
		if limits == nil {
			limits = make([]*bucket.Limit, len(spec.Limits))
		}
		all = append(all, Stored{At: AtCatalog + at, Limits: limits})
	}
	return all
}

// NoKind is an index of no kind.
const NoKind = -1
