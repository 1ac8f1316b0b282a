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

// Bucket is a bucket that is made of per-limit items.
type Bucket struct {
	Entity, Resource string
	Names            []string       // of its limits
	Limits           []bucket.Limit // their numbers, by schema and overrides
	Version          int64          // cv
	Op               string
	Items            []Item // those that it takes over, each Counts; others are dropped limits'
	Now              int64  // ms
}

// Image returns the bucket: refilled by the items' own numbers until now, clamped to the lower burst of then
// and now; a limit without an item is full. What was consumed is carried over.
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

// item returns what there is of the i-th limit, nil for nothing.
func (b *Bucket) item(i int) *Item {
	at := slices.IndexFunc(b.Items, func(item Item) bool { return item.Name == b.Names[i] })
	if at < 0 {
		return nil
	}
	return &b.Items[at]
}

// put returns img as it is stored. m_<limit> is what its tc starts from: a stream's reader takes it off, or
// history would be consumption of today.
func (b *Bucket) put(img *bucket.Image) codec.Item {
	stored := item.BucketIdentity(b.Entity, b.Resource)
	maps.Copy(stored, codec.Item{
		"rf":  codec.N(img.Refilled),
		"cv":  codec.N(img.Version),
		"op":  codec.S(img.Op),
		"ttl": codec.N(img.TTL),
	})
	for i, name := range b.Names {
		p := "b_" + name + "_"
		codec.PutBalance(stored, &img.Balances[i], p+"tk", p+"cp", p+"bx", p+"ra", p+"rp", p+"tc")
		if item := b.item(i); item != nil {
			stored["m_"+name] = codec.N(item.Consumed)
		}
	}
	return stored
}

// Transaction returns what carries the items over: the bucket is put where there is none, and they are marked
// where nobody has written to them since they were read. It goes any number of times under its token, the
// bucket's op, and is applied once.
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

// mark notes that i was taken over, if it is as it was read: nobody has written to it, or marked it.
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

// Query asks for all per-limit items of entity on resource, consistently.
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
