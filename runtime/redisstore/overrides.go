package redisstore

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"iter"
	"slices"

	"github.com/redis/go-redis/v9"

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
	changed func(resource string)               // called after each write, failed ones too
	filled  func(resource, root, entity string) // called after each Fill, failed ones too
}

// Overrides returns the overrides in s, for use without a Limiter.
func (s *Store) Overrides() *Overrides {
	return &Overrides{Store: s, changed: func(string) {}, filled: func(_, _, _ string) {}}
}

// Overrides implements store.Session. The session sees a write through it at once.
func (s *session) Overrides() store.OverrideStore {
	return &Overrides{Store: s.Store, changed: func(resource string) {
		if r := named(s.resources, resource); r != nil {
			r.changed.Add(1)
		}
	}, filled: func(resource, root, entity string) {
		b, ok := s.buckets.Peek(bucketKey{named(s.resources, resource), s.keys.root(root), entity})
		if fills := s.fills.Add(1); ok {
			b.invalidate(fills)
		}
	}}
}

// Get implements store.OverrideStore.
func (o *Overrides) Get(ctx context.Context, spec *store.Spec, at ...string) ([]store.Stored, error) {
	all := make([]store.Stored, 0, len(at))
	for chunk := range slices.Chunk(at, overridesBatch) {
		pipe := o.client.Pipeline()
		replies := make([]*redis.MapStringStringCmd, len(chunk))
		for i, at := range chunk {
			replies[i] = pipe.HGetAll(ctx, o.keys.config(spec.Resource, at))
		}
		if err := exec(ctx, pipe); err != nil {
			return nil, o.operationError(ctx, err)
		}
		for i, at := range chunk {
			stored, err := o.keys.decodeOverride(spec, at, replies[i].Val())
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
	args := []any{string(s.Revision), rand.Text()}
	for i, name := range spec.Limits {
		limit := ""
		if s.Limits[i] != nil {
			limit = text.Limit(*s.Limits[i])
		}
		args = append(args, text.LimitField(name), limit)
	}
	defer o.changed(spec.Resource)
	all := o.keys.configs(spec.Resource)
	if err := o.client.SAdd(ctx, all, s.At).Err(); err != nil {
		return "", o.operationError(ctx, onKey(all, err))
	}
	key := o.keys.config(spec.Resource, s.At)
	revision, err := redis.NewScript(setScript).Run(ctx, o.client, []string{key}, args...).Text()
	switch {
	case err != nil:
		return "", o.operationError(ctx, onKey(key, err))
	case revision == "":
		return "", &store.ConflictError{Resource: spec.Resource, At: s.At}
	}
	return store.Revision(revision), nil
}

// fillScript fills one limit of a bucket.
//
//go:embed fill.lua
var fillScript string

// Fill implements store.OverrideStore.
func (o *Overrides) Fill(ctx context.Context, spec *store.Spec, kind int, entity, root string) error {
	return o.FillLimits(ctx, spec, kind, entity, root, spec.Limits...)
}

// FillLimits is Fill of the named limits alone. It stores a missing bucket too: callers that have older
// overrides would take it for full by those. After an error some of the limits may be filled.
func (o *Overrides) FillLimits(
	ctx context.Context, spec *store.Spec, kind int, entity, root string, limits ...string,
) error {
	defer o.filled(spec.Resource, root, entity)
	for i, limit := range spec.Limits {
		if !spec.Kinds[kind].Has(i) || !slices.Contains(limits, limit) {
			continue
		}
		if err := o.fillLimit(ctx, spec, kind, entity, root, i); err != nil {
			return err
		}
	}
	return nil
}

// maxFills is how often fillLimit reads the overrides.
const maxFills = 5

// fillLimit fills the i-th limit of a bucket. If a higher version of the overrides has filled it, fillLimit
// reads them anew. These overrides are newer than that fill, even if an eviction has lowered the version.
func (o *Overrides) fillLimit(
	ctx context.Context, spec *store.Spec, kind int, entity, root string, i int,
) error {
	key, filledBy := o.keys.bucket(spec.Resource, spec.Limits[i], root, entity), ""
	for range maxFills {
		overrides, err := o.Get(ctx, spec, entity, spec.Kinds[kind].Name)
		if err != nil {
			return err
		}
		inForce, version := resolved(spec, kind, overrides...)
		args := append(text.Params(inForce[i], version), filledBy)
		filledBy, err = redis.NewScript(fillScript).Run(ctx, o.client, []string{key}, args...).Text()
		if err != nil {
			return o.operationError(ctx, onKey(key, err))
		}
		if filledBy == "" {
			return nil
		}
	}
	return &store.ContendedError{Resource: spec.Resource, Entity: entity, Attempts: maxFills}
}

// Heartbeat implements store.OverrideStore: on Redis no limits are divided among regions.
func (o *Overrides) Heartbeat(context.Context) (store.Heartbeat, error) {
	return store.Heartbeat{}, nil
}

// List implements store.OverrideStore, sorted.
func (o *Overrides) List(ctx context.Context, spec *store.Spec) iter.Seq2[store.Stored, error] {
	return func(yield func(store.Stored, error) bool) {
		places, err := o.setMembers(ctx, o.keys.configs(spec.Resource))
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

// setMembers returns the members of a Redis set, sorted.
func (s *Store) setMembers(ctx context.Context, key string) ([]string, error) {
	all, err := s.client.SMembers(ctx, key).Result()
	if err != nil {
		return nil, s.operationError(ctx, onKey(key, err))
	}
	slices.Sort(all)
	return all, nil
}

// decodeOverride decodes the hash of an override, which may be empty. It fails with a *store.SetupError.
func (k keys) decodeOverride(
	spec *store.Spec, at string, hash map[string]string,
) (store.Stored, error) {
	stored, err := text.Override(spec, at, hash)
	if err != nil {
		return store.Stored{}, &store.SetupError{
			What: fmt.Sprintf("the override of %s at %s is malformed", spec.Resource, store.Quote(at)),
			Do:   fmt.Sprintf("fix the hash %s and raise its ver", store.Quote(k.config(spec.Resource, at))),
			Err:  err,
		}
	}
	return stored, nil
}
