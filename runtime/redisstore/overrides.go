package redisstore

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"iter"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime/redisstore/internal/audit"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/catalog"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/fill"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/grants"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/text"
	"github.com/sluice-go/sluice/runtime/store"
)

// setScript replaces an override. It is one script, so that of two operators who have read the same
// revision one gets a conflict.
//
//go:embed set.lua
var setScript string

// overridesBatch is the number of overrides that one pipeline reads.
const overridesBatch = 100

// Overrides reads and writes the overrides of all resources under one prefix. It implements
// store.OverrideStore. The client's retries apply: a repeated write is recognised by its id. It is safe for
// concurrent use, and fails as Store.Buckets does; Set also with a *runtime.ConflictError.
type Overrides struct {
	*Store
	changed func(*store.Spec)                                     // called after each write, failed ones too
	filled  func(spec *store.Spec, kind int, root, entity string) // called after each Fill, failed ones too
}

// Overrides returns the overrides in s, for use without a Limiter.
func (s *Store) Overrides() *Overrides {
	return &Overrides{
		Store: s, changed: func(*store.Spec) {}, filled: func(*store.Spec, int, string, string) {},
	}
}

// Overrides implements store.Session. The session sees a write through it at once.
func (s *session) Overrides() store.OverrideStore {
	return &Overrides{Store: s.Store, changed: func(spec *store.Spec) {
		if r := find(s.resources, spec); r != nil {
			r.changed.Add(1)
		}
	}, filled: func(spec *store.Spec, kind int, root, entity string) {
		fills, r := s.fills.Add(1), find(s.resources, spec)
		if r != nil && spec.ByName(kind) {
			r = r.named(spec)
		}
		if r == nil {
			return
		}
		if b, ok := s.buckets.Peek(r.key(s.db.Keys, kind, root, entity)); ok {
			b.invalidate(fills)
		}
	}}
}

// Catalog returns the catalogs of templates in s.
func (s *Store) Catalog() store.Catalog {
	return &catalog.Catalog{DB: &s.db}
}

// Catalog implements store.Session. The session goes by a write through it at once.
func (s *session) Catalog() store.Catalog {
	return &catalog.Catalog{DB: &s.db, Wrote: func(spec *store.Spec, e *store.Entry) {
		r := find(s.resources, spec)
		if r == nil || e.Alias != "" {
			return
		}
		if name, ok := r.names.Peek(nameKey{e.Name, e.ResourceAt(spec.Resource)}); ok {
			name.see(e)
		}
	}}
}

// Get implements store.OverrideStore.
func (o *Overrides) Get(ctx context.Context, spec *store.Spec, at ...string) ([]store.Stored, error) {
	all := make([]store.Stored, 0, len(at))
	for chunk := range slices.Chunk(at, overridesBatch) {
		pipe := o.db.Client.Pipeline()
		replies := make([]*redis.MapStringStringCmd, len(chunk))
		for i, at := range chunk {
			replies[i] = pipe.HGetAll(ctx, o.db.Keys.Config(spec.Resource, at))
		}
		if err := database.Exec(ctx, pipe); err != nil {
			return nil, o.db.OperationError(ctx, err)
		}
		for i, at := range chunk {
			stored, err := o.decodeOverride(spec, at, replies[i].Val())
			if err != nil {
				return nil, err
			}
			all = append(all, stored)
		}
	}
	return all, nil
}

// Set implements store.OverrideStore. It leaves limits that spec does not know, those of another binary,
// as they are; a tombstone removes them too. It first adds s.At to the set that List reads, since in a
// cluster no script can write both keys. So List may find no override at an entry of the set, but misses
// none.
func (o *Overrides) Set(ctx context.Context, spec *store.Spec, s store.Stored) (store.Revision, error) {
	if err := o.Check(spec, s); err != nil {
		return "", err
	}
	fields := text.LimitFields(s.At)
	var args []any
	for i, name := range spec.Limits {
		limit := ""
		if s.Limits[i] != nil {
			limit = text.Limit(*s.Limits[i])
		}
		args = append(args, fields+name, limit)
	}
	defer o.changed(spec)
	key := o.db.Keys.Config(spec.Resource, s.At)
	record, err := audit.New(ctx, &o.db, key, store.Change{
		At: s.At, Resource: spec.Resource, After: s.Fields(spec),
	})
	if err != nil {
		return "", err
	}
	all := o.db.Keys.Configs(spec.Resource)
	if err := o.db.Client.SAdd(ctx, all, s.At).Err(); err != nil {
		return "", o.db.OperationError(ctx, database.OnKey(all, err))
	}
	args = append([]any{string(s.Revision), rand.Text(), fields, record.Text}, args...)
	keys := []string{key, record.Key}
	revision, err := redis.NewScript(setScript).Run(ctx, o.db.Client, keys, args...).Text()
	switch {
	case err != nil:
		return "", o.db.OperationError(ctx, database.OnKey(key, err))
	case revision == "":
		return "", &store.ConflictError{Resource: spec.Resource, At: s.At}
	}
	return store.Revision(revision), nil
}

