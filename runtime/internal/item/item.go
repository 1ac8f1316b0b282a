// Package item spells the table's layout once: keys, prefixes, indexes, and the attributes of each kind of
// item. It does no I/O. docs/design.md, "Table", has the same as a table.
package item

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/store"
)

// Item is a DynamoDB item, or its key.
type Item = map[string]types.AttributeValue

// Attributes of every item's key, and of its deletion.
const (
	PK  = "PK"
	SK  = "SK"
	TTL = "ttl" // seconds since 1970
)

// EntityPrefix begins the partition key of everything that belongs to one entity.
const EntityPrefix = "ENTITY#"

// BucketPrefix begins the sort key of a bucket. The resource follows. A predecessor's per-limit item has
// "#<limit>" after it.
const BucketPrefix = "#BUCKET#"

// ListedPrefix begins the sort key of a bucket in the index of its resource's buckets. The entity follows.
const ListedPrefix = "BUCKET#"

// ChildPrefix begins the sort key of an entity in the index of its parent's children.
const ChildPrefix = "CHILD#"

// UsagePrefix begins the sort key of a usage window. Resource, span and start follow, or for a window of a
// limit WindowSpan, the limit and the end.
const UsagePrefix = "#USAGE#"

// WindowSpan stands in the sort key of a usage window in place of hour or day, if the window is a limit's
// own. The limit and the window's end follow.
const WindowSpan = "window"

// GrantPrefix begins the sort key of a grant. The resource and the grant's id follow.
const GrantPrefix = "#GRANT#"

// AuditPrefix begins the sort key of the record of a change, below the hash key of what has changed. The
// version that the change gave it, in ms, and an id follow.
const AuditPrefix = "#AUDIT#"

// CheckpointPrefix begins the sort key of a checkpoint: of a stream's shard, or of a segment of a migration.
const CheckpointPrefix = "#CHECKPOINT#"

// SystemKey is the partition key of the table's own items: version, heartbeat and checkpoints.
const SystemKey = "SYSTEM#"

// EntitySK is the sort key of the item that names an entity's parent.
const EntitySK = "#META"

// ConfigPrefix begins the sort key of an override. The resource follows.
const ConfigPrefix = "#CONFIG#"

const kindPrefix = "KIND#"

// plansKey is the partition key of the numbers of plans. A resource has one item for all of them.
const plansKey = "PLANS#"

// PlansListed stands for the numbers of all plans of a resource in the list of its overrides.
const PlansListed = "#PLANS"

// catalogKey begins the partition key of a template's catalog. The template follows.
const catalogKey = "CATALOG#"

// namePrefix begins the sort key of an entry of a catalog. The name follows.
const namePrefix = "#NAME#"

// Beginnings of the hash keys of lists in the indexes.
const (
	bucketList   = "RESOURCE#"
	overrideList = "CONFIG#"
	parentKey    = "PARENT#"
)

// BucketAttributes are the attributes of a bucket besides those of its limits.
var BucketAttributes = [...]string{
	PK, SK, "GSI2PK", "GSI2SK", "entity_id", "resource", "rf", "cv", "op", TTL,
}

// PlanOf is the attribute that a bucket has besides if its resource has plans: the entity whose plan it has.
const PlanOf = "po"

// BucketIdentity returns the attributes of an entity's bucket that follow from its key. The others that
// belong to no limit are rf, cv, op and ttl.
func BucketIdentity(entity, resource string) Item {
	stored := func(value string) types.AttributeValue { return &types.AttributeValueMemberS{Value: value} }
	return Item{
		PK:          stored(EntityPrefix + entity),
		SK:          stored(BucketPrefix + resource),
		"GSI2PK":    stored(BucketList(resource)),
		"GSI2SK":    stored(ListedPrefix + entity),
		"entity_id": stored(entity),
		"resource":  stored(resource),
	}
}

// LimitFields are the attributes of one limit in a bucket: tokens, capacity, burst, refill amount, refill
// period and total consumed. LimitAttribute makes their names. A windowed limit has WindowField besides.
var LimitFields = [...]string{"tk", "cp", "bx", "ra", "rp", "tc"}

// WindowField is the attribute that holds the end of a windowed limit's open window.
const WindowField = "we"

