package redisstore

import "strings"

// keys is how the store's keys start: by default sluice:. Resources and limits have no ':' and no '#', ids no '#', so that no two
// buckets share a key.
//
//	sluice:gpt-4:rpm:{project-p1}#user-123   a bucket's limit; all of a call's have the chain's root for a hash tag, and so one slot
//	sluice:#config:gpt-4:user-123            what is overridden for an entity or a kind
//	sluice:#config:gpt-4                     for whom anything ever was
//	sluice:#entity:user-123                  who its parent is
//	sluice:#children:project-p1              whose parent it ever was
type keys string

// bucket returns the key of one limit of entity's bucket, of a call whose chain ends with root.
func (k keys) bucket(resource, limit, root, entity string) string {
	return string(k) + resource + ":" + limit + ":{" + root + "}#" + entity
}

// buckets returns what the keys of resource's buckets start with.
func (k keys) buckets(resource string) string { return string(k) + resource + ":" }

// parse takes the key of a bucket apart.
func (k keys) parse(key string) (resource, limit, root, entity string, ok bool) {
	rest, ours := strings.CutPrefix(key, string(k))
	resource, rest, a := strings.Cut(rest, ":")
	limit, rest, b := strings.Cut(rest, ":")
	tag, entity, c := strings.Cut(rest, "#")
	root, opens := strings.CutPrefix(tag, "{")
	root, closes := strings.CutSuffix(root, "}")
	return resource, limit, root, entity, ours && a && b && c && opens && closes
}

func (k keys) config(resource, at string) string { return string(k) + "#config:" + resource + ":" + at }
func (k keys) configs(resource string) string    { return string(k) + "#config:" + resource }
func (k keys) entity(id string) string           { return string(k) + "#entity:" + id }
func (k keys) children(id string) string         { return string(k) + "#children:" + id }