// Check returns the *runtime.InvalidError with which Set refuses limits of s, or nil.
func (o *Overrides) Check(spec *store.Spec, s store.Stored) error {
	for i, l := range s.Limits {
		if l == nil {
			continue
		}
		if wrong := text.CheckLimit(spec, i, *l); wrong != "" {
			return &store.InvalidError{
				Resource: spec.Resource, Field: "limit " + spec.Limits[i] + " of " + s.At,
				Reason: "is not possible: " + wrong,
			}
		}
	}
	return nil
}

// Fill implements store.OverrideStore.
func (o *Overrides) Fill(ctx context.Context, spec *store.Spec, kind int, entity, root string) error {
	return o.FillLimits(ctx, spec, kind, entity, root, spec.Limits...)
}

// FillLimits is Fill of the named limits alone. It stores a missing bucket too: callers that have older
// overrides would take it for full by those. Of a windowed limit it resets the open window, and what
// leases hold of a limit does not count any more. A prepaid limit stays as it is. After an error some of
// the limits may be filled.
func (o *Overrides) FillLimits(
	ctx context.Context, spec *store.Spec, kind int, entity, root string, limits ...string,
) error {
	defer o.filled(spec, kind, root, entity)
	b := fill.Bucket{DB: &o.db, Spec: spec, Kind: kind, Entity: entity, Root: root,
		Overrides: o.Get, Member: o.Members().Get, Entry: o.Catalog().Get}
	return b.Limits(ctx, limits...)
}

// Grant implements store.OverrideStore. On a cluster, an entity has a balance for each root of its chains.
func (o *Overrides) Grant(ctx context.Context, spec *store.Spec, g *store.Grant) error {
	defer o.filled(spec, g.Kind, g.Root, g.Entity)
	return grants.Add(ctx, &o.db, spec, g)
}

// Heartbeat implements store.OverrideStore: on Redis no limits are divided among regions.
func (o *Overrides) Heartbeat(context.Context) (store.Heartbeat, error) {
	return store.Heartbeat{}, nil
}

// List implements store.OverrideStore, sorted.
func (o *Overrides) List(ctx context.Context, spec *store.Spec) iter.Seq2[store.Stored, error] {
	return func(yield func(store.Stored, error) bool) {
		places, err := o.db.SetMembers(ctx, o.db.Keys.Configs(spec.Resource))
		if err != nil {
			yield(store.Stored{}, err)
			return
		}
		for chunk := range slices.Chunk(places, overridesBatch) {
			all, err := o.Get(ctx, spec, chunk...)
			if err != nil {
				yield(store.Stored{}, err)
				return
			}
			for _, stored := range all {
				if stored.Overrides() && !yield(stored, nil) {
					return
				}
			}
		}
	}
}

// decodeOverride decodes the hash of an override, which may be empty. It fails with a *store.SetupError.
func (s *Store) decodeOverride(
	spec *store.Spec, at string, hash map[string]string,
) (store.Stored, error) {
	stored, err := text.Override(spec, at, hash)
	if err != nil {
		return store.Stored{}, &store.SetupError{
			What: fmt.Sprintf("the override of %s at %s is malformed", spec.Resource, store.Quote(at)),
			Do:   fmt.Sprintf("fix the hash %s and raise its ver", store.Quote(s.db.Keys.Config(spec.Resource, at))),
			Err:  err,
		}
	}
	return stored, nil
}
