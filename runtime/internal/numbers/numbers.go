// Package numbers reads and writes the numbers that are stored for a resource: overrides of its limits, and
// what the catalog of a template has for a name (docs/design.md, "Templates").
package numbers

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/rates"
	"github.com/sluice-go/sluice/runtime/store"
)

// Of says whose numbers they are: those of a resource, of all names of a template together, or, if ByName is
// set, of one name.
type Of struct {
	Def    store.Definition // of a name, its template
	ByName bool
	Name   string // as the caller gave it

	// Changed is called with the name of an entry that was changed.
	Changed func(name string)
}

// Place is where numbers are stored: at an entity, a kind, or a kind on a plan.
type Place struct {
	Of

	Kind   int    // of the entity, or of the entities whose numbers they are
	At     string // as store.Stored has it
	Entity bool   // At is an entity
}

// Get returns what is stored at p: limits that are not restated there are nil. It fails with the store's
// error, or with a *store.UnknownNameError.
func (p *Place) Get(ctx context.Context, s store.Session) ([]*bucket.Limit, store.Revision, error) {
	if p.inCatalog() {
		e, err := p.entry(ctx, s)
		return e.NumbersAt(p.At), e.Revision, err
	}
	def, err := p.Resolve(ctx, s)
	if err != nil {
		return nil, "", err
	}
	stored, err := s.Overrides().Get(ctx, def.Spec(), p.At)
	if err != nil {
		return nil, "", err
	}
	return stored[0].Limits, stored[0].Revision, nil
}

// Set replaces what is stored at p, if prev is still its revision, and returns the new revision. nil limits
// inherit. If all are nil, nothing is restated any more. Set fails as Get does, and with
//   - a *store.InvalidError for limits that p cannot have;
//   - a *store.ConflictError if prev is not the revision.
func (p *Place) Set(
	ctx context.Context, s store.Session, limits []*rates.Rate, prev store.Revision,
) (store.Revision, error) {
	changed, err := p.limits(limits)
	if err != nil {
		return "", err
	}
	if p.inCatalog() {
		return p.setEntry(ctx, s, changed, prev)
	}
	def, err := p.Resolve(ctx, s)
	if err != nil {
		return "", err
	}
	return s.Overrides().Set(ctx, def.Spec(), store.Stored{At: p.At, Limits: changed, Revision: prev})
}

// inCatalog reports whether the entry of a name has p's numbers.
func (p *Place) inCatalog() bool { return p.ByName && !p.Entity }

// limits returns limits as buckets have them.
func (p *Place) limits(limits []*rates.Rate) ([]*bucket.Limit, error) {
	spec := p.Def.Spec()
	changed := make([]*bucket.Limit, len(spec.Limits))
	for i, rate := range limits {
		if rate == nil {
			continue
		}
		kind := spec.KindWith(p.Kind, i)
		wrong := fmt.Sprintf("kind %s does not have it (kinds in limits.yaml): leave it out",
			spec.Kinds[p.Kind].Name)
		switch {
		case kind == store.NoKind:
		case p.ByName && spec.Kinds[kind].AllNames:
			wrong = "all names have it together (all_names in limits.yaml): set it for these"
		default:
			changed[i], wrong = rate.Limit(spec, kind, i)
		}
		if wrong != "" {
			return nil, &store.InvalidError{
				Resource: p.Resource(), Field: "limit " + spec.Limits[i] + " of " + p.At,
				Reason: "is not possible: " + wrong,
			}
		}
	}
	return changed, nil
}

// setEntry replaces the numbers at p of the entry of its name.
func (p *Place) setEntry(
	ctx context.Context, s store.Session, changed []*bucket.Limit, prev store.Revision,
) (store.Revision, error) {
	e, err := p.entry(ctx, s)
	if err != nil {
		return "", err
	}
	e.Revision = prev
	e.Numbers = slices.DeleteFunc(slices.Clone(e.Numbers), func(n store.Stored) bool { return n.At == p.At })
	if next := (store.Stored{At: p.At, Limits: changed}); next.Overrides() {
		e.Numbers = append(e.Numbers, next)
	}
	rev, err := s.Catalog().Set(ctx, p.Def.Spec(), e)
	p.Changed(e.Name)
	return rev, err
}

// Resource returns the name of the resource for messages. Of a name it is <template>/<name>, whatever buckets
// its entry has.
func (o *Of) Resource() string {
	if e := (store.Entry{Name: o.Name}); o.ByName {
		return e.ResourceAt(o.Def.Spec().Resource)
	}
	return o.Def.Spec().Resource
}

// Resolve returns the Definition with o's numbers: Def, or that of the Name by what the catalog has now.
func (o *Of) Resolve(ctx context.Context, s store.Session) (store.Definition, error) {
	if !o.ByName {
		return o.Def, nil
	}
	e, err := o.entry(ctx, s)
	if err != nil {
		return nil, err
	}
	return store.NewNamed(o.Def, &e), nil
}

// entry returns the entry of the Name, or of the one that it is an alias of.
func (o *Of) entry(ctx context.Context, s store.Session) (store.Entry, error) {
	spec := o.Def.Spec()
	if reason := store.CheckName(o.Name); reason != "" {
		return store.Entry{}, &store.InvalidError{
			Resource: spec.Resource, Field: "name", Value: o.Name, Reason: reason,
		}
	}
	e, found, err := s.Catalog().Get(ctx, spec, o.Name)
	if err == nil && found && e.Alias != "" {
		e, found, err = s.Catalog().Get(ctx, spec, e.Alias)
	}
	if err == nil && (!found || e.Alias != "") { // no alias is of an alias
		err = &store.UnknownNameError{Resource: spec.Resource, Name: o.Name}
	}
	return e, err
}

// Bucket returns the Definition of o's own bucket of an entity of a kind, and the bucket's kind. Without a
// Name, that of a template is the one of all names together. It fails with a *store.InvalidError if entities
// of the kind have no such bucket.
func (o *Of) Bucket(ctx context.Context, s store.Session, kind int) (store.Definition, int, error) {
	def, err := o.Resolve(ctx, s)
	if err != nil {
		return nil, 0, err
	}
	reason := "has limits of all names together alone: take them for these, without a name"
	if !o.ByName && o.Def.Spec().Names {
		def = store.NewNamed(o.Def, &store.Entry{})
		kind, reason = def.Spec().AllNames(kind), "has limits by name alone: take those of one name"
	}
	if kind == store.NoKind || def.Spec().Kinds[kind].Limits == nil {
		return nil, 0, &store.InvalidError{Resource: o.Resource(), Field: "entity", Reason: "is of a kind that " +
			reason}
	}
	return def, kind, nil
}
