package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// crowded puts buckets of users and of a project, and returns their entities in the order of the index.
func (e *engine) crowded(t testing.TB, users int) (entities []string) {
	t.Helper()
	add := func(entity string) {
		b := limits.GPT4Bucket{
			Entity: entity, Refilled: t0, Op: "op", TTL: t0/1000 + 120,
			RPM: bucket.Balance{Limit: bucket.Per(100, time.Minute), Tokens: int64(len(entities)) * 1000},
			TPM: bucket.Balance{Limit: bucket.Per(10_000, time.Minute).WithBurst(15_000), Tokens: -1000},
		}
		e.put(t, b.MarshalItem())
		entities = append(entities, entity)
	}
	add("project-7")
	for i := range users {
		add(fmt.Sprintf("user-%03d", i))
	}
	other := limits.EmbeddingsBucket{Entity: "project-7"}
	e.put(t, other.MarshalItem())
	return entities
}

// listed is what a list came to.
type listed struct {
	entities  []string
	malformed []error
	others    int
	units     float64
}

// all reads a list to its end.
func (e *engine) all(t testing.TB, api wire.API, kind string) (got listed) {
	t.Helper()
	for page, err := range operator.BucketsWith(t.Context(), api, e.retrier(), "gpt-4", kind) {
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Buckets) > wire.MaxBatchGet {
			t.Errorf("a page of %d buckets", len(page.Buckets))
		}
		for _, b := range page.Buckets {
			got.entities = append(got.entities, b.Entity)
		}
		got.malformed = append(got.malformed, page.Malformed...)
		got.others += page.Others
		got.units += page.ReadUnits
	}
	return got
}

// TestBuckets lists what there is, once each and as Inspect reads it, over pages of the index and batches of
// items.
func TestBuckets(t *testing.T) {
	e := newEngine(t)
	want := e.crowded(t, 2*wire.MaxBatchGet+20)
	for _, most := range []int32{1000, wire.MaxBatchGet, 70} {
		if got := e.all(t, &pages{API: e.client, most: most}, ""); !slices.Equal(got.entities, want) ||
			got.malformed != nil ||
			got.others != 0 {
			t.Errorf("in pages of %d: %+v\nwant %q", most, got, want)
		}
	}
	if got := e.all(t, e.client, "user"); !slices.Equal(got.entities, want[1:]) {
		t.Errorf("users: %q\nwant %q", got.entities, want[1:])
	}
	if got := e.all(t, e.client, "use"); got.entities != nil {
		t.Errorf("kind use has %q", got.entities)
	}
	for page, err := range operator.Buckets(t.Context(), e.client, e.table, "gpt-4", "") {
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range page.Buckets {
			inspected, err := operator.Inspect(t.Context(), e.client, e.table, b.Entity, "gpt-4")
			if diff := cmp.Diff(inspected, b.Image); err != nil || diff != "" {
				t.Errorf("%s: %v, inspected (-) and listed (+):\n%s", b.Entity, err, diff)
			}
		}
		break // which ends the list, or the iterator panics
	}
}

// TestBucketsCost: what the doc comment says, of 221 buckets.
func TestBucketsCost(t *testing.T) {
	e := newEngine(t)
	want := e.crowded(t, 2*wire.MaxBatchGet+20)
	got := e.all(t, e.client, "")
	index := got.units - float64(len(want))/2
	if perEntry := index / float64(len(want)); index <= 0 || perEntry > 0.02 {
		t.Errorf(
			"%v units for %d buckets, %v for each entry of the index, want up to 0.02",
			got.units,
			len(want),
			perEntry,
		)
	}
}

// hasty is an API that does something ahead of each batch.
type hasty struct {
	wire.API
	before func()
}

func (h hasty) BatchGetItem(
	ctx context.Context,
	in *dynamodb.BatchGetItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	h.before()
	return h.API.BatchGetItem(ctx, in, opts...)
}

// TestBucketsDeleted: what the index still has and the table has not is left out.
func TestBucketsDeleted(t *testing.T) {
	e := newEngine(t)
	want := e.crowded(t, 2)
	deleted := func() {
		if _, err := e.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &e.table,
			Key: item.BucketKey("user-000", "gpt-4")}); err != nil {
			t.Error(err)
		}
	}
	got := e.all(t, hasty{e.client, deleted}, "")
	if !slices.Equal(got.entities, []string{want[0], want[2]}) || got.malformed != nil || got.others != 0 {
		t.Errorf("%+v", got)
	}
}

// TestBucketsBeside: per-limit items stand under the same key of the index, with the bucket's own sort key or
// another, and are none. One that is malformed does not hide the others.
func TestBucketsBeside(t *testing.T) {
	e := newEngine(t)
	want := e.crowded(t, 2)
	for _, limit := range []string{"rpm", "tpm"} {
		for _, at := range []string{"BUCKET#user-000", "BUCKET#user-000#" + limit, "ITEM#" + limit} {
			e.put(t, codec.Item{
				"PK": codec.S("ENTITY#user-000"), "SK": codec.S("#BUCKET#gpt-4#" + limit + "#" + at),
				"GSI2PK": codec.S("RESOURCE#gpt-4"), "GSI2SK": codec.S(at),
			})
		}
	}
	bad := limits.GPT4Bucket{Entity: "user-999"}
	item := bad.MarshalItem()
	item["rf"] = codec.S("yesterday")
	e.put(t, item)
	got := e.all(t, e.client, "")
	if !slices.Equal(got.entities, want) || got.others != 4 || len(got.malformed) != 1 {
		t.Fatalf("%+v, want %q, 4 others, 1 malformed", got, want)
	}
	wantSetup(t, got.malformed[0], "user-999", "gpt-4", "attribute rf S")
}

// TestBucketsUnprocessed: what DynamoDB leaves over is asked for again, and not for ever.
func TestBucketsUnprocessed(t *testing.T) {
	e, memory := newFaulty(t)
	want := e.crowded(t, wire.MaxBatchGet+20)
	memory.Faults().Unprocessed(0.5)
	if got := e.all(t, e.client, ""); !slices.Equal(got.entities, want) {
		t.Errorf("listed %q\nwant %q", got.entities, want)
	}
	memory.Faults().Unprocessed(1)
	for _, err := range operator.BucketsWith(t.Context(), e.client, e.retrier(), "gpt-4", "") {
		wantErr(t, err, "unavailable table "+e.table+" 10 throttled: "+
			"ProvisionedThroughputExceededException: no key of the batch was read")
	}
}

// TestBucketsWithoutIndex says of a table what CheckTable does.
func TestBucketsWithoutIndex(t *testing.T) {
	e := newEngine(t)
	e.table = dynamotest.Table(t, e.client, func(name string) *dynamodb.CreateTableInput {
		in := operator.Table(name)
		in.GlobalSecondaryIndexes = in.GlobalSecondaryIndexes[:1]
		in.AttributeDefinitions = slices.DeleteFunc(
			in.AttributeDefinitions,
			func(a types.AttributeDefinition) bool {
				return strings.HasPrefix(aws.ToString(a.AttributeName), "GSI2")
			},
		)
		return in
	})
	var got error
	for _, err := range operator.Buckets(t.Context(), e.client, e.table, "gpt-4", "") {
		got = errors.Join(got, err)
	}
	wantSetup(t, got, e.table, "index GSI2", "GSI2PK", "GSI2SK", "is missing", "KEYS_ONLY")
}
