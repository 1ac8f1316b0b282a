package differential_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// side is one of the two engines that are compared, with empty tables at the start of each history.
type side struct {
	client *dynamodb.Client
	wire   *wire
	names  map[string]string // of tables in the engine, by their names in operations
	runs   int               // histories so far; with nonce it makes a history's request tokens its own
	nonce  string
	empty  func(context.Context) error
}

// newSide puts names and a recording of the replies between the engine's client and its transport.
func newSide(client *dynamodb.Client, names map[string]string) *side {
	s := &side{names: names, nonce: rand.Text()[:8]}
	opts := client.Options()
	s.wire = &wire{next: opts.HTTPClient}
	s.client = dynamodb.New(opts, func(o *dynamodb.Options) {
		o.HTTPClient = s.wire
		o.Retryer = aws.NopRetryer{}
		o.APIOptions = append(o.APIOptions, rewrite(s.names))
	})
	return s
}

// localSide is DynamoDB Local, or whatever engine dynamotest has, with tables that live as long as the test.
func localSide(t testing.TB, client *dynamodb.Client) *side {
	t.Helper()
	names := map[string]string{}
	for _, schema := range schemas {
		names[schema.name] = dynamotest.Table(t, client, schema.input)
	}
	s := newSide(client, names)
	s.empty = s.deleteAll
	return s
}

// memorySide is memdynamo, a new engine for each history.
func memorySide() *side {
	s := newSide(memdynamo.New().Client(), nil)
	s.empty = func(ctx context.Context) error {
		s.wire.next = memdynamo.New().HTTPClient()
		for _, schema := range schemas {
			if _, err := s.client.CreateTable(ctx, schema.input(schema.name)); err != nil {
				return err
			}
		}
		return nil
	}
	return s
}

// reset empties the tables.
func (s *side) reset(ctx context.Context) error {
	s.runs++
	return s.empty(ctx)
}

// token is a request token that no other history has.
func (s *side) token(drawn string) string {
	if s.nonce == "" {
		return drawn
	}
	return fmt.Sprintf("%s-%s-%d", drawn, s.nonce, s.runs)
}

// deleteAll deletes every item that a scan finds.
func (s *side) deleteAll(ctx context.Context) error {
	var requests []write
	for _, schema := range schemas {
		pages := dynamodb.NewScanPaginator(s.client, &dynamodb.ScanInput{TableName: &schema.name,
			ConsistentRead: aws.Bool(true)})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return err
			}
			for _, item := range page.Items {
				key := map[string]types.AttributeValue{}
				for _, name := range schema.key().names() {
					key[name] = item[name]
				}
				requests = append(requests,
					write{schema.name, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key}}})
			}
		}
	}
	for some := range slices.Chunk(requests, 25) {
		in := &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{}}
		for _, w := range some {
			in.RequestItems[w.table] = append(in.RequestItems[w.table], w.request)
		}
		if _, err := s.client.BatchWriteItem(ctx, in); err != nil {
			return err
		}
	}
	return nil
}

// write is one element of a batch.
type write struct {
	table   string
	request types.WriteRequest
}

// rewrite puts the engine's names of tables into a request, and its members in order, before it is signed.
// Both engines are to get the same bytes, and the SDK writes maps in any order.
func rewrite(names map[string]string) func(*middleware.Stack) error {
	rewriter := middleware.BuildMiddlewareFunc("rewrite", func(
		ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler,
	) (out middleware.BuildOutput, metadata middleware.Metadata, err error) {
		req, ok := in.Request.(*smithyhttp.Request)
		if !ok {
			return out, metadata, fmt.Errorf("a request of type %T", in.Request)
		}
		body, err := io.ReadAll(req.GetStream())
		if err != nil {
			return out, metadata, err
		}
		var members map[string]any
		if err := json.Unmarshal(body, &members); err != nil {
			return out, metadata, err
		}
		text := textOf(members)
		for drawn, its := range names {
			text = strings.ReplaceAll(text, drawn, its)
		}
		if in.Request, err = req.SetStream(strings.NewReader(text)); err != nil {
			return out, metadata, err
		}
		return next.HandleBuild(ctx, in)
	})
	return func(stack *middleware.Stack) error { return stack.Build.Add(rewriter, middleware.Before) }
}

// exchange is a request and its reply as they stand on the wire.
type exchange struct {
	operation      string
	request, reply []byte
	status         int
}

// wire is a transport that keeps the last exchange. before and after, where set, break it: for negative
// controls.
type wire struct {
	next   aws.HTTPClient
	last   exchange
	before func(*exchange)
	after  func(*exchange)
}

func (w *wire) Do(req *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	x := exchange{operation: operation, request: body}
	if w.before != nil {
		w.before(&x)
	}
	req = req.Clone(req.Context())
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(x.request)), int64(len(x.request))
	resp, err := w.next.Do(req)
	if err != nil {
		return nil, err
	}
	x.status = resp.StatusCode
	x.reply, err = io.ReadAll(resp.Body)
	if closing := resp.Body.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return nil, err
	}
	if w.after != nil {
		w.after(&x)
		resp.Header.Del("X-Amz-Crc32")
		resp.Header.Del("Content-Length")
		resp.StatusCode, resp.ContentLength = x.status, int64(len(x.reply))
	}
	w.last = x
	resp.Body = io.NopCloser(bytes.NewReader(x.reply))
	return resp, nil
}
