package redisstore

import (
	"context"
	"errors"

	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/members"
	"github.com/sluice-go/sluice/runtime/store"
)

// Members returns the entities in s, for use without a Limiter.
func (s *Store) Members() store.MemberStore {
	return &members.Members{DB: &s.db, Changed: func(string) {}}
}

// Members implements store.Session. The session's Member sees a write through it at once; other sessions
// see it when their cached values expire.
func (s *session) Members() store.MemberStore {
	return &members.Members{DB: &s.db, Changed: s.lookups.Invalidate}
}

// Member implements store.Session.
func (s *session) Member(ctx context.Context, entity string) (m store.Member, found bool, err error) {
	return s.lookups.Member(ctx, entity)
}

// readMember reads an entity's hash.
func (s *session) readMember(ctx context.Context, entity string) (m store.Member, found bool, err error) {
	var hash map[string]string
	event := store.StoreEvent{Call: "HGETALL", Path: "member"}
	err = s.read(ctx, event, func(ctx context.Context) (_ bool, err error) {
		key := s.db.Keys.Entity(entity)
		hash, err = s.db.Client.HGetAll(ctx, key).Result()
		return len(hash) > 0, database.OnKey(key, err)
	})
	if err != nil {
		if down, unavailable := errors.AsType[*store.UnavailableError](err); unavailable {
			down.Resource = "look-up of " + entity
		}
		return store.Member{}, false, err
	}
	return members.Decode(entity, hash)
}
