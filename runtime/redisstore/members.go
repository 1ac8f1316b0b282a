package redisstore

import (
	"context"
	"iter"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime/store"
)

// childrenBatch is the number of children that one pipeline verifies.
const childrenBatch = 100

// Fields of an entity's hash.
const (
	parentField  = "parent"
	cascadeField = "cascade"
)

// Members reads and writes the entities under one prefix. It implements store.MemberStore. The client's
// retries apply: a write that is repeated changes nothing. It changes its own fields of an entity's hash
// alone. It is safe for concurrent use, and fails as Store.Buckets does.
type Members struct {
	*Store
	changed func(entity string) // called after each write, failed ones too
}

// Members returns the entities in s, for use without a Limiter.
func (s *Store) Members() *Members { return &Members{Store: s, changed: func(string) {}} }

// Members implements store.Session. The session's Member sees a write through it at once; other sessions
// see it when their cached values expire.
func (s *session) Members() store.MemberStore {
	return &Members{Store: s.Store, changed: s.lookups.Invalidate}
}

// Put implements store.MemberStore. It adds the entity to its parent's children first, so that it is not
// missing there if Put fails halfway. It adds it once more at the end: a concurrent Put with another parent
// may have removed it meanwhile.
func (e *Members) Put(ctx context.Context, m store.Member) error {
	defer e.changed(m.Entity)
	old, _, err := e.Get(ctx, m.Entity)
	if err != nil {
		return err
	}
	addChild := func() error {
		if m.Parent == "" {
			return nil
		}
		children := e.keys.children(m.Parent)
		return onKey(children, e.client.SAdd(ctx, children, m.Entity).Err())
	}
	cascade := "0"
	if m.Cascade {
		cascade = "1"
	}
	for _, step := range []func() error{
		addChild,
		func() error {
			return e.client.HSet(ctx, e.keys.entity(m.Entity), parentField, m.Parent, cascadeField,
				cascade).Err()
		},
		addChild,
	} {
		if err := step(); err != nil {
			return e.operationError(ctx, err)
		}
	}
	if old.Parent == m.Parent {
		return nil
	}
	return e.removeChild(ctx, m.Entity, old.Parent)
}

// removeChild removes entity from parent's children. It adds it again if a concurrent write has made parent
// its parent meanwhile.
func (e *Members) removeChild(ctx context.Context, entity, parent string) error {
	if parent == "" {
		return nil
	}
	children := e.keys.children(parent)
	if err := e.client.SRem(ctx, children, entity).Err(); err != nil {
		return e.operationError(ctx, onKey(children, err))
	}
	m, _, err := e.Get(ctx, entity)
	if err != nil || m.Parent != parent {
		return err
	}
	return e.operationError(ctx, e.client.SAdd(ctx, children, entity).Err())
}

// Get implements store.MemberStore.
func (e *Members) Get(ctx context.Context, entity string) (m store.Member, found bool, err error) {
	key := e.keys.entity(entity)
	hash, err := e.client.HGetAll(ctx, key).Result()
	if err != nil {
		return store.Member{}, false, e.operationError(ctx, onKey(key, err))
	}
	m, found = decodeMember(entity, hash)
	return m, found, nil
}

// Delete implements store.MemberStore.
func (e *Members) Delete(ctx context.Context, entity string) error {
	defer e.changed(entity)
	old, _, err := e.Get(ctx, entity)
	if err != nil {
		return err
	}
	if err := e.client.HDel(ctx, e.keys.entity(entity), parentField, cascadeField).Err(); err != nil {
		return e.operationError(ctx, err)
	}
	return e.removeChild(ctx, entity, old.Parent)
}

// Children implements store.MemberStore. It omits entities in the set that have another parent by now.
func (e *Members) Children(ctx context.Context, entity string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		children, err := e.setMembers(ctx, e.keys.children(entity))
		if err != nil {
			yield("", err)
			return
		}
		for chunk := range slices.Chunk(children, childrenBatch) {
			pipe := e.client.Pipeline()
			parents := make([]*redis.SliceCmd, len(chunk))
			for i, child := range chunk {
				parents[i] = pipe.HMGet(ctx, e.keys.entity(child), parentField)
			}
			if err := exec(ctx, pipe); err != nil {
				yield("", e.operationError(ctx, err))
				return
			}
			for i, child := range chunk {
				if parents[i].Val()[0] == entity && !yield(child, nil) {
					return
				}
			}
		}
	}
}

// decodeMember decodes an entity's hash. found is false if it has no field of a link.
func decodeMember(entity string, hash map[string]string) (m store.Member, found bool) {
	parent, found := hash[parentField]
	cascade, marked := hash[cascadeField]
	if !found && !marked {
		return store.Member{}, false
	}
	return store.Member{Entity: entity, Parent: parent, Cascade: cascade != "0"}, true
}
