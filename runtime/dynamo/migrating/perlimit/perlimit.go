// Package perlimit knows the predecessor's layout, one item for each limit, and the bucket that such items
// make. Not for import: package migrating and the command import it.
//
//	PK                     SK
//	ENTITY#user-1          #BUCKET#gpt-4#rpm    tokens_milli, capacity_milli, burst_milli, refill_amount_milli,
//	ENTITY#user-1          #BUCKET#gpt-4#tpm    refill_period_ms, total_consumed_milli, last_refill_ms
//	ENTITY#user-1          #BUCKET#gpt-4        the bucket, put in one transaction with their marks
//
// An item counts until it has the mark migrated. The transaction puts the bucket only if there is none, and
// marks the items only if they are as they were read. So each is carried over once, even if others write to
// it. A marked item never counts again, not even after its bucket has expired: that was full.
package perlimit

import (
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/internal/item"
)

// Attributes of per-limit items.
const (
	Tokens   = "tokens_milli"
	Capacity = "capacity_milli"
	Burst    = "burst_milli"
	Refill   = "refill_amount_milli"
	Period   = "refill_period_ms"
	Consumed = "total_consumed_milli" // may be missing: nothing was counted
	Refilled = "last_refill_ms"
	Migrated = "migrated" // the mark: when a bucket took the item over, ms
)

// Item is a per-limit item.
type Item struct {
	Entity, Resource, Name string // Name is the limit's
	bucket.Balance

	Refilled int64 // refill is claimed up to here, ms
	Migrated int64 // when a bucket took it over, ms; 0 while it counts

	raw codec.Item
}

// Counts reports whether no bucket has taken i over yet.
func (i *Item) Counts() bool { return i.Migrated == 0 }

// At returns the tokens of i at now, in ms, by the predecessor's rules: refilled since then, rounded down, at
// most its burst. A clock that was ahead has claimed refill up to a later instant. The bucket refills from
// now, so the refill until that instant is subtracted, rounded up. The result is never more than i allowed.
func (i *Item) At(now int64) int64 {
	tokens := i.Tokens
	if since := bucket.Sub(now, i.Refilled); since >= 0 {
		tokens = bucket.Add(tokens, bucket.Refill(i.Limit, 0, since))
	} else {
		tokens = bucket.Sub(tokens, bucket.Add(bucket.Refill(i.Limit, 0, -since), 1))
	}
	return min(tokens, i.Burst)
}

// Key splits the key of a table's item. ok is false for anything but a per-limit item: a bucket has no limit
// in its key.
func Key(raw codec.Item) (entity, resource, limit string, ok bool) {
	text := func(attr string) string {
		s, _ := raw[attr].(*types.AttributeValueMemberS)
		if s == nil {
			return ""
		}
		return s.Value
	}
	entity, isEntity := strings.CutPrefix(text("PK"), item.EntityPrefix)
	rest, isBucket := strings.CutPrefix(text("SK"), item.BucketPrefix)
	resource, limit, ok = strings.Cut(rest, "#")
	return entity, resource, limit, ok && isEntity && isBucket
}

// Decode reads an item. The error names the attribute that is malformed, or SK for anything but a per-limit
// item.
func Decode(raw codec.Item) (Item, error) {
	entity, resource, limit, ok := Key(raw)
	if !ok {
		return Item{}, &codec.AttributeError{
			Attr: "SK",
			Got:  "not that of a per-limit item",
			Want: item.BucketPrefix + "<resource>#<limit>",
		}
	}
	d := codec.Decoder{Item: raw}
	i := Item{Entity: entity, Resource: resource, Name: limit, Refilled: d.Int(Refilled), raw: raw}
	i.Tokens = d.Int(Tokens)
	i.Capacity, i.Burst = d.Positive(Capacity), d.Positive(Burst)
	i.Refill, i.Period = d.Positive(Refill), d.Positive(Period)
	if raw[Consumed] != nil {
		i.Consumed = d.Int(Consumed)
	}
	if raw[Migrated] != nil {
		i.Migrated = d.Positive(Migrated)
	}
	return i, d.Err()
}

