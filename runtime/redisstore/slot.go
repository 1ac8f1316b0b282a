package redisstore

import (
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/text"
	"github.com/sluice-go/sluice/runtime/store"
)

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
func (r *request) checkTogether(k database.Keys) error {
	if r.parts < 2 || !k.HashTags {
		return nil
	}
	first := &r.portions[0]
	for i := range r.portions {
		p := &r.portions[i]
		if text.Tag(p.keys[0].(string)) == text.Tag(first.keys[0].(string)) {
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
