package redisstore

import "strings"

// keys is how the store's keys are made. Resources and limits have no ':' and no '#', ids no '#', and kinds no '{', so that no two
// buckets share a key.
//
//	sluice:gpt-4:rpm:user-123                a bucket's limit
//	sluice:gpt-4:rpm:{project-p1}#user-123   the same where the client spreads keys over nodes: a call's keys have the chain's root
//	                                         for a hash tag, and so one slot
//	sluice:#config:gpt-4:user-123            what is overridden for an entity or a kind
//	sluice:#config:gpt-4                     for whom anything ever was
//	sluice:#entity:user-123                  who its parent is
//	sluice:#children:project-p1              whose parent it ever was
type keys struct {
	prefix string
	rooted bool // keys of buckets have the chain's root
}

// bucket returns the key of one limit of entity's bucket, of a call whose chain ends with root.
func (k keys) bucket(resource, limit, root, entity string) string {
	if !k.rooted {
		return k.buckets(resource) + limit + ":" + entity
	}
	return k.buckets(resource) + limit + ":{" + root + "}#" + entity
}

// buckets returns what the keys of resource's buckets start with.
func (k keys) buckets(resource string) string { return k.prefix + resource + ":" }

// parse takes the key of a bucket apart. Keys without a root have the entity itself for one.
func (k keys) parse(key string) (resource, limit, root, entity string, ok bool) {
	rest, ours := strings.CutPrefix(key, k.prefix)
	resource, rest, a := strings.Cut(rest, ":")
	limit, rest, b := strings.Cut(rest, ":")
	ok = ours && a && b && !strings.Contains(resource, "#") // which what is no bucket starts with
	tag, entity, tagged := strings.Cut(rest, "#")
	if !k.rooted {
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
