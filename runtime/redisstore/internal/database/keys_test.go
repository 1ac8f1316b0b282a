package database

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/redisstore/internal/text"
)

// TestKeys: for any ids, no two buckets share a key, and Parse returns a key's bucket.
func TestKeys(t *testing.T) {
	id := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"user-", "project-"}).Draw(t, "kind") +
			rapid.StringOf(rapid.SampledFrom([]rune("{}:-ab*"))).Draw(t, "id")
	})
	rapid.Check(t, func(t *rapid.T) {
		k := Keys{rapid.SampledFrom([]string{"sluice:", "", "a{b}:", "x:y:"}).Draw(t, "prefix"),
			rapid.Bool().Draw(t, "rooted")}
		on := rapid.SampledFrom([]string{
			"gpt-4", "a:b", "a", "a:b:user-1", "meta/Llama", "A::", "model/{a}:*",
		}).Draw(t, "on")
		root, entity := id.Draw(t, "root"), id.Draw(t, "entity")
		key := k.Bucket(on, "rpm", root, entity)
		if !k.HashTags {
			root = entity
		}
		resource, limit, gotRoot, gotEntity, ok := k.Parse(key)
		if !ok || resource != on || limit != "rpm" || gotRoot != root || gotEntity != entity {
			t.Fatalf("%s is %s, %s, %s, %s, %t", key, resource, limit, gotRoot, gotEntity, ok)
		}
		if tag := text.Tag(k.Bucket("a", "tpm", root, "user-1")); k.HashTags && text.Tag(key) != tag {
			t.Fatalf("%s is not where the other buckets under %s are", key, root)
		}
		if !strings.HasPrefix(key, k.Buckets(on)) {
			t.Fatalf("%s is not among %s", key, k.Buckets(on))
		}
		for _, other := range []string{k.Config(on, entity), k.Configs(on), k.Entity(entity),
			k.Children(entity)} {
			if _, _, _, _, ok := k.Parse(other); ok {
				t.Fatalf("%s is taken for a bucket", other)
			}
		}
	})
}

// TestKeysOfColons: a client's id cannot make the key of another resource's bucket, list or overrides.
// Without the escaped colon, each pair here is one key.
func TestKeysOfColons(t *testing.T) {
	k := Keys{Prefix: "sluice:"}
	for _, c := range [][2]string{
		{k.Bucket("a", "b", "", "user-1:x:rpm:user-2"), k.Bucket("a:b:user-1:x", "rpm", "", "user-2")},
		{k.Config("a", "user-1"), k.Configs("a:user-1")},
		{k.Config("a", "user-1:user-2"), k.Config("a:user-1", "user-2")},
	} {
		if c[0] == c[1] {
			t.Errorf("%s is the key of two", c[0])
		}
		if plain := strings.NewReplacer(colon, ":"); plain.Replace(c[0]) != plain.Replace(c[1]) {
			t.Errorf("%s and %s differ by more than the colon: this test tests nothing", c[0], c[1])
		}
	}
	if key := k.Bucket("a:b", "rpm", "", "user-1"); strings.HasPrefix(key, k.Buckets("a")) {
		t.Errorf("%s is among the buckets of a", key)
	}
}
