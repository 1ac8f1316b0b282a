package perlimit

import (
	"maps"
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

// MostItems is how many items of one bucket can be carried over: one transaction holds 100 writes, of which
// one puts the bucket.
const MostItems = 99

// Bucket is a bucket made of per-limit items.
type Bucket struct {
	Entity, Resource string
	Names            []string       // of its limits
	Limits           []bucket.Limit // their numbers, by schema and overrides
	Version          int64          // cv
	Op               string
	Items            []Item // those that it takes over, each Counts; some may be of limits that were removed
	Now              int64  // ms
}

// Image returns the bucket. Each item is refilled by its own numbers until Now, and clamped to the lower of
// its own burst and the burst in force. A limit without an item is full. Consumption is carried over.
func (b *Bucket) Image() *bucket.Image {
	img := &bucket.Image{
		Refilled: b.Now, Version: b.Version, Op: b.Op,
		Balances: bucket.Full(b.Limits), Missing: make([]bool, len(b.Limits)),
	}
	for i := range img.Balances {
		balance := &img.Balances[i]
		if item := b.item(i); item != nil {
			balance.Tokens, balance.Consumed = min(item.At(b.Now), balance.Burst), item.Consumed
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
	stored := item.BucketIdentity(b.Entity, b.Resource)
	maps.Copy(stored, codec.Item{
		"rf":  codec.N(img.Refilled),
		"cv":  codec.N(img.Version),
		"op":  codec.S(img.Op),
		"ttl": codec.N(img.TTL),
	})
	for i, name := range b.Names {
		of := func(field string) string { return item.LimitAttribute(name, field) }
		codec.PutBalance(stored, &img.Balances[i], of("tk"), of("cp"), of("bx"), of("ra"), of("rp"), of("tc"))
		if old := b.item(i); old != nil {
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
