package redisstore

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime/bucket"
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
// store.OverrideStore. The client's retries apply: a repeated write is recognised by its id.
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
		b, ok := s.buckets.Peek(bucketKey{named(s.resources, resource), root, entity})
		if ok {
			b.update(nil)
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
	args := []any{string(s.Revision), rand.Text()}
	for i, name := range spec.Limits {
		text := ""
		if s.Limits[i] != nil {
			text = limitText(*s.Limits[i])
		}
		args = append(args, limitField(name), text)
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

// Fill implements store.OverrideStore: a missing bucket is a full one.
func (o *Overrides) Fill(ctx context.Context, spec *store.Spec, _ int, entity, root string) error {
	defer o.filled(spec.Resource, root, entity)
	return o.Store.Fill(ctx, spec.Resource, root, entity, spec.Limits...)
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

// decodeOverride decodes the hash of an override, which may be empty. It skips limits that spec does not
// know, those of another binary. It fails with a *store.SetupError.
func (s *Store) decodeOverride(
	spec *store.Spec, at string, hash map[string]string,
) (store.Stored, error) {
	stored := store.Stored{At: at, Limits: make([]*bucket.Limit, len(spec.Limits))}
	if len(hash) == 0 {
		return stored, nil
	}
	stored.Revision = store.Revision(hash["ver"])
	_, err := strconv.ParseInt(hash["ver"], 10, 64)
	for i, name := range spec.Limits {
		if text, ok := hash[limitField(name)]; ok && err == nil {
			stored.Limits[i], err = parseLimit(name, text)
		}
	}
	if err != nil {
		return store.Stored{}, &store.SetupError{
			What: fmt.Sprintf("the override of %s at %s is malformed", spec.Resource, store.Quote(at)),
			Do:   fmt.Sprintf("fix the hash %s and raise its ver", store.Quote(s.keys.config(spec.Resource, at))),
			Err:  err,
		}
	}
	return stored, nil
}

// limitField returns the name of a limit's field.
func limitField(limit string) string { return "l_" + limit }

// limitText returns a limit as its field stores it: capacity, burst, refill and period, in millitokens and
// ms.
func limitText(l bucket.Limit) string {
	return fmt.Sprintf("%d %d %d %d", l.Capacity, l.Burst, l.Refill, l.Period)
}

// parseLimit is the inverse of limitText.
func parseLimit(name, text string) (*bucket.Limit, error) {
	l := &bucket.Limit{}
	into := [...]*int64{&l.Capacity, &l.Burst, &l.Refill, &l.Period}
	words := strings.Fields(text)
	if len(words) != len(into) {
		return nil, fmt.Errorf("limit %s: %q: want capacity, burst, refill and period", name, text)
	}
	for i, word := range words {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("limit %s: %q: %q is not a number", name, text, word)
		}
		*into[i] = n
	}
	if wrong := l.Check(0); wrong != "" {
		return nil, fmt.Errorf("limit %s: %s", name, wrong)
	}
	return l, nil
}
