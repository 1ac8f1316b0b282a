package redisstore

import "strings"

// keys builds the store's keys. Limits have no ':' and no '#', resources no '#' and no '%', ids no '#', and
// kinds no '{'. A ':' of a resource is %3A, so no two buckets share a key.
//
//	sluice:gpt-4:rpm:user-123                a bucket's limit
//	sluice:claude-v2%3A1:rpm:user-123        one of resource claude-v2:1
//	sluice:gpt-4:rpm:{project-p1}#user-123   the first where the client spreads keys over nodes: the chain's
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

// root returns what the keys of buckets have of a chain's root: "" if nothing.
func (k keys) root(root string) string {
	if !k.hashTags {
		return ""
	}
	return root
}

// buckets returns the start of the keys of resource's buckets.
func (k keys) buckets(resource string) string { return k.prefix + escaped(resource) + ":" }

// colon stands for ':' in the name of a resource.
const colon = "%3A"

// escaped returns the name of a resource as keys have it.
func escaped(resource string) string { return strings.ReplaceAll(resource, ":", colon) }

// parse splits the key of a bucket. For a key without a hash tag, root is the entity itself.
func (k keys) parse(key string) (resource, limit, root, entity string, ok bool) {
	rest, ours := strings.CutPrefix(key, k.prefix)
	resource, rest, a := strings.Cut(rest, ":")
	limit, rest, b := strings.Cut(rest, ":")
	ok = ours && a && b && !strings.Contains(resource, "#") // keys that are not buckets start with it
	resource = strings.ReplaceAll(resource, colon, ":")
	tag, entity, tagged := strings.Cut(rest, "#")
	if !k.hashTags {
		return resource, limit, tag, tag, ok && !tagged
	}
	root, opens := strings.CutPrefix(tag, "{")
	root, closes := strings.CutSuffix(root, "}")
	return resource, limit, root, entity, ok && tagged && opens && closes
}

// parseConfig splits the key of an override. at is empty for the key of a resource's set, and resource for
// another key.
func (k keys) parseConfig(key string) (resource, at string) {
	rest, ours := strings.CutPrefix(key, k.configs(""))
	if !ours {
		return "", ""
	}
	resource, at, _ = strings.Cut(rest, ":")
	return strings.ReplaceAll(resource, colon, ":"), at
}

func (k keys) config(resource, at string) string { return k.configs(resource) + ":" + at }
func (k keys) configs(resource string) string    { return k.prefix + "#config:" + escaped(resource) }
func (k keys) entity(id string) string           { return k.prefix + "#entity:" + id }
func (k keys) owner() string                     { return k.prefix + "#owner" }
func (k keys) children(id string) string         { return k.prefix + "#children:" + id }
