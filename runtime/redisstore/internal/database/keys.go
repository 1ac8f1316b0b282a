package database

import (
	"strings"

	"github.com/sluice-go/sluice/runtime/redisstore/internal/text"
	"github.com/sluice-go/sluice/runtime/store"
)

// Keys builds the store's keys. Limits have no ':' and no '#', resources no '#' and no '%', ids no '#', and
// kinds no '{'. A ':' of a resource is %3A, so no two buckets share a key. A '{' of a template's name is %7B:
// it would begin the hash tag.
//
//	sluice:gpt-4:rpm:user-123                a bucket's limit
//	sluice:claude-v2%3A1:rpm:user-123        one of resource claude-v2:1
//	sluice:model/gpt-5:rpm:user-123          one of the name gpt-5 of the template model
//	sluice:model:month:user-123              one of all its names
//	sluice:gpt-4:rpm:{project-p1}#user-123   the first where the client spreads keys over nodes: the chain's
//	                                         root is the hash tag, so a call's keys share one slot
//	sluice:#config:gpt-4:user-123            the override for an entity or a kind
//	sluice:#config:gpt-4                     the set of entities and kinds that ever had an override
//	sluice:#plans:gpt-4                      the numbers of all plans, as changed at run time
//	sluice:#catalog:model                    the names of a template
//	sluice:#entity:user-123                  an entity: its parent, and its plan
//	sluice:#audit:#entity:user-123           the records of its changes; of key #x they are at #audit:#x, and
//	                                         where the client spreads keys, at #audit:{tag of x}#x. Each name
//	                                         of #catalog:model has its own: #audit:#catalog:model:gpt-5
//	sluice:#audits:user-123                  the set of those of an entity, or of a kind; of #plans:gpt-4 and
//	                                         #catalog:model too
//	sluice:#children:project-p1              the set of entities that ever had this parent
//	sluice:#grant:gpt-4:user-123#inv-7       what the grant of that id has added to the bucket, whose hash tag
//	                                         it has
type Keys struct {
	Prefix   string
	HashTags bool // keys of buckets have the chain's root as hash tag
}

// Bucket returns the key of one limit of entity's bucket, of a call whose chain ends with root.
func (k Keys) Bucket(resource, limit, root, entity string) string {
	if !k.HashTags {
		return k.Buckets(resource) + limit + ":" + entity
	}
	return k.Buckets(resource) + limit + ":{" + root + "}#" + entity
}

// BucketKeys returns the keys of a bucket's limits.
func (k Keys) BucketKeys(resource, root, entity string, limits []string) []string {
	all := make([]string, len(limits))
	for i, limit := range limits {
		all[i] = k.Bucket(resource, limit, root, entity)
	}
	return all
}

// Root returns what the keys of buckets have of a chain's root: "" if nothing.
func (k Keys) Root(root string) string {
	if !k.HashTags {
		return ""
	}
	return root
}

// Buckets returns the start of the keys of resource's buckets.
func (k Keys) Buckets(resource string) string { return k.Prefix + escaped(resource) + ":" }

// These stand for ':' and '{' in the name of a resource.
const (
	colon = "%3A"
	brace = "%7B"
)

// escaped returns the name of a resource as keys have it.
func escaped(resource string) string {
	return strings.ReplaceAll(strings.ReplaceAll(resource, ":", colon), "{", brace)
}

// unescaped is the reverse of escaped.
func unescaped(resource string) string {
	return strings.ReplaceAll(strings.ReplaceAll(resource, colon, ":"), brace, "{")
}

// Parse splits the key of a bucket. For a key without a hash tag, root is the entity itself.
func (k Keys) Parse(key string) (resource, limit, root, entity string, ok bool) {
	rest, ours := strings.CutPrefix(key, k.Prefix)
	resource, rest, a := strings.Cut(rest, ":")
	limit, rest, b := strings.Cut(rest, ":")
	ok = ours && a && b && !strings.Contains(resource, "#") // keys that are not buckets start with it
	resource = unescaped(resource)
	tag, entity, tagged := strings.Cut(rest, "#")
	if !k.HashTags {
		return resource, limit, tag, tag, ok && !tagged
	}
	root, opens := strings.CutPrefix(tag, "{")
	root, closes := strings.CutSuffix(root, "}")
	return resource, limit, root, entity, ok && tagged && opens && closes
}

