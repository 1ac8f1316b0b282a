package poll_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/google/go-cmp/cmp"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/usage"
	"github.com/sluice-go/sluice/runtime/usage/poll"
)

// world is a table with its stream, and who polls it.
type world struct {
	*testing.T

	engine  *memdynamo.Engine // nil for that of all tests
	client  *dynamodb.Client
	streams *dynamodbstreams.Client
	table   string
	idle    time.Duration

	mu     sync.Mutex
	log    bytes.Buffer
	last   poll.Progress
	poison []string
	sink   func() error // nil: it takes everything
}

// newWorld makes one in an engine of its own, which a bubble's clock rules.
func newWorld(t *testing.T) *world {
	t.Helper()
	engine := memdynamo.New()
	w := &world{T: t, engine: engine, client: engine.Client(), streams: engine.Streams()}
	w.table = dynamotest.Table(t, w.client, operator.Table)
	return w
}

// sharedWorld makes one in the engine that the run is for.
func sharedWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, client: dynamotest.Client(t)}
	o := w.client.Options()
	w.streams = dynamodbstreams.New(dynamodbstreams.Options{
		Region: o.Region, Credentials: o.Credentials, BaseEndpoint: o.BaseEndpoint, HTTPClient: o.HTTPClient,
	})
	w.table = dynamotest.Table(t, w.client, operator.Table)
	return w
}

// tap returns one of w's clients.
func (w *world) tap() *tap { return &tap{table: w.client, streams: w.streams} }

// poller returns one that calls p.
func (w *world) poller(p *tap) *poll.Poller {
	w.Helper()
	aggregator, err := usage.New(usage.Config{Client: p, Table: w.table, Extract: limits.ExtractDeltas,
		Poisoned: func(_ context.Context, p usage.Poison) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.sink != nil {
				if err := w.sink(); err != nil {
					return err
				}
			}
			w.poison = append(w.poison, p.Err.Error())
			return nil
		}})
	if err != nil {
		w.Fatal(err)
	}
	poller, err := poll.New(poll.Config{
		Client: p, Streams: p, Table: w.table, Aggregator: aggregator, Idle: w.idle,
		Logger: slog.New(slog.NewTextHandler(writer(func(b []byte) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.log.Write(b)
		}), nil)),
		Report: func(p poll.Progress) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.last = p
		},
	})
	if err != nil {
		w.Fatal(err)
	}
	return poller
}

type writer func([]byte)

func (f writer) Write(b []byte) (int, error) { f(b); return len(b), nil }

// progress returns what was reported last.
func (w *world) progress() poll.Progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// logged returns what was logged since the last call.
func (w *world) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.log.Reset()
	return w.log.String()
}

// drain has a new Poller count all that there is.
func (w *world) drain(p *tap) {
	w.Helper()
	if err := w.poller(p).Drain(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// run has a Poller run until the function returned is called, which returns what Run does.
func (w *world) run(p *tap) (stop func() error) {
	ctx, cancel := context.WithCancel(w.Context())
	result := make(chan error, 1)
	go func() { result <- w.poller(p).Run(ctx) }()
	return func() error {
		cancel()
		return <-result
	}
}

// consume has user-n take millitokens of rpm.
func (w *world) consume(n, milli int) {
	w.Helper()
	if _, err := w.client.UpdateItem(w.Context(), &dynamodb.UpdateItemInput{
		TableName: &w.table,
		Key: map[string]types.AttributeValue{
			"PK": &types.AttributeValueMemberS{Value: fmt.Sprint("ENTITY#user-", n)},
			"SK": &types.AttributeValueMemberS{Value: "#BUCKET#gpt-4"},
		},
		UpdateExpression: aws.String("SET entity_id = :id ADD b_rpm_tc :n"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":id": &types.AttributeValueMemberS{Value: fmt.Sprint("user-", n)},
			":n":  &types.AttributeValueMemberN{Value: strconv.Itoa(milli)},
		},
	}); err != nil {
		w.Fatal(err)
	}
}

// split splits every shard.
func (w *world) split() {
	w.Helper()
	if err := w.engine.SplitShards(w.table); err != nil {
		w.Fatal(err)
	}
}

// stream switches the stream on or off.
func (w *world) stream(on bool, view types.StreamViewType) {
	w.Helper()
	if _, err := w.client.UpdateTable(w.Context(), &dynamodb.UpdateTableInput{
		TableName: &w.table, StreamSpecification: &types.StreamSpecification{StreamEnabled: &on,
			StreamViewType: view},
	}); err != nil {
		w.Fatal(err)
	}
}

// items returns all of the table.
func (w *world) items() (items []map[string]types.AttributeValue) {
	w.Helper()
	pages := dynamodb.NewScanPaginator(w.client, &dynamodb.ScanInput{TableName: &w.table,
		ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.WithoutCancel(w.Context()))
		if err != nil {
			w.Fatal(err)
		}
		items = append(items, page.Items...)
	}
	return items
}

func text(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberBOOL:
		return strconv.FormatBool(v.Value)
	}
	return ""
}

// totals are millitokens by entity: what the buckets say was consumed, and what the windows of hours and of
// days add up to.
type totals struct{ consumed, hours, days map[string]int }

// totals adds up what the table has.
func (w *world) totals() totals {
	w.Helper()
	sums := totals{map[string]int{}, map[string]int{}, map[string]int{}}
	add := func(to map[string]int, entity string, n types.AttributeValue) {
		milli, err := strconv.Atoi(text(n))
		if err != nil {
			w.Fatalf("%s: %v", entity, err)
		}
		to[entity] += milli
	}
	for _, item := range w.items() {
		entity := text(item["entity_id"])
		switch sort := text(item["SK"]); {
		case sort == "#BUCKET#gpt-4":
			add(sums.consumed, entity, item["b_rpm_tc"])
		case strings.Contains(sort, "#hour#"):
			add(sums.hours, entity, item["u_rpm"])
		case strings.Contains(sort, "#day#"):
			add(sums.days, entity, item["u_rpm"])
		}
	}
	if len(sums.consumed) == 0 {
		w.Fatal("nothing was consumed")
	}
	return sums
}

// wrong returns how the windows differ from what was consumed.
func (s totals) wrong() string {
	var diffs []string
	for span, got := range map[string]map[string]int{"hours": s.hours, "days": s.days} {
		maps.DeleteFunc(got, func(_ string, n int) bool { return n == 0 })
		if diff := cmp.Diff(s.consumed, got); diff != "" {
			diffs = append(diffs, fmt.Sprintf("%s (-consumed +counted):\n%s", span, diff))
		}
	}
	return strings.Join(diffs, "\n")
}

// lose reports that some window, of hours or of days, has less than was consumed, and that none has more.
func (s totals) lose() (less bool) {
	for _, got := range []map[string]int{s.hours, s.days} {
		for entity, n := range got {
			if n > s.consumed[entity] {
				return false
			}
		}
		for entity, n := range s.consumed {
			less = less || got[entity] < n
		}
	}
	return less
}

// exact fails the test where the windows are.
func (w *world) exact() {
	w.Helper()
	if diff := w.totals().wrong(); diff != "" {
		w.Error(diff)
	}
}

// checkpoints returns those of the table, by shard.
func (w *world) checkpoints() map[string]map[string]types.AttributeValue {
	found := map[string]map[string]types.AttributeValue{}
	for _, item := range w.items() {
		if shard, is := strings.CutPrefix(text(item["SK"]), "#CHECKPOINT#"); is {
			found[shard] = item
		}
	}
	return found
}

// later lets time pass in a bubble.
func later(d time.Duration) { <-time.After(d) }
