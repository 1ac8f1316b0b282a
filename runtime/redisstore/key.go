package redisstore

import "strings"

// keys builds the store's keys. Resources and limits have no ':' and no '#', ids no '#', and kinds no '{',
// so no two buckets share a key.
//
//	sluice:gpt-4:rpm:user-123                a bucket's limit
//	sluice:gpt-4:rpm:{project-p1}#user-123   the same where the client spreads keys over nodes: the chain's
//	                                         root is the hash tag, so a call's keys share one slot
//	sluice:#config:gpt-4:user-123            the override for an entity or a kind
//	sluice:#config:gpt-4                     the set of entities and kinds that ever had an override
//	sluice:#entity:user-123                  an entity: its parent
//	sluice:#children:project-p1              the set of entities that ever had this parent
type keys struct {
	prefix   string
	hashTags bool // keys of buckets have the chain's root as hash tag
}

// bucket returns the key of one limit of entity's bucket, of a call whose chain ends with root.
func (k keys) bucket(resource, limit, root, entity string) string {
	if !k.hashTags {
		return k.buckets(resource) + limit + ":" + entity
	}
	return k.buckets(resource) + limit + ":{" + root + "}#" + entity
}

// buckets returns the start of the keys of resource's buckets.
func (k keys) buckets(resource string) string { return k.prefix + resource + ":" }

// parse splits the key of a bucket. For a key without a hash tag, root is the entity itself.
func (k keys) parse(key string) (resource, limit, root, entity string, ok bool) {
	rest, ours := strings.CutPrefix(key, k.prefix)
	resource, rest, a := strings.Cut(rest, ":")
	limit, rest, b := strings.Cut(rest, ":")
	ok = ours && a && b && !strings.Contains(resource, "#") // keys that are not buckets start with it
	tag, entity, tagged := strings.Cut(rest, "#")
	if !k.hashTags {
		return resource, limit, tag, tag, ok && !tagged
	}
	root, opens := strings.CutPrefix(tag, "{")
	root, closes := strings.CutSuffix(root, "}")
	return resource, limit, root, entity, ok && tagged && opens && closes
}

func (k keys) config(resource, at string) string { return k.prefix + "#config:" + resource + ":" + at }
func (k keys) configs(resource string) string    { return k.prefix + "#config:" + resource }
func (k keys) entity(id string) string           { return k.prefix + "#entity:" + id }
func (k keys) children(id string) string         { return k.prefix + "#children:" + id }
