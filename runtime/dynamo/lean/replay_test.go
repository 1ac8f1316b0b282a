package lean

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/document"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime/internal/namespace"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }

// replay is a service that answers each request alike, and keeps the last one. A header Checksum of "right"
// becomes the body's.
type replay struct {
	status int
	header map[string]string
	text   string
	body   func() io.Reader // instead of text
	err    error            // instead of a reply

	request *http.Request
	sent    []byte // its body
}

// Do implements aws.HTTPClient.
func (r *replay) Do(request *http.Request) (*http.Response, error) {
	r.request = request
	var err error
	if r.sent, err = io.ReadAll(request.Body); err != nil {
		return nil, err
	}
	if r.err != nil {
		return nil, r.err
	}
	header := http.Header{"X-Amzn-Requestid": {"ID1"}, "Date": {today().Format(http.TimeFormat)}}
	for name, value := range r.header {
		header.Set(name, strings.ReplaceAll(value, "right",
			strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(r.text))), 10)))
	}
	var body io.Reader = strings.NewReader(r.text)
	if r.body != nil {
		body = r.body()
	}
	return &http.Response{
		StatusCode: r.status, Header: header, Body: io.NopCloser(body), ContentLength: int64(len(r.text)),
		Request: request,
	}, nil
}

// byLean reports that this package made the last request, and not the SDK's client.
func (r *replay) byLean() bool {
	return r.request != nil && strings.Contains(r.request.Header.Get("User-Agent"), "sluice-lean")
}

// config is the configuration of tests: the service is a replay, or whatever client is.
func config(client aws.HTTPClient) aws.Config {
	return aws.Config{
		Region: "eu-west-1", HTTPClient: client,
		Credentials: credentials.NewStaticCredentialsProvider("AKID", "SECRET", ""),
	}
}

func noRetry(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// api is this package's client, or the SDK's.
type api = namespace.API

// send makes the call that takes in, once. Beside an error there must be no output.
func send(ctx context.Context, client api, in any) (any, error) {
	switch in := in.(type) {
	case *dynamodb.UpdateItemInput:
		return only(client.UpdateItem(ctx, in, noRetry))
	case *dynamodb.PutItemInput:
		return only(client.PutItem(ctx, in, noRetry))
	case *dynamodb.GetItemInput:
		return only(client.GetItem(ctx, in, noRetry))
	case *dynamodb.BatchGetItemInput:
		return only(client.BatchGetItem(ctx, in, noRetry))
	case *dynamodb.TransactWriteItemsInput:
		return only(client.TransactWriteItems(ctx, in, noRetry))
	}
	return nil, fmt.Errorf("no call takes a %T", in)
}

func only[T any](out *T, err error) (any, error) {
	switch {
	case err != nil && out != nil:
		return out, fmt.Errorf("an output beside an error: %w", err)
	case err != nil:
		return nil, err
	}
	return out, nil
}

// inputs are one plain input for each call.
func inputs() []any {
	table, key := aws.String("table"), key("a")
	return []any{
		&dynamodb.UpdateItemInput{TableName: table, Key: key},
		&dynamodb.PutItemInput{TableName: table, Item: key},
		&dynamodb.GetItemInput{TableName: table, Key: key},
		&dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{"table": {Keys: []map[string]types.AttributeValue{key}}},
		},
		&dynamodb.TransactWriteItemsInput{
			ClientRequestToken: aws.String("token"),
			TransactItems:      []types.TransactWriteItem{{Put: &types.Put{TableName: table, Item: key}}},
		},
	}
}

// outcome is what a caller can see of a call.
type outcome struct {
	Output  any
	ID      string   // of the request, by the metadata
	Date    int64    // of the reply, by the metadata
	Raw     int      // the status, by the metadata
	Chain   []string // the types of the error and of what it wraps
	Text    string   // of the error
	API     any      // the error of DynamoDB
	Status  int      // by the error
	Replied string   // the request's id by the error
}

// see makes the call that takes in, and returns what there is to see.
func see(ctx context.Context, client api, in any) outcome {
	out, err := send(ctx, client, in)
	r := outcome{Output: out}
	if out != nil {
		metadata := reflect.ValueOf(out).Elem().FieldByName("ResultMetadata").Interface().(middleware.Metadata)
		r.ID, _ = awsmiddleware.GetRequestIDMetadata(metadata)
		if date, ok := awsmiddleware.GetServerTime(metadata); ok {
			r.Date = date.Unix()
		}
		if raw, ok := awsmiddleware.GetRawResponse(metadata).(*smithyhttp.Response); ok {
			r.Raw = raw.StatusCode
		}
	}
	if err == nil {
		return r
	}
	r.Text = err.Error()
	if failed, ok := errors.AsType[smithy.APIError](err); ok {
		r.API = failed
	}
	if failed, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		r.Status = failed.HTTPStatusCode()
	}
	if failed, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		r.Replied = failed.ServiceRequestID()
	}
	for ; err != nil; err = errors.Unwrap(err) {
		r.Chain = append(r.Chain, fmt.Sprintf("%T", err))
	}
	return r
}

// differ returns how two outcomes differ, "" if they do not. cmp takes forever for values nested 50 levels
// deep, so it compares texts.
func differ(sdk, lean outcome) string {
	lines := func(o outcome) []string { return strings.Split(dump(reflect.ValueOf(o)), "\n") }
	return cmp.Diff(lines(sdk), lines(lean))
}

// dump returns v as text, with its types, a line for each value. Metadata is left out.
func dump(v reflect.Value) string {
	var b strings.Builder
	switch v.Kind() {
	case reflect.Invalid:
		return "nil"
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return v.Type().String() + " nil"
		}
		return dump(v.Elem())
	case reflect.Struct:
		fmt.Fprintf(&b, "%v:\n", v.Type())
		for i := range v.NumField() {
			switch field := v.Type().Field(i); field.Type {
			case reflect.TypeFor[document.NoSerde](), reflect.TypeFor[middleware.Metadata]():
			default:
				fmt.Fprintf(&b, "%s: %s\n", field.Name, dump(v.Field(i)))
			}
		}
	case reflect.Map:
		fmt.Fprintf(&b, "%v, nil %v:\n", v.Type(), v.IsNil())
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			fmt.Fprintf(&b, "%q: %s\n", key.String(), dump(v.MapIndex(key)))
		}
	case reflect.Slice:
		fmt.Fprintf(&b, "%v of %d, nil %v:\n", v.Type(), v.Len(), v.IsNil())
		for i := range v.Len() {
			fmt.Fprintln(&b, dump(v.Index(i)))
		}
	case reflect.String:
		return fmt.Sprintf("%q", v.String())
	default:
		return fmt.Sprint(v)
	}
	return b.String()
}

// today returns the minute of now, as replies date themselves. The SDK goes by the date of a reply that is
// minutes off, and signs the next request with it.
func today() time.Time { return time.Now().UTC().Truncate(time.Minute) }
