package redisstore

import (
	"context"
	"strings"

	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/text"
	"github.com/sluice-go/sluice/runtime/store"
)

// storedEntity is what Redis keeps of one entity.
type storedEntity struct {
	buckets   []storedKeys
	overrides []string // keys
	link      []string // its key, if it is there
	lists     []string // the sets that have the entity
	grants    []string // keys
}

// Erase implements store.MemberStore. It visits all keys by SCAN, on each master of a cluster, since a bucket
// may be of a resource or a root that no longer exists. A bucket of another entity whose key has this one as
// its root stays: it expires. First goes the link, so that look-ups fail. The entries of lists go last.
func (e *Members) Erase(ctx context.Context, entity string, how store.Erasing) (n store.Erased, err error) {
	if !how.LeaveChildren {
		if err := store.Childless(ctx, e, entity); err != nil {
			return n, err
		}
	}
	found, err := e.storedOf(ctx, entity)
	if err != nil {
		return n, err
	}
	if how.DryRun {
		return store.Erased{Buckets: len(found.buckets), Overrides: len(found.overrides),
			Other: len(found.link) + len(found.lists) + len(found.grants)}, nil
	}
	defer e.changed(entity)
	erase := func(count *int, keys ...string) {
		for _, key := range keys { // one by one: a cluster has them on several nodes
			if err == nil {
				err = e.db.OperationError(ctx, database.OnKey(key, e.db.Client.Del(ctx, key).Err()))
			}
		}
		if err == nil {
			*count++
		}
	}
	for _, key := range found.link {
		erase(&n.Other, key)
	}
	for _, key := range found.overrides {
		erase(&n.Overrides, key)
	}
	for _, b := range found.buckets {
		erase(&n.Buckets, b.keys...)
	}
	for _, key := range found.grants { // after the buckets: repeated, they count in no bucket that stays
		erase(&n.Other, key)
	}
	for _, list := range found.lists {
		if err == nil {
			err = e.removeFrom(ctx, list, entity)
		}
		if err == nil {
			n.Other++
		}
	}
	return n, err
}

// removeFrom removes entity from a list. It adds it again if a concurrent write has made it one of the list
// meanwhile.
func (e *Members) removeFrom(ctx context.Context, list, entity string) error {
	if parent, ok := strings.CutPrefix(list, e.db.Keys.Children("")); ok {
		return e.removeChild(ctx, entity, parent)
	}
	if err := e.db.Client.SRem(ctx, list, entity).Err(); err != nil {
		return e.db.OperationError(ctx, database.OnKey(list, err))
	}
	resource, _ := e.db.Keys.ParseConfig(list)
	there, err := e.db.Client.Exists(ctx, e.db.Keys.Config(resource, entity)).Result()
	if err == nil && there > 0 {
		err = e.db.Client.SAdd(ctx, list, entity).Err()
	}
	return e.db.OperationError(ctx, database.OnKey(list, err))
}

// storedOf returns what is stored of entity.
func (e *Members) storedOf(ctx context.Context, entity string) (found storedEntity, err error) {
	type place struct{ resource, root string }
	buckets := map[place]*storedKeys{}
	keys, err := e.db.Scan(ctx, text.Glob(e.db.Keys.Prefix)+"*"+text.Glob(entity))
	if err != nil {
		return found, err
	}
	for _, key := range keys {
		on, _, root, of, isBucket := e.db.Keys.Parse(key)
		_, at := e.db.Keys.ParseConfig(key)
		switch {
		case key == e.db.Keys.Entity(entity):
			found.link = []string{key}
		case isBucket && of == entity:
			b := buckets[place{on, root}]
			if b == nil {
				b = &storedKeys{entity: entity, root: root}
				buckets[place{on, root}] = b
			}
			b.keys = append(b.keys, key)
		case at == entity:
			found.overrides = append(found.overrides, key)
		}
	}
	for _, b := range buckets {
		found.buckets = append(found.buckets, *b)
	}
	if found.grants, err = e.db.GrantsOf(ctx, entity); err != nil {
		return found, err
	}
	found.lists, err = e.db.ListsOf(ctx, entity)
	return found, err
}
