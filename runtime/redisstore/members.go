package redisstore

import (
	"context"
	"iter"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime"
)

// childrenBatch is how many children are verified in one pipeline.
const childrenBatch = 100

// Fields of an entity's hash.
const (
	parentField  = "parent"
	cascadeField = "cascade"
)

// Members reads and writes the entities under one prefix. It implements runtime.MemberStore. The client's retries apply: a write
// says all there is of an entity, so that once or twice is the same.
type Members struct {
	*Store
	changed func(entity string) // told of each write, whatever became of it
}

// Members returns the entities in s, for those who have no Limiter.
func (s *Store) Members() *Members { return &Members{Store: s, changed: func(string) {}} }

// Members implements runtime.Session. What they write, this session's Member sees at once; others see it when what they
// remember is due.
func (s *session) Members() runtime.MemberStore {
	return &Members{Store: s.Store, changed: s.lookups.Forget}
}

// Put implements runtime.MemberStore. An entity is noted under its parent before it has one, lest it be missing there if we do
// not get to the end; and again behind, since somebody who gave it another parent may have removed it meanwhile.
func (e *Members) Put(ctx context.Context, m runtime.Member) error {
	defer e.changed(m.Entity)
	old, _, err := e.Get(ctx, m.Entity)
	if err != nil {
		return err
	}
	note := func() error {
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
		note,
		func() error {
			return e.client.HSet(ctx, e.keys.entity(m.Entity), parentField, m.Parent, cascadeField, cascade).Err()
		},
		note,
	} {
		if err := step(); err != nil {
			return e.told(ctx, err)
		}
	}
	if old.Parent == m.Parent {
		return nil
	}
	return e.leave(ctx, m.Entity, old.Parent)
}

// leave removes entity from parent's children, and takes that back where somebody has made it one again meanwhile.
func (e *Members) leave(ctx context.Context, entity, parent string) error {
	if parent == "" {
		return nil
	}
	children := e.keys.children(parent)
	if err := e.client.SRem(ctx, children, entity).Err(); err != nil {
		return e.told(ctx, onKey(children, err))
	}
	m, _, err := e.Get(ctx, entity)
	if err != nil || m.Parent != parent {
		return err
	}
	return e.told(ctx, e.client.SAdd(ctx, children, entity).Err())
}

// Get implements runtime.MemberStore.
func (e *Members) Get(ctx context.Context, entity string) (m runtime.Member, found bool, err error) {
	key := e.keys.entity(entity)
	hash, err := e.client.HGetAll(ctx, key).Result()
	if err != nil {
		return runtime.Member{}, false, e.told(ctx, onKey(key, err))
	}
	m, found = decodeMember(entity, hash)
	return m, found, nil
}

// Delete implements runtime.MemberStore.
func (e *Members) Delete(ctx context.Context, entity string) error {
	defer e.changed(entity)
	old, _, err := e.Get(ctx, entity)
	if err != nil {
		return err
	}
	if err := e.client.Del(ctx, e.keys.entity(entity)).Err(); err != nil {
		return e.told(ctx, err)
	}
	return e.leave(ctx, entity, old.Parent)
}

// Children implements runtime.MemberStore. Who is noted there and has another parent by now is left out.
func (e *Members) Children(ctx context.Context, entity string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		noted, err := e.members(ctx, e.keys.children(entity))
		if err != nil {
			yield("", err)
			return
		}
		for chunk := range slices.Chunk(noted, childrenBatch) {
			pipe := e.client.Pipeline()
			parents := make([]*redis.SliceCmd, len(chunk))
			for i, child := range chunk {
				parents[i] = pipe.HMGet(ctx, e.keys.entity(child), parentField)
			}
			if err := exec(ctx, pipe); err != nil {
				yield("", e.told(ctx, err))
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

// decodeMember reads an entity's hash, which may be empty: found is false then.
func decodeMember(entity string, hash map[string]string) (m runtime.Member, found bool) {
	if len(hash) == 0 {
		return runtime.Member{}, false
	}
	return runtime.Member{Entity: entity, Parent: hash[parentField], Cascade: hash[cascadeField] != "0"}, true
}