// ParseConfig splits the key of an override. at is empty for the key of a resource's set, and resource for
// another key.
func (k Keys) ParseConfig(key string) (resource, at string) {
	rest, ours := strings.CutPrefix(key, k.Configs(""))
	if !ours {
		return "", ""
	}
	resource, at, _ = strings.Cut(rest, ":")
	return unescaped(resource), at
}

// Config returns the key of the override at an entity or a kind. At pro.key, it is that of all plans.
func (k Keys) Config(resource, at string) string {
	if _, _, ofPlan := store.SplitPlanAt(at); ofPlan {
		return k.Plans(resource)
	}
	return k.Configs(resource) + ":" + at
}

// Plans returns the key of the numbers of all plans.
func (k Keys) Plans(resource string) string { return k.Prefix + "#plans:" + escaped(resource) }

// Catalog returns the key of the names of a template.
func (k Keys) Catalog(template string) string { return k.Prefix + "#catalog:" + escaped(template) }

// Configs returns the key of the set of entities and kinds that ever had an override.
func (k Keys) Configs(resource string) string { return k.Prefix + "#config:" + escaped(resource) }

// Entity returns the key of an entity.
func (k Keys) Entity(id string) string { return k.Prefix + "#entity:" + id }

// Grant returns the key of a grant to a bucket. An id has no '#'.
func (k Keys) Grant(resource, root, entity, id string) string {
	key := k.grants() + escaped(resource) + ":"
	if k.HashTags {
		key += "{" + root + "}#"
	}
	return key + entity + "#" + id
}

// grants returns the start of the keys of grants.
func (k Keys) grants() string { return k.Prefix + "#grant:" }

// IsGrant reports whether key is of a grant to entity.
func (k Keys) IsGrant(key, entity string) bool {
	rest, ours := strings.CutPrefix(key, k.grants())
	_, rest, ok := strings.Cut(rest, ":") // the resource
	at := strings.LastIndexByte(rest, '#')
	if !ours || !ok || at < 0 {
		return false
	}
	rest = rest[:at] // without the id
	if k.HashTags {
		_, rest, ok = strings.Cut(rest, "}#")
	}
	return ok && rest == entity
}

// Owner returns the key of the owner of the prefix.
func (k Keys) Owner() string { return k.Prefix + "#owner" }

// Audit returns the key of the records of changes of what is stored at key. ok is false if nothing can be
// stored with key under such a name.
func (k Keys) Audit(key string) (list string, ok bool) {
	list = k.audit()
	if k.HashTags {
		list += "{" + text.Tag(key) + "}"
	}
	list += strings.TrimPrefix(key, k.Prefix)
	return list, !k.HashTags || text.Tag(list) == text.Tag(key)
}

func (k Keys) audit() string { return k.Prefix + "#audit:" }

// Audits returns the key of the set of keys that Audit has returned for what is audited.
func (k Keys) Audits(of store.Audited) string {
	set := k.Prefix + "#audits:"
	switch {
	case of.Plans != "":
		return set + "#plans:" + escaped(of.Plans)
	case of.Catalog != "":
		return set + "#catalog:" + escaped(of.Catalog)
	}
	return set + of.Entity + of.Kind
}

// IsAudit reports whether key is of records of changes of an entity, or of their set.
func (k Keys) IsAudit(key, entity string) bool {
	if key == k.Audits(store.Audited{Entity: entity}) {
		return true
	}
	rest, ours := strings.CutPrefix(key, k.audit())
	if k.HashTags {
		_, rest, _ = strings.Cut(rest, "}")
	}
	of := k.Prefix + rest
	_, at := k.ParseConfig(of)
	return ours && (of == k.Entity(entity) || at == entity)
}

// Children returns the key of the set of entities that ever had this parent.
func (k Keys) Children(id string) string { return k.Prefix + "#children:" + id }