// HoldFields are the attributes that a limit with holds has besides: its two cells, and the lowest epoch that
// they count.
var HoldFields = [...]string{"h0", "h1", "e"}

// EpochField is the last of HoldFields.
const EpochField = "e"

// LimitAttribute returns the name of a limit's attribute in a bucket. field is one of LimitFields,
// WindowField or one of HoldFields.
func LimitAttribute(limit, field string) string { return "b_" + limit + "_" + field }

// LimitOf is the reverse of LimitAttribute: it returns the limit that an attribute with this field is of.
func LimitOf(attribute, field string) (limit string, ok bool) {
	limit, ofLimit := strings.CutPrefix(attribute, "b_")
	limit, isField := strings.CutSuffix(limit, field)
	limit, isWhole := strings.CutSuffix(limit, "_")
	return limit, ofLimit && isField && isWhole
}

// IsLimitName reports whether a limit can have this name: [a-z][a-z0-9_]*. Names stand in expressions as they
// are, so another one would be read as something else: a dot is a path into a map.
func IsLimitName(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	return strings.Trim(name, letters+"0123456789_") == "" && strings.IndexAny(name, letters) == 0
}

// CarriedAttribute returns the name of the attribute that holds what a limit had consumed before its bucket
// was made.
func CarriedAttribute(limit string) string { return "m_" + limit }

// OverrideAttributes returns the attributes of one limit in the config item of a target: capacity, burst,
// refill amount and refill period.
func OverrideAttributes(target, limit string) [4]string {
	p := LimitsPrefix(target) + limit + "_"
	return numbersOf(p)
}

// numbersOf returns the attributes of a limit's numbers, which begin with p: capacity, burst, refill, period.
func numbersOf(p string) [4]string { return [4]string{p + "cp", p + "bx", p + "ra", p + "rp"} }

// RestatedLimit returns the limit whose capacity an attribute of a config item has, and the attributes of its
// numbers. prefix is that of LimitsPrefix. ok is false for any other attribute.
func RestatedLimit(attr, prefix string) (limit string, numbers [4]string, ok bool) {
	limit, capacity := strings.CutSuffix(attr, "_cp")
	limit, ok = strings.CutPrefix(limit, prefix)
	return limit, numbersOf(prefix + limit + "_"), ok && capacity
}

// LimitsPrefix begins the attributes of all limits that a config item has for a target: l_, or l_pro.key. in
// the one item of all plans.
func LimitsPrefix(target string) string {
	if _, _, ofPlan := store.SplitPlanAt(target); ofPlan {
		return "l_" + store.PlanAt(target, "")
	}
	return "l_"
}

// Index is a global secondary index. Its projection is KEYS_ONLY, and no acquire writes its keys: otherwise
// every acquire would cost twice.
type Index struct{ Name, Hash, Sort string }

// Indexes returns the table's two: from parents to children, and from resources to buckets and overrides.
func Indexes() []Index {
	return []Index{{"GSI1", "GSI1PK", "GSI1SK"}, {"GSI2", "GSI2PK", "GSI2SK"}}
}

// BucketList returns the key in GSI2 under which a resource's buckets are listed.
func BucketList(resource string) string { return bucketList + resource }

// OverrideList returns the key in GSI2 under which a resource's overrides are listed.
func OverrideList(resource string) string { return overrideList + resource }

// ParentKey returns the key in GSI1 under which an entity's children are listed.
func ParentKey(entity string) string { return parentKey + entity }

// BucketKey returns the key of an entity's bucket. Generated code has it as constants.
func BucketKey(entity, resource string) Item { return key(EntityPrefix+entity, BucketPrefix+resource) }

// EntityKey returns the key of the item that names an entity's parent.
func EntityKey(entity string) Item { return key(EntityPrefix+entity, EntitySK) }

// OverrideKey returns the key of the config item of a resource for an entity as stored, for a kind, or for a
// kind on a plan. All plans have one item.
func OverrideKey(resource, target string) Item {
	if IsEntity(target) {
		return key(EntityPrefix+target, ConfigPrefix+resource)
	}
	if _, _, ofPlan := store.SplitPlanAt(target); ofPlan {
		return PlansKey(resource)
	}
	return key(kindPrefix+target, ConfigPrefix+resource)
}

