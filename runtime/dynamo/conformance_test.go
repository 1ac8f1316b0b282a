package dynamo_test

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/internal/test/conformance"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// TestConformance runs the suite of all stores.
func TestConformance(t *testing.T) { conform(t, func(c aws.HTTPClient) aws.HTTPClient { return c }) }

// conform runs the suite with a client whose requests go through via.
func conform(t *testing.T, via func(aws.HTTPClient) aws.HTTPClient, opts ...dynamo.Option) {
	t.Helper()
	conformance.Run(t, func(t testing.TB) conformance.Store {
		t.Helper()
		e := newConformant(t)
		store := dynamo.New(dynamodb.New(e.client.Options(), func(o *dynamodb.Options) {
			o.HTTPClient, o.Retryer = via(e.down), aws.NopRetryer{} // the retries of Check, which take time
		}), e.table, opts...)
		t.Cleanup(func() {
			if err := store.Wait(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
		return conformance.Store{
			Store: store, Clock: e, Host: e, Advance: func(d time.Duration) {
				e.advance(t, d)
			}, Decided: e.now.Load,
			Available: func(b bucket.Balance, refilled int64) int64 {
				return bucket.Available(b, refilled, e.now.Load())
			},
			KeepIdle: 8 * 24 * time.Hour, Remembers: true, Server: dynamotest.OnLocal(t),
			Break: func() { e.down.on.Store(true) }, Repair: func() { e.down.on.Store(false) },
		}
	})
}

// conformant is a table, the clock of those who use it, and a way to it that may be broken.
type conformant struct {
	local  bool // DynamoDB Local, which has a clock of its own
	client *dynamodb.Client
	table  string
	now    atomic.Int64
	down   *switched
}

func newConformant(t testing.TB) *conformant {
	t.Helper()
	e := &conformant{local: dynamotest.OnLocal(t)}
	e.now.Store(1_800_000_000_000) // years ahead, so that no ttl has passed for DynamoDB Local
	if e.client = memdynamo.New(memdynamo.WithClock(e)).Client(); e.local {
		e.client = storetest.Dated(dynamotest.Local(t), e)
	}
	e.down = &switched{HTTPClient: e.client.Options().HTTPClient}
	e.table = dynamotest.Table(t, e.client, dynamotest.Streamless(operator.Table))
	if _, err := operator.CreateTable(t.Context(), e.client, e.table); err != nil { // its TTL
		t.Fatal(err)
	}
	return e
}

// Now implements store.Clock.
func (e *conformant) Now() time.Time { return time.UnixMilli(e.now.Load()) }

// After implements store.Clock. A pause takes no time.
func (e *conformant) After(time.Duration) <-chan time.Time {
	over := make(chan time.Time)
	close(over)
	return over
}

// advance lets d pass. The engine in the process deletes what is past its ttl; what DynamoDB Local would
// delete much later is deleted here.
func (e *conformant) advance(t testing.TB, d time.Duration) {
	t.Helper()
	now := e.now.Add(d.Milliseconds())
	if !e.local {
		return
	}
	pages := dynamodb.NewScanPaginator(e.client, &dynamodb.ScanInput{
		TableName: &e.table, FilterExpression: aws.String("#ttl < :now"),
		ProjectionExpression:     aws.String("PK, SK"),
		ExpressionAttributeNames: map[string]string{"#ttl": "ttl"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":now": &types.AttributeValueMemberN{Value: strconv.FormatInt(now/1000, 10)},
		},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.WithoutCancel(t.Context()))
		if err != nil {
			t.Errorf("look for what expires: %v", err)
			return
		}
		for _, key := range page.Items {
			if _, err := e.client.DeleteItem(context.WithoutCancel(t.Context()),
				&dynamodb.DeleteItemInput{TableName: &e.table, Key: key}); err != nil {
				t.Errorf("delete what expired: %v", err)
			}
		}
	}
}

// switched is a connection on which nobody answers while it is on.
type switched struct {
	dynamodb.HTTPClient
	on atomic.Bool
}

// Do implements dynamodb.HTTPClient.
func (s *switched) Do(r *http.Request) (*http.Response, error) {
	if s.on.Load() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return s.HTTPClient.Do(r)
}
