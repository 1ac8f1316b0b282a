package invariant_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// world is a table and the time that all have who are at work on it. On the engine in the process it is a
// bubble of testing/synctest: hours pass at once. On DynamoDB Local, which has the machine's time, callers
// are put ahead of it.
type world struct {
	client  *dynamodb.Client
	streams *dynamodbstreams.Client
	table   string
	arn     string            // of its stream
	engine  *memdynamo.Engine // nil on DynamoDB Local
	ahead   atomic.Int64      // of the machine's clock, on DynamoDB Local

	expired sums // tc of the buckets that are gone
	left    int
}

// inWorld runs f in a new world.
func inWorld(t *testing.T, seed uint64, f func(testing.TB, *world)) {
	t.Helper()
	if dynamotest.OnLocal(t) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { f(t, newWorldOnLocal(t)) })
		return
	}
	synctest.Test(t, func(t *testing.T) {
		engine := memdynamo.New(memdynamo.WithSeed(seed))
		w := &world{client: engine.Client(), streams: engine.Streams(), table: "limits", engine: engine,
			expired: sums{}}
		if _, err := operator.CreateTable(t.Context(), w.client, w.table); err != nil {
			t.Fatal(err)
		}
		w.findStream(t)
		time.Sleep(22*time.Hour + 50*time.Minute) //nolint:forbidigo // no time at all; a day ends soon
		f(t, w)
	})
}

// newWorldOnLocal returns a world on a DynamoDB Local of its own, since its stream gets many records.
func newWorldOnLocal(t *testing.T) *world {
	t.Helper()
	client := dynamotest.NewLocal(t)
	of := client.Options()
	w := &world{client: client, expired: sums{}, streams: dynamodbstreams.New(dynamodbstreams.Options{
		BaseEndpoint: of.BaseEndpoint, Region: of.Region, Credentials: of.Credentials, HTTPClient: of.HTTPClient,
	})}
	w.table = dynamotest.Table(t, client, operator.Table)
	w.findStream(t)
	return w
}

func (w *world) findStream(t testing.TB) {
	t.Helper()
	out, err := w.client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &w.table})
	if err != nil {
		t.Fatal(err)
	}
	w.arn = aws.ToString(out.Table.LatestStreamArn)
}

// Now implements runtime.Clock.
func (w *world) Now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

// After implements runtime.Clock.
func (w *world) After(d time.Duration) <-chan time.Time { return time.After(d) }

// hour returns the hour in which the stream dates what is written now; on DynamoDB Local a run may see it
// end, and all hours are one.
func (w *world) hour() time.Time {
	if w.engine == nil {
		return time.Time{}
	}
	return w.Now().UTC().Truncate(time.Hour)
}

// pass lets time pass while nobody acquires. Buckets that were idle for long are deleted, as DynamoDB does
// after 8 days: what they consumed is noted. So long a pause would also trim the stream, so the buckets are
// deleted here.
func (w *world) pass(t testing.TB, d time.Duration) {
	t.Helper()
	before := w.buckets(t)
	if w.engine != nil {
		time.Sleep(d) //nolint:forbidigo // in a bubble
	} else {
		w.ahead.Add(int64(d))
	}
	for at := range before {
		w.expire(t, at)
	}
	after := w.buckets(t)
	for at, consumed := range before {
		if after[at] == nil {
			maps.Copy(w.expired, w.expired.plus(consumed))
			w.left++
		}
	}
}

// bucketKey names a bucket.
type bucketKey struct{ entity, resource string }

// kept is how long an idle bucket is kept, longIdle is when it goes here.
const kept, longIdle = 8 * 24 * time.Hour, 2 * time.Minute

// expire deletes a bucket that has been idle for long.
func (w *world) expire(t testing.TB, at bucketKey) {
	t.Helper()
	_, err := w.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: &w.table, Key: codec.Item{"PK": codec.S("ENTITY#" + at.entity),
			"SK": codec.S("#BUCKET#" + at.resource)},
		ConditionExpression: aws.String("#ttl < :now"), ExpressionAttributeNames: map[string]string{"#ttl": "ttl"},
		ExpressionAttributeValues: codec.Item{
			":now": codec.N(w.Now().Add(kept - longIdle).Unix()),
		},
	})
	if err != nil && !strings.Contains(err.Error(), "ConditionalCheckFailed") {
		t.Fatal(err)
	}
}

// buckets returns what the buckets in the table say that they consumed.
func (w *world) buckets(t testing.TB) map[bucketKey]sums {
	t.Helper()
	all := map[bucketKey]sums{}
	var start codec.Item
	for {
		out, err := w.client.Scan(t.Context(), &dynamodb.ScanInput{
			TableName: &w.table, ExclusiveStartKey: start, ConsistentRead: aws.Bool(true),
			FilterExpression:          aws.String("begins_with(SK, :bucket)"),
			ExpressionAttributeValues: codec.Item{":bucket": codec.S("#BUCKET#")},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range out.Items {
			at := bucketKey{text(item["entity_id"]), text(item["resource"])}
			all[at] = sums{}
			for name, v := range item {
				if limit, ok := consumption(name); ok {
					all[at][place{entity: at.entity, resource: at.resource, limit: limit}] = number(t,
						v.(*types.AttributeValueMemberN).Value)
				}
			}
		}
		if start = out.LastEvaluatedKey; start == nil {
			return all
		}
	}
}

// has reports whether a bucket is in the table.
func (w *world) has(ctx context.Context, t testing.TB, at bucketKey) bool {
	t.Helper()
	img, err := operator.Inspect(ctx, w.client, w.table, at.entity, at.resource)
	if err != nil {
		t.Fatal(err)
	}
	return img != nil
}

// consumption returns the limit of which an attribute is the total consumed, if it is one.
func consumption(attribute string) (limit string, ok bool) {
	limit, ok = strings.CutPrefix(attribute, "b_")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(limit, "_tc")
}

func text(v types.AttributeValue) string {
	s, _ := v.(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

func number(t testing.TB, s string) (n int64) {
	t.Helper()
	if _, err := fmt.Sscan(s, &n); err != nil {
		t.Fatal(err)
	}
	return n
}
