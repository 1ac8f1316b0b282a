package runtime

import (
	"context"
	"iter"
	"time"

	"github.com/sluice-go/sluice/runtime/store"
)

// Entities reads and writes which entity belongs to which, for entities whose parents are looked up
// (UserByID). It is safe for concurrent use. Its methods fail with:
//   - an *InvalidError for bad input, without asking the store;
//   - the store's error, mostly an *UnavailableError or a *SetupError. A write may be repeated then.
type Entities struct{ core *core }

// Entities returns the entities that the store knows.
func (l *Limiter) Entities() *Entities { return &Entities{core: l.core} }

// Put stores the parent that entity has, and replaces the link that was stored of entity. It stores only the
// entity's own link, not its parent's parent. A parent without id means none: look-ups that need it then
// fail. Other processes that have looked entity up use what was stored before, for as long as WithCacheTTL
// says.
func (e *Entities) Put(ctx context.Context, entity Entity, opts ...PutOption) error {
	link, stored, err := e.core.nearest("", entity)
	if err != nil {
		return err
	}
	if link.Lookup {
		return &InvalidError{
			Field: "entity", Value: stored,
			Reason: "has its parent looked up, so that there is none to store: give it its parent",
		}
	}
	m := store.Member{Entity: stored, Cascade: true}
	if chain := entity.Chain(nil); len(chain) > 1 && chain[1].ID != "" {
		m.Parent = e.core.kinds[chain[1].Kind].Prefix + chain[1].ID
	}
	for _, opt := range opts {
		if opt != nil {
			opt(&m)
		}
	}
	if err := m.Check(e.core.kinds); err != nil {
		return err
	}
	return e.core.session.Members().Put(ctx, m)
}

// SetCalendar stores the start of the entity's billing. Windows with starts: entity count from since, and its
// location, an IANA zone, is the zone of windows with zone: entity. Entities below it without a calendar go
// by it too. An open window is not shortened: the next one is half to one and a half times as long. Other
// processes go by what was stored before, for as long as WithCacheTTL says.
func (e *Entities) SetCalendar(ctx context.Context, entity Entity, since time.Time) error {
	_, stored, err := e.core.nearest("", entity)
	if err != nil {
		return err
	}
	if err := store.CheckSince(since); err != nil {
		return err
	}
	return e.core.session.Members().SetCalendar(ctx, stored, since)
}

// Get returns what is stored of entity; found is false if nothing is.
func (e *Entities) Get(ctx context.Context, entity Entity) (m store.Member, found bool, err error) {
	_, stored, err := e.core.nearest("", entity)
	if err != nil {
		return store.Member{}, false, err
	}
	return e.core.session.Members().Get(ctx, stored)
}

// Delete removes the link that is stored of entity, if there is one. Its children stay stored, and so do its
// buckets and overrides.
func (e *Entities) Delete(ctx context.Context, entity Entity) error {
	_, stored, err := e.core.nearest("", entity)
	if err != nil {
		return err
	}
	return e.core.session.Members().Delete(ctx, stored)
}

// Children yields the stored ids of the entities whose parent is entity, sorted, and ends with the first
// error.
func (e *Entities) Children(ctx context.Context, entity Entity) iter.Seq2[string, error] {
	_, stored, err := e.core.nearest("", entity)
	if err != nil {
		return func(yield func(string, error) bool) { yield("", err) }
	}
	return e.core.session.Members().Children(ctx, stored)
}

// PutOption changes what Put stores.
type PutOption func(*store.Member)

// NoCascade makes calls on the entity, when it is looked up, charge only its own bucket.
func NoCascade() PutOption { return func(m *store.Member) { m.Cascade = false } }
