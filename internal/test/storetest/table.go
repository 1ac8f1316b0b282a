package storetest

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// revisionUnit separates the two components of cv. It is bucket.RevisionUnit, spelt a second time on purpose.
const revisionUnit = 100_000_000_000_000

// Table is a table whose items a test reads and writes raw.
type Table struct {
	Client *dynamodb.Client
	Name   string
}

// BucketKey returns the key of an entity's bucket.
func BucketKey(entity, resource string) codec.Item {
	return codec.Item{"PK": codec.S("ENTITY#" + entity), "SK": codec.S("#BUCKET#" + resource)}
}

// Put stores an item.
func (b Table) Put(t testing.TB, item codec.Item) {
	t.Helper()
	in := &dynamodb.PutItemInput{TableName: &b.Name, Item: item}
	if _, err := b.Client.PutItem(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// Get returns an item, nil if there is none.
func (b Table) Get(t testing.TB, key codec.Item) codec.Item {
	t.Helper()
	out, err := b.Client.GetItem(t.Context(),
		&dynamodb.GetItemInput{TableName: &b.Name, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

// Balance returns the tokens and the total consumption of one limit of user-1's bucket, in millitokens.
func (b Table) Balance(t testing.TB, resource, limit string) (tk, tc int64) {
	t.Helper()
	item := b.Get(t, BucketKey("user-1", resource))
	if item == nil {
		t.Fatalf("no bucket of user-1 on %s", resource)
	}
	return Number(item["b_"+limit+"_tk"]), Number(item["b_"+limit+"_tc"])
}

// Held returns an entity's tokens and consumption of embeddings, in whole tokens; 0 without a bucket.
func (b Table) Held(t testing.TB, entity string) (tk, tc int64) {
	t.Helper()
	item := b.Get(t, BucketKey(entity, "embeddings"))
	if item["b_rps_tk"] == nil {
		return 0, 0
	}
	return Number(item["b_rps_tk"]) / bucket.Milli, Number(item["b_rps_tc"]) / bucket.Milli
}

// Holding fails the test unless entities hold what want says: "user-1 3 7" for 3 tokens and 7 consumed.
func (b Table) Holding(t testing.TB, want ...string) {
	t.Helper()
	for _, line := range want {
		entity, _, _ := strings.Cut(line, " ")
		tk, tc := b.Held(t, entity)
		if got := fmt.Sprint(entity, " ", tk, " ", tc); got != line {
			t.Errorf("got %q, want %q", got, line)
		}
	}
}

// Stored fails the test unless the table has the bucket, attribute by attribute. A want without Op accepts
// any op that a write would have.
func (b Table) Stored(t testing.TB, want Row) {
	t.Helper()
	wanted := want.Item(t)
	got := b.Get(t, codec.Item{"PK": wanted["PK"], "SK": wanted["SK"]})
	if got == nil {
		t.Error("the bucket is not there")
		return
	}
	if op, ok := got["op"].(*types.AttributeValueMemberS); want.Op == "" && ok && len(op.Value) == 12 {
		wanted["op"] = op
	}
	Equal(t, wanted, got)
}

// Equal fails the test unless a bucket is as wanted.
func Equal(t testing.TB, wanted, got codec.Item) {
	t.Helper()
	if diff := cmp.Diff(Plain(wanted), Plain(got)); diff != "" {
		t.Errorf("the bucket, - wanted, + stored:\n%s", diff)
	}
}

// Row is a bucket as a table must hold it.
type Row struct {
	Entity, Resource string // user-1 and gpt-4 if empty
	RF               int64  // milliseconds since T0
	CV               int64  // revision
	TTL              int64  // seconds since T0
	Op               string
	Limits           map[string]bucket.Balance
}

// KeepIdle is the ttl of a bucket that was written at T0 and would be full long before that, s.
const KeepIdle = 8 * 24 * 3600

// Item returns the bucket's item. It spells the layout itself and marshals by attributevalue, so that
// marshalers and expressions of the store are compared with code that is not theirs.
func (r Row) Item(t testing.TB) codec.Item {
	t.Helper()
	if r.Entity == "" {
		r.Entity = "user-1"
	}
	if r.Resource == "" {
		r.Resource = "gpt-4"
	}
	plain := map[string]any{
		"PK": "ENTITY#" + r.Entity, "SK": "#BUCKET#" + r.Resource,
		"GSI2PK": "RESOURCE#" + r.Resource, "GSI2SK": "BUCKET#" + r.Entity,
		"entity_id": r.Entity, "resource": r.Resource,
		"rf": T0 + r.RF, "cv": r.CV * revisionUnit, "ttl": T0/1000 + r.TTL, "op": r.Op,
	}
	for name, b := range r.Limits {
		p := "b_" + name + "_"
		plain[p+"tk"], plain[p+"tc"] = b.Tokens, b.Consumed
		plain[p+"cp"], plain[p+"bx"], plain[p+"ra"], plain[p+"rp"] = b.Capacity, b.Burst, b.Refill, b.Period
	}
	item, err := attributevalue.MarshalMap(plain)
	if err != nil {
		t.Fatal(err)
	}
	return item
}

// Plain returns an item as text, types included.
func Plain(item codec.Item) map[string]string {
	text := make(map[string]string, len(item))
	for name, v := range item {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			text[name] = "S " + v.Value
		case *types.AttributeValueMemberN:
			text[name] = "N " + v.Value
		default:
			text[name] = "another type"
		}
	}
	return text
}

// Number returns the value of an attribute of type N. A number beyond 64 bits saturates.
func Number(v types.AttributeValue) int64 {
	n, _ := strconv.ParseInt(v.(*types.AttributeValueMemberN).Value, 10, 64)
	return n
}

// Records reads a stream from its beginning to its present end.
func Records(t testing.TB, client *dynamodbstreams.Client, arn string) iter.Seq[streamtypes.Record] {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	return func(yield func(streamtypes.Record) bool) {
		stream, err := client.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: &arn})
		must(err)
		for _, shard := range stream.StreamDescription.Shards {
			at, err := client.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{
				StreamArn: &arn, ShardId: shard.ShardId, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
			})
			must(err)
			for next := at.ShardIterator; next != nil; {
				page, err := client.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: next})
				must(err)
				for _, r := range page.Records {
					if !yield(r) {
						return
					}
				}
				if next = page.NextShardIterator; len(page.Records) == 0 {
					break
				}
			}
		}
	}
}
