package redisstore

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestKeys: for any ids, no two buckets share a key, and parse returns a key's bucket.
func TestKeys(t *testing.T) {
	id := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"user-", "project-"}).Draw(t, "kind") +
			rapid.StringOf(rapid.SampledFrom([]rune("{}:-ab*"))).Draw(t, "id")
	})
	rapid.Check(t, func(t *rapid.T) {
		k := keys{rapid.SampledFrom([]string{"sluice:", "", "a{b}:", "x:y:"}).Draw(t, "prefix"),
			rapid.Bool().Draw(t, "rooted")}
		root, entity := id.Draw(t, "root"), id.Draw(t, "entity")
		key := k.bucket("gpt-4", "rpm", root, entity)
		if !k.hashTags {
			root = entity
		}
		resource, limit, gotRoot, gotEntity, ok := k.parse(key)
		if !ok || resource != "gpt-4" || limit != "rpm" || gotRoot != root || gotEntity != entity {
			t.Fatalf("%s is %s, %s, %s, %s, %t", key, resource, limit, gotRoot, gotEntity, ok)
		}
		if !strings.HasPrefix(key, k.buckets("gpt-4")) {
			t.Fatalf("%s is not among %s", key, k.buckets("gpt-4"))
		}
		for _, other := range []string{k.config("gpt-4", entity), k.configs("gpt-4"), k.entity(entity),
			k.children(entity)} {
			if _, _, _, _, ok := k.parse(other); ok {
				t.Fatalf("%s is taken for a bucket", other)
			}
		}
	})
}
