package redisstore

import (
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime"
)

// tag returns what of key decides where it lies: its hash tag, or all of it. Keys that share it lie together, in a slot of a
// cluster and on a shard of a Ring, which has no slots.
func tag(key string) string {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return tag
		}
	}
	return key
}

// sharded reports that client spreads keys over nodes.
func sharded(client redis.UniversalClient) bool {
	switch client.(type) {
	case *redis.ClusterClient, *redis.Ring:
		return true
	}
	return false
}

// together says why r, of several parts, cannot be one script call: its keys need not lie together. One part's do, which Check
// has seen to.
func (s *session) together(r *request) error {
	if r.parts < 2 || !s.keys.rooted {
		return nil
	}
	first := r.shares[0].keys[0].(string)
	for i := range r.shares {
		sh := &r.shares[i]
		if key := sh.keys[0].(string); tag(key) != tag(first) {
			return &runtime.InvalidError{Resource: sh.spec.Resource, Field: "claim of", Value: sh.entity, Reason: fmt.Sprintf(
				"lies on another part of the cluster than %s for %s: acquire them one by one, or under one root", r.shares[0].spec.Resource, r.shares[0].entity)}
		}
	}
	return nil
}
