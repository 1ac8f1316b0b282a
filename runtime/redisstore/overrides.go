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

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// setScript changes a level. It needs to be one script, since of two operators who have read the same, one is to be told.
//
//go:embed set.lua
var setScript string

// overridesBatch is how many levels are read in one pipeline.
const overridesBatch = 100

// Overrides reads and writes what is overridden, of all resources under one prefix. It implements runtime.OverrideStore. The
// client's retries apply: a write that goes again is recognised by its id.
type Overrides struct {
	*Store
	changed func(resource string) // told of each write, whatever became of it
}

// Overrides returns the overrides in s, for those who have no Limiter.
func (s *Store) Overrides() *Overrides { return &Overrides{Store: s, changed: func(string) {}} }

// Overrides implements runtime.Session. What they write, this session sees at once.
func (s *session) Overrides() runtime.OverrideStore {
	return &Overrides{Store: s.Store, changed: func(resource string) {
		if r := s.named(resource); r != nil {
			r.changed.Add(1)
		}
	}}
}

// Get implements runtime.OverrideStore.
func (o *Overrides) Get(ctx context.Context, spec *runtime.Spec, at ...string) ([]runtime.Stored, error) {
	all := make([]runtime.Stored, 0, len(at))
	for chunk := range slices.Chunk(at, overridesBatch) {
		pipe := o.client.Pipeline()
		replies := make([]*redis.MapStringStringCmd, len(chunk))
		for i, level := range chunk {
			replies[i] = pipe.HGetAll(ctx, o.keys.config(spec.Resource, level))
		}
		if err := exec(ctx, pipe); err != nil {
			return nil, o.told(ctx, err)
		}
		for i, level := range chunk {
			stored, err := o.decodeLevel(spec, level, replies[i].Val())
			if err != nil {
				return nil, err
			}
			all = append(all, stored)
		}
	}
	return all, nil
}

// Set implements runtime.OverrideStore. Limits that spec does not know, another binary's, are left as they are; a tombstone ends
// them too. For whom anything is overridden is noted ahead of it, since no script can write both keys in a cluster: List may
// find nothing there, but misses nobody.
func (o *Overrides) Set(ctx context.Context, spec *runtime.Spec, s runtime.Stored) (runtime.Revision, error) {
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
		return "", o.told(ctx, onKey(all, err))
	}
	key := o.keys.config(spec.Resource, s.At)
	revision, err := redis.NewScript(setScript).Run(ctx, o.client, []string{key}, args...).Text()
	switch {
	case err != nil:
		return "", o.told(ctx, onKey(key, err))
	case revision == "":
		return "", &runtime.ConflictError{Resource: spec.Resource, At: s.At}
	}
	return runtime.Revision(revision), nil
}

// Heartbeat implements runtime.OverrideStore: no regions share what a Redis holds.
func (o *Overrides) Heartbeat(context.Context) (runtime.Heartbeat, error) {
	return runtime.Heartbeat{}, nil
}

// List implements runtime.OverrideStore, sorted.
func (o *Overrides) List(ctx context.Context, spec *runtime.Spec) iter.Seq2[runtime.Stored, error] {
	return func(yield func(runtime.Stored, error) bool) {
		levels, err := o.members(ctx, o.keys.configs(spec.Resource))
		if err != nil {
			yield(runtime.Stored{}, err)
			return
		}
		for chunk := range slices.Chunk(levels, overridesBatch) {
			all, err := o.Get(ctx, spec, chunk...)
			if err != nil {
				yield(runtime.Stored{}, err)
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

// members returns a set, sorted.
func (s *Store) members(ctx context.Context, key string) ([]string, error) {
	all, err := s.client.SMembers(ctx, key).Result()
	if err != nil {
		return nil, s.told(ctx, onKey(key, err))
	}
	slices.Sort(all)
	return all, nil
}

// decodeLevel reads the hash of a level, which may be empty. Limits that spec does not know are another binary's, and skipped.
// It fails with a *runtime.SetupError.
func (s *Store) decodeLevel(spec *runtime.Spec, at string, hash map[string]string) (runtime.Stored, error) {
	stored := runtime.Stored{At: at, Limits: make([]*bucket.Limit, len(spec.Limits))}
	if len(hash) == 0 {
		return stored, nil
	}
	stored.Revision = runtime.Revision(hash["ver"])
	_, err := strconv.ParseInt(hash["ver"], 10, 64)
	for i, name := range spec.Limits {
		if text, ok := hash[limitField(name)]; ok && err == nil {
			stored.Limits[i], err = parseLimit(name, text)
		}
	}
	if err != nil {
		return runtime.Stored{}, &runtime.SetupError{
			What: fmt.Sprintf("the override of %s at %s is malformed", spec.Resource, at),
			Do:   fmt.Sprintf("mend the hash %s and raise its ver", s.keys.config(spec.Resource, at)),
			Err:  err,
		}
	}
	return stored, nil
}

// limitField is the field of one limit.
func limitField(limit string) string { return "l_" + limit }

// limitText writes a limit as a field has it: capacity, burst, refill and period, in millitokens and ms.
func limitText(l bucket.Limit) string {
	return fmt.Sprintf("%d %d %d %d", l.Capacity, l.Burst, l.Refill, l.Period)
}

// parseLimit undoes limitText.
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
			return nil, fmt.Errorf("limit %s: %q: %q is no number", name, text, word)
		}
		*into[i] = n
	}
	if wrong := l.Check(0); wrong != "" {
		return nil, fmt.Errorf("limit %s: %s", name, wrong)
	}
	return l, nil
}