// PlansKey returns the key of the config item of all plans of a resource.
func PlansKey(resource string) Item { return key(plansKey, ConfigPrefix+resource) }

// CatalogKey returns the key of a name of a template.
func CatalogKey(template, name string) Item { return key(catalogKey+template, namePrefix+name) }

// EntryAttributes returns the attributes of one limit in an entry of a catalog: at is a kind, or a kind on a
// plan.
func EntryAttributes(at, limit string) [4]string {
	p := "l_" + at + "." + limit + "_"
	return numbersOf(p)
}

// PriceAttribute returns the attribute of an entry that has the price of one of a usage.
func PriceAttribute(usage string) string { return "p_" + usage }

// IsOfEntry reports whether an attribute of an entry of a catalog is a number or a price.
func IsOfEntry(attr string) bool {
	return strings.HasPrefix(attr, "l_") || strings.HasPrefix(attr, "p_")
}

// IsEntity reports whether the target of an override is an entity. No kind contains a '-', and in an entity
// one ends its kind.
func IsEntity(target string) bool { return strings.Contains(target, "-") }

// UsageKey returns the key of a usage window of an entity: span is hour or day, start its text.
func UsageKey(entity, resource, span, start string) Item {
	return key(EntityPrefix+entity, UsagePrefix+strings.Join([]string{resource, span, start}, "#"))
}

// UsageWindowKey returns the key of an entity's usage in a window of a limit. ends is the window's end in ms,
// or 0 for what was consumed before the first window.
func UsageWindowKey(entity, resource, limit string, ends int64) Item {
	return UsageKey(entity, resource, WindowSpan, limit+"#"+strconv.FormatInt(ends, 10))
}

// GrantKey returns the key of the item that has a grant count once.
func GrantKey(entity, resource, id string) Item {
	return key(EntityPrefix+entity, GrantPrefix+resource+"#"+id)
}

// GrantAttribute returns the name of the attribute that holds what a grant has added to a limit.
func GrantAttribute(limit string) string { return "g_" + limit }

// AuditHash returns the hash key of records.
func AuditHash(of store.Audited) string {
	switch {
	case of.Entity != "":
		return EntityPrefix + of.Entity
	case of.Kind != "":
		return kindPrefix + of.Kind
	case of.Plans != "":
		return plansKey
	}
	return catalogKey + of.Catalog
}

// AuditSort begins the sort keys of records of a version in ms. They sort by it.
func AuditSort(version int64) string { return AuditPrefix + fmt.Sprintf("%013d", version) }

// AuditTime returns the version in the sort key of a record, as text.
func AuditTime(sort string) string {
	version, _, _ := strings.Cut(strings.TrimPrefix(sort, AuditPrefix), "#")
	return version
}

// CheckpointKey returns the key of a checkpoint.
func CheckpointKey(name string) Item { return key(SystemKey, CheckpointPrefix+name) }

// VersionKey returns the key of the item that records the table's layout and the highest revision seen.
func VersionKey() Item { return key(SystemKey, "#VERSION") }

// HeartbeatKey returns the key of the heartbeat of regional sync. A table has one for all its resources.
func HeartbeatKey() Item { return key(SystemKey, "#HEARTBEAT") }

// Heartbeat is HeartbeatKey, comparable.
var Heartbeat = Key{SystemKey, "#HEARTBEAT"}

func key(pk, sk string) Item {
	return Item{PK: &types.AttributeValueMemberS{Value: pk}, SK: &types.AttributeValueMemberS{Value: sk}}
}

// Key is an item's primary key, comparable.
type Key struct{ PK, SK string }

// KeyOf returns the primary key of an item, or of a key, within its namespace.
func KeyOf(item Item) Key {
	_, hash := SplitHash(text(item[PK]))
	return Key{hash, text(item[SK])}
}

// Item returns the key as DynamoDB takes it.
func (k Key) Item() Item { return key(k.PK, k.SK) }

// String returns the key as errors name it.
func (k Key) String() string { return store.Quote(k.PK) + " / " + store.Quote(k.SK) }

func text(value types.AttributeValue) string {
	if s, ok := value.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}
