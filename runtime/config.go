package runtime

import (
	"context"
	"iter"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// Revision is what a reader of an override saw, for the write that follows: one that is no longer current fails with a
// *ConflictError. "" means that nothing is overridden.
type Revision string

// Config reaches one resource's overrides. It is apart from Resource: other rights, other people. L is the generated
// struct of optional limits. Levels are entity, kind, schema; for each limit, the first that names it wins. It is safe for
// concurrent use.
type Config[E Entity, L any] struct {
	*resource
	toLimits   func(L, []*bucket.Limit) []*bucket.Limit
	fromLimits func([]*bucket.Limit) L
}

// Override is what one level says of one resource.
type Override[L any] struct{}

// Explained is one level of Explain.
type Explained[L any] struct {
	Level  string   // "user-123", "user" or "schema"
	Limits L        // what it says
	Wins   []string // the limits that are as it says
}

// Overridden is one level that overrides something.
type Overridden[L any] struct {
	At       string // user-123, or a kind: user
	Limits   L
	Revision Revision
}

// Entity is the override of one entity.
func (c *Config[E, L]) Entity(entity E) *Override[L] { panic("to come") }

// Kind is the override of every entity of entity's kind; entity's id is not looked at.
func (c *Config[E, L]) Kind(entity E) *Override[L] { panic("to come") }

// Explain says what each level has for entity, and which limits it decides.
func (c *Config[E, L]) Explain(ctx context.Context, entity E) ([]Explained[L], error) {
	panic("to come")
}

// All yields every override of the resource, and ends with the first error.
func (c *Config[E, L]) All(ctx context.Context) iter.Seq2[Overridden[L], error] { panic("to come") }

// Get returns what is stored here, without resolving.
func (o *Override[L]) Get(ctx context.Context) (L, Revision, error) { panic("to come") }

// Set replaces what is stored here, if prev is still its revision.
func (o *Override[L]) Set(ctx context.Context, limits L, prev Revision) (Revision, error) {
	panic("to come")
}

// Delete ends the override, if prev is still its revision.
func (o *Override[L]) Delete(ctx context.Context, prev Revision) error { panic("to come") }

// BindConfig adds a resource's overrides. Generated constructors call it: toLimits appends the limits in schema order,
// fromLimits undoes that.
func BindConfig[E Entity, L any](
	b *Builder, def Definition, toLimits func(L, []*bucket.Limit) []*bucket.Limit, fromLimits func([]*bucket.Limit) L,
) *Config[E, L] {
	return &Config[E, L]{
		resource: &resource{core: b.core, def: def, spec: def.Spec()}, toLimits: toLimits, fromLimits: fromLimits,
	}
}
