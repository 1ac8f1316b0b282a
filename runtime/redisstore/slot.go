package redisstore

import (
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime/store"
)

// tag returns the part of key that decides where it is stored: its hash tag, or all of it. Keys with the
// same tag are stored together, in a slot of a cluster or on a shard of a Ring, which has no slots.
func tag(key string) string {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return tag
		}
	}
	return key
}

// sharded reports whether client spreads keys over nodes.
func sharded(client redis.UniversalClient) bool {
	switch client.(type) {
	case *redis.ClusterClient, *redis.Ring:
		return true
	}
	return false
}

// checkTogether returns an error if r has several parts whose keys are not stored together, so that it
// cannot be one script call. The keys of a single part are: Check verifies that.
func (r *request) checkTogether(k keys) error {
	if r.parts < 2 || !k.hashTags {
		return nil
	}
	first := &r.portions[0]
	for i := range r.portions {
		p := &r.portions[i]
		if tag(p.keys[0].(string)) == tag(first.keys[0].(string)) {
			continue
		}
		return &store.InvalidError{
			Resource: p.spec.Resource, Field: "claim of", Value: p.entity,
			Reason: fmt.Sprintf(
				"lies on another part of the cluster than %s for %s: acquire them one by one, or under "+
					"one root",
				first.spec.Resource, first.entity),
		}
	}
	return nil
}