// Scan returns the request for all per-limit items of table, and its buckets. No filter separates the two by
// their keys; Key does.
func Scan(table string) *dynamodb.ScanInput {
	return &dynamodb.ScanInput{
		TableName:        &table,
		FilterExpression: aws.String("begins_with(PK, :entities) AND begins_with(SK, :buckets)"),
		ExpressionAttributeValues: codec.Item{
			":entities": codec.S(item.EntityPrefix), ":buckets": codec.S(item.BucketPrefix),
		},
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
}

// BucketKey returns the key of the bucket that the per-limit items of entity on resource become.
func BucketKey(entity, resource string) codec.Item {
	return item.BucketKey(entity, resource)
}

// MostItems is how many items of one bucket can be carried over: one transaction holds 100 writes, of which
// one puts the bucket.
const MostItems = 99

// Bucket is a bucket made of per-limit items.
type Bucket struct {
	Entity, Resource string
	Names            []string       // of its limits
	Limits           []bucket.Limit // their numbers, by schema and overrides; Absent where the kind has none
	Held             []bool         // by limit: the bucket counts what open leases hold of it; nil if of none
	Version          int64          // cv
	PlanOf           string         // po, not stored if it is ""
	Op               string
	Items            []Item // those that it takes over, each Counts; some may be of limits that it does not have
	Now              int64  // ms
}

// Image returns the bucket. Each item is refilled by its own numbers until Now, and clamped to the lower of
// its own burst and the burst in force. A limit without an item is full, and so is one in flight: no lease
// holds anything of it yet. Consumption is carried over.
func (b *Bucket) Image() *bucket.Image {
	img := &bucket.Image{
		Refilled: b.Now, Version: b.Version, Op: b.Op, PlanOf: b.PlanOf,
		Balances: bucket.Full(b.Limits), Missing: make([]bool, len(b.Limits)),
	}
	for i := range img.Balances {
		balance := &img.Balances[i]
		if item := b.item(i); item != nil && !balance.Absent() {
			balance.Consumed = item.Consumed
			if !balance.InFlight() {
				balance.Tokens = min(item.At(b.Now), balance.Burst)
			}
		}
		if b.Held != nil && b.Held[i] && !balance.Absent() {
			*balance = balance.Apply(bucket.NewHold(0, 0, b.Now))
		}
		img.TTL = max(img.TTL, bucket.Expiry(*balance, b.Now))
	}
	return img
}

// item returns the item of the i-th limit, nil for none.
func (b *Bucket) item(i int) *Item {
	at := slices.IndexFunc(b.Items, func(item Item) bool { return item.Name == b.Names[i] })
	if at < 0 {
		return nil
	}
	return &b.Items[at]
}

// put returns img as it is stored. m_<limit> is the consumption that tc starts from. Readers of the stream
// subtract it: otherwise the history would count as consumption of today.
func (b *Bucket) put(img *bucket.Image) codec.Item {
	marshal := codec.Marshal
	if b.PlanOf != "" {
		marshal = codec.MarshalOnPlan
	}
	stored := marshal(b.Entity, b.Resource, img, b.Names...)
	for i, name := range b.Names {
		if old := b.item(i); old != nil && !img.Balances[i].Absent() {
			stored[item.CarriedAttribute(name)] = codec.N(old.Consumed)
		}
	}
	return stored
}

// Transaction returns the write that carries the items over. It puts the bucket if there is none, and marks
// the items if they are as they were read. Its token is the bucket's op: it may be sent any number of times,
// and is applied once.
func (b *Bucket) Transaction(table string, img *bucket.Image) *dynamodb.TransactWriteItemsInput {
	in := &dynamodb.TransactWriteItemsInput{
		ClientRequestToken:     &b.Op,
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		TransactItems: []types.TransactWriteItem{{Put: &types.Put{
			TableName: &table, Item: b.put(img), ConditionExpression: aws.String("attribute_not_exists(PK)"),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}}},
	}
	for i := range b.Items {
		in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Update: b.Items[i].mark(table, b.Now)})
	}
	return in
}

// mark returns the update that marks i, if it is as it was read, and not marked.
func (i *Item) mark(table string, now int64) *types.Update {
	as := []string{"attribute_not_exists(" + Migrated + ")"}
	values := codec.Item{":now": codec.N(now)}
	for n, attr := range []string{Tokens, Capacity, Burst, Refill, Period, Consumed, Refilled} {
		if i.raw[attr] == nil {
			as = append(as, "attribute_not_exists("+attr+")")
			continue
		}
		was := ":was" + strconv.Itoa(n)
		as = append(as, attr+" = "+was)
		values[was] = i.raw[attr]
	}
	return &types.Update{
		TableName: &table, Key: codec.Item{"PK": i.raw["PK"], "SK": i.raw["SK"]},
		UpdateExpression:          aws.String("SET " + Migrated + " = :now"),
		ConditionExpression:       aws.String(strings.Join(as, " AND ")),
		ExpressionAttributeValues: values,
	}
}

// Query returns the request for all per-limit items of entity on resource, read consistently.
func Query(table, entity, resource string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName:              &table,
		KeyConditionExpression: aws.String("PK = :entity AND begins_with(SK, :limits)"),
		ExpressionAttributeValues: codec.Item{
			":entity": codec.S(item.EntityPrefix + entity), ":limits": codec.S(item.BucketPrefix + resource + "#"),
		},
		ConsistentRead:         aws.Bool(true),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
}
