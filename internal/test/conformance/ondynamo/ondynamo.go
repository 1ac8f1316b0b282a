// Package ondynamo has what the conformance suite needs of DynamoDB: a table, a clock that a test moves, and
// a way to the table that a test breaks. It is for stores on any client:
//
//	conformance.Run(t, func(t testing.TB) conformance.Store {
//		table := ondynamo.New(t)
//		return table.Store(t, dynamo.New(table.Breakable(), table.Name))
//	})
package ondynamo

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
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
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// Table is a table of an engine of its own, or of DynamoDB Local. It is the clock of those who use it, a
// store.Clock, and of the dates of replies.
type Table struct {
	Client *dynamodb.Client // which nothing breaks
	Name   string

	local bool // DynamoDB Local, which has a clock of its own
	now   atomic.Int64
	down  *switched
}

// New returns a table that lives as long as the test.
func New(t testing.TB) *Table {
	t.Helper()
	e := &Table{local: dynamotest.OnLocal(t)}
	e.now.Store(1_800_000_000_000) // years ahead, so that no ttl has passed for DynamoDB Local
	if e.Client = memdynamo.New(memdynamo.WithClock(e)).Client(); e.local {
		e.Client = storetest.Dated(dynamotest.Local(t), e)
	}
	e.down = &switched{HTTPClient: e.Client.Options().HTTPClient}
	e.Name = dynamotest.Table(t, e.Client, dynamotest.Streamless(operator.Table))
	if _, err := operator.CreateTable(t.Context(), e.Client, e.Name); err != nil { // its TTL
		t.Fatal(err)
	}
	return e
}

// Breakable returns the options of clients that Store can break. They do not retry, since the retries of
// Check take time.
func (e *Table) Breakable() dynamodb.Options {
	o := e.Client.Options()
	o.HTTPClient, o.Retryer = e.down, aws.NopRetryer{}
	return o
}

// Waiter is a store that can wait for its work in the background.
type Waiter interface {
	store.Store
	Wait(ctx context.Context) error
}

// Store returns s, a store on the table, as the suite takes one.
func (e *Table) Store(t testing.TB, s Waiter) conformance.Store {
	t.Helper()
	t.Cleanup(func() {
		if err := s.Wait(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return conformance.Store{
		Store: s, Clock: e, Host: e, Advance: func(d time.Duration) {
			e.advance(t, d)
		}, Decided: e.now.Load,
		Available: func(b bucket.Balance, refilled int64) int64 {
			return bucket.Available(b, refilled, e.now.Load())
		},
		KeepIdle: 8 * 24 * time.Hour, Remembers: true, Usage: true, KeepsNumbers: true, Server: e.local,
		Buckets: func() int { return e.buckets(t) },
		Break:   func() { e.down.on.Store(true) }, Repair: func() { e.down.on.Store(false) },
	}
}

// buckets returns how many buckets the table has.
func (e *Table) buckets(t testing.TB) (n int) {
	t.Helper()
	pages := dynamodb.NewScanPaginator(e.Client, &dynamodb.ScanInput{TableName: &e.Name})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatalf("count buckets: %v", err)
		}
		for _, stored := range page.Items {
			if key, ok := stored["SK"].(*types.AttributeValueMemberS); ok && strings.HasPrefix(key.Value, "#BUCKET#") {
				n++
			}
		}
	}
	return n
}

// Now implements store.Clock.
func (e *Table) Now() time.Time { return time.UnixMilli(e.now.Load()) }

// After implements store.Clock. A pause takes no time.
func (e *Table) After(time.Duration) <-chan time.Time {
	over := make(chan time.Time)
	close(over)
	return over
}

// advance lets d pass. The engine in the process deletes what is past its ttl; what DynamoDB Local would
// delete much later is deleted here.
func (e *Table) advance(t testing.TB, d time.Duration) {
	t.Helper()
	now := e.now.Add(d.Milliseconds())
	if !e.local {
		return
	}
	pages := dynamodb.NewScanPaginator(e.Client, &dynamodb.ScanInput{
		TableName: &e.Name, FilterExpression: aws.String("#ttl < :now"),
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
			if _, err := e.Client.DeleteItem(context.WithoutCancel(t.Context()),
				&dynamodb.DeleteItemInput{TableName: &e.Name, Key: key}); err != nil {
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
