package breaking

import (
	"slices"

	"github.com/sluice-go/sluice/gen/internal/schema"
	"github.com/sluice-go/sluice/gen/internal/words"
)

// onRedisAlone reports whether no bucket is in a table, neither before nor after.
func (c *comparison) onRedisAlone() bool {
	return !slices.Contains(c.old.Stores, schema.StoreDynamoDB) &&
		!slices.Contains(c.new.Stores, schema.StoreDynamoDB)
}

// retagged returns the end of a message about kinds whose buckets get other keys on a Redis cluster, or "".
// Keys there contain the last entity that a call charges. name is a resource, or "" for all.
func (c *comparison) retagged(name string) string {
	if !slices.Contains(c.old.Stores, schema.StoreRedis) || !slices.Contains(c.new.Stores, schema.StoreRedis) {
		return ""
	}
	var whose []string
	for o, n := range c.resources() {
		if name != "" && n.Name != name {
			continue
		}
		for _, was := range o.Charged {
			k := c.old.Kinds[was.Kind]
			is := kind(c.new, k.Name)
			if is != nil && charged(c.new, n, k.Name) != nil && root(c.old, o, k) != root(c.new, n, is) &&
				!slices.Contains(whose, is.GoName) {
				whose = append(whose, is.GoName)
			}
		}
	}
	if len(whose) == 0 {
		return ""
	}
	return "; on a Redis cluster, whose keys have the last entity that a call charges, buckets of " +
		words.List(whose, "and") + " start full"
}

// root returns the name of the last kind that a call on r for kind k charges.
func root(s *schema.Schema, r *schema.Resource, k *schema.Kind) string {
	chain := []string{k.Name}
	if r.Cascade != schema.CascadeNone {
		chain = append(chain, along(s, r, k)...)
	}
	return chain[len(chain)-1]
}
