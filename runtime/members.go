package runtime

import (
	"context"
	"iter"
)

// Entities reads and writes who belongs to whom, for entities whose parents are looked up (UserByID). It is safe for
// concurrent use.
type Entities struct{ core *core }

// Entities returns the entities that the store knows.
func (l *Limiter) Entities() *Entities { return &Entities{core: l.core} }

// Put stores that entity's parent is the one it has, in place of what was stored of it.
func (e *Entities) Put(ctx context.Context, entity Entity, opts ...PutOption) error { panic("to come") }

// Get returns what is stored of entity; found is false where that is nothing.
func (e *Entities) Get(ctx context.Context, entity Entity) (m Member, found bool, err error) {
	panic("to come")
}

// Delete removes what is stored of entity, if anything is.
func (e *Entities) Delete(ctx context.Context, entity Entity) error { panic("to come") }

// Children yields the stored ids of the entities whose parent is entity, sorted, and ends with the first error.
func (e *Entities) Children(ctx context.Context, entity Entity) iter.Seq2[string, error] {
	panic("to come")
}

// PutOption changes what Put stores.
type PutOption func(*Member)

// WithoutCascade has calls of the entity, looked up, charge its own bucket alone.
func WithoutCascade() PutOption { return func(m *Member) { m.Cascade = false } }
