package differential_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/lean"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// The same histories hold package lean to the SDK's client: each makes them on an engine of its own, which
// answers alike, and their callers have to get the same.

// caller makes the operations of a history, as a program does.
type caller struct {
	dynamo.API
	rest *dynamodb.Client // what dynamo.API does not have
}

// got is what a program gets from a call.
type got struct {
	Output  any // without its metadata
	Types   []string
	Text    string // of the error
	Item    map[string]types.AttributeValue
	Reasons []types.CancellationReason
	Status  int
	ID      string
}

// call makes one operation. Names in messages are sorted, since the engine has them in no order.
func (c caller) call(ctx context.Context, o operation) got {
	out, err := c.send(ctx, o.input)
	var g got
	if err == nil {
		g.Output = out
		reflect.ValueOf(out).Elem().FieldByName("ResultMetadata").SetZero()
		return g
	}
	g.Text = sortNames(err.Error())
	if refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		g.Item = refused.Item
	}
	if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		g.Reasons = cancelled.CancellationReasons
	}
	if replied, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		g.Status, g.ID = replied.HTTPStatusCode(), replied.RequestID
	}
	for ; err != nil; err = errors.Unwrap(err) {
		g.Types = append(g.Types, fmt.Sprintf("%T", err))
	}
	return g
}

func (c caller) send(ctx context.Context, input any) (any, error) {
	switch in := input.(type) {
	case *dynamodb.PutItemInput:
		return c.PutItem(ctx, in)
	case *dynamodb.GetItemInput:
		return c.GetItem(ctx, in)
	case *dynamodb.UpdateItemInput:
		return c.UpdateItem(ctx, in)
	case *dynamodb.DeleteItemInput:
		return c.DeleteItem(ctx, in)
	case *dynamodb.BatchGetItemInput:
		return c.BatchGetItem(ctx, in)
	case *dynamodb.BatchWriteItemInput:
		return c.rest.BatchWriteItem(ctx, in)
	case *dynamodb.TransactWriteItemsInput:
		return c.TransactWriteItems(ctx, in)
	case *dynamodb.QueryInput:
		return c.Query(ctx, in)
	case *dynamodb.ScanInput:
		return c.rest.Scan(ctx, in)
	}
	return nil, fmt.Errorf("no operation takes a %T", input)
}

// callers returns the SDK's client and this module's, each on a new engine with the tables. The latter's
// replies go through after, which may be nil, and spy counts the requests that it makes itself.
func callers(ctx context.Context, t testing.TB, after func(*exchange), ours *int) (sdk, own caller) {
	t.Helper()
	once := func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }
	client := func() *dynamodb.Client {
		c := memdynamo.New().Client(once)
		for _, schema := range schemas {
			if _, err := c.CreateTable(ctx, schema.input(schema.name)); err != nil {
				t.Fatal(err)
			}
		}
		return c
	}
	theirs, second := client(), client()
	made := lean.New(aws.Config{}, func(o *dynamodb.Options) {
		*o = second.Options()
		o.HTTPClient = &spy{&wire{next: o.HTTPClient, after: after}, ours}
	})
	return caller{theirs, theirs}, caller{made, made.Client}
}

// spy counts requests of package lean.
type spy struct {
	dynamodb.HTTPClient
	ours *int
}

// Do implements dynamodb.HTTPClient.
func (s *spy) Do(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.Header.Get("User-Agent"), "sluice-lean") {
		*s.ours++
	}
	return s.HTTPClient.Do(r)
}

// differs returns how the callers' answers to a history first differ, "" if they do not.
func differs(ctx context.Context, h history, sdk, own caller) string {
	for i, o := range h {
		want, have := sdk.call(ctx, o), own.call(ctx, o)
		if !reflect.DeepEqual(want, have) {
			return fmt.Sprintf("operation %d, %v:\nthe SDK's client %s\nlean %s", i, o, textOf(want), textOf(have))
		}
	}
	return ""
}

// TestLean compares the answers to histories of all mixes.
func TestLean(t *testing.T) {
	operations, ours := 0, 0
	for _, m := range mixes {
		for seed := range longform.Histories(t, "histories of "+m.name, 100, 8) {
			h := m.histories().Example(seed)
			sdk, own := callers(t.Context(), t, nil, &ours)
			if diff := differs(t.Context(), h, sdk, own); diff != "" {
				t.Fatalf("%s, seed %d, %s", m.name, seed, diff)
			}
			operations += len(h)
		}
	}
	t.Logf("%d operations, %d by package lean", operations, ours)
	if ours < operations/3 {
		t.Errorf("of %d operations package lean made %d", operations, ours)
	}
}

// TestLeanControl: the comparison finds another attribute, another error, and another capacity.
func TestLeanControl(t *testing.T) {
	ours := 0
	replace := func(from, to string) func(*exchange) {
		return func(x *exchange) { x.reply = bytes.Replace(x.reply, []byte(from), []byte(to), 1) }
	}
	for name, after := range map[string]func(*exchange){
		"an item is gone":    replace(`"Item":`, `"Gone":`),
		"a number":           replace(`{"N":"1"}`, `{"N":"2"}`),
		"a kind":             replace(`{"N":`, `{"S":`),
		"the units":          replace(`Units":1`, `Units":7`),
		"the code":           replace(`#Validation`, `#Other`),
		"the reply's status": func(x *exchange) { x.status = map[int]int{200: 201, 400: 409}[x.status] },
	} {
		t.Run(name, func(t *testing.T) {
			for _, m := range mixes {
				for seed := range 5 {
					sdk, own := callers(t.Context(), t, after, &ours)
					if differs(t.Context(), m.histories().Example(seed), sdk, own) != "" {
						return
					}
				}
			}
			t.Error("not found")
		})
	}
}
