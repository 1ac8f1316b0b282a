package members

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/text"
	"github.com/sluice-go/sluice/runtime/store"
)

// storedEntity is what Redis keeps of one entity.
type storedEntity struct {
	buckets   [][]string // keys of each
	overrides []string   // keys
	link      []string   // its key, if it is there
	lists     []string   // the sets that have the entity
	grants    []string   // keys
	records   []string   // keys of the records of its changes
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
			Other: len(found.link) + len(found.lists) + len(found.grants) + len(found.records)}, nil
	}
	defer e.Changed(entity)
	erase := func(count *int, keys ...string) {
		for _, key := range keys { // one by one: a cluster has them on several nodes
			if err == nil {
				err = e.DB.OperationError(ctx, database.OnKey(key, e.DB.Client.Del(ctx, key).Err()))
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
	for _, keys := range found.buckets {
		erase(&n.Buckets, keys...)
	}
	for _, key := range found.records {
		erase(&n.Other, key)
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
	if parent, ok := strings.CutPrefix(list, e.DB.Keys.Children("")); ok {
		return e.removeChild(ctx, entity, parent)
	}
	if err := e.DB.Client.SRem(ctx, list, entity).Err(); err != nil {
		return e.DB.OperationError(ctx, database.OnKey(list, err))
	}
	resource, _ := e.DB.Keys.ParseConfig(list)
	there, err := e.DB.Client.Exists(ctx, e.DB.Keys.Config(resource, entity)).Result()
	if err == nil && there > 0 {
		err = e.DB.Client.SAdd(ctx, list, entity).Err()
	}
	return e.DB.OperationError(ctx, database.OnKey(list, err))
}

// storedOf returns what is stored of entity.
func (e *Members) storedOf(ctx context.Context, entity string) (found storedEntity, err error) {
	type place struct{ resource, root string }
	buckets := map[place][]string{}
	keys, err := e.DB.Scan(ctx, text.Glob(e.DB.Keys.Prefix)+"*"+text.Glob(entity))
	if err != nil {
		return found, err
	}
	for _, key := range keys {
		on, _, root, of, isBucket := e.DB.Keys.Parse(key)
		_, at := e.DB.Keys.ParseConfig(key)
		switch {
		case key == e.DB.Keys.Entity(entity):
			found.link = []string{key}
		case isBucket && of == entity:
			at := place{on, root}
			buckets[at] = append(buckets[at], key)
		case at == entity:
			found.overrides = append(found.overrides, key)
		case e.DB.Keys.IsAudit(key, entity):
			found.records = append(found.records, key)
		}
	}
	found.buckets = slices.Collect(maps.Values(buckets))
	if found.grants, err = e.DB.GrantsOf(ctx, entity); err != nil {
		return found, err
	}
	found.lists, err = e.DB.ListsOf(ctx, entity)
	return found, err
}
