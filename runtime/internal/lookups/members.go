package lookups

import (
	"context"

	"github.com/sluice-go/sluice/runtime/internal/background"
	"github.com/sluice-go/sluice/runtime/store"
)

// Members remembers what a store has of entities. It is a Cache by the stored id.
type Members struct{ *Cache[member] }

// member is what is stored of an entity.
type member struct {
	store.Member

	found bool
}

// Read reads what is stored of an entity; found is false where that is nothing.
type Read func(ctx context.Context, entity string) (m store.Member, found bool, err error)

// NewMembers returns Members of at most size entities that read what they do not remember, turns entities at
// a time. A read may outlive the calls that wait for it; tasks counts it.
func NewMembers(size, turns int, env *store.Env, tasks *background.Tasks, read Read) (*Members, error) {
	o := Options{Size: size, Turns: turns, Tasks: tasks, Subject: func(entity string) string {
		return "look-up of " + store.Quote(entity)
	}}
	c, err := NewCache(env, o, func(ctx context.Context, entity string) (m member, err error) {
		m.Member, m.found, err = read(ctx, entity)
		return m, err
	})
	return &Members{c}, err
}

// Member implements store.Session.
func (m *Members) Member(ctx context.Context, entity string) (_ store.Member, found bool, err error) {
	got, err := m.Get(ctx, entity)
	return got.Member, got.found, err
}
