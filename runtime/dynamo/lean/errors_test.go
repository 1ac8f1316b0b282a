package lean

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
)

// modelled are the errors of DynamoDB that the SDK has types for and the calls return, and others.
var modelled = []struct {
	status int
	code   string
	fields string
	want   error // a value of the type
}{
	{400, "ConditionalCheckFailedException", `"Item":{"n":{"N":"1"}}`, &types.ConditionalCheckFailedException{}},
	{400, "TransactionCanceledException", `"CancellationReasons":[{"Code":"None"},` +
		`{"Code":"ConditionalCheckFailed","Message":"no","Item":{"n":{"N":"1"}}}]`,
		&types.TransactionCanceledException{}},
	{400, "ProvisionedThroughputExceededException", `"throttlingReasons":[{"reason":"x","resource":"y"}]`,
		&types.ProvisionedThroughputExceededException{}},
	{400, "RequestLimitExceeded", "", &types.RequestLimitExceeded{}},
	{400, "ThrottlingException", "", &types.ThrottlingException{}},
	{400, "TransactionConflictException", "", &types.TransactionConflictException{}},
	{400, "ReplicatedWriteConflictException", "", &types.ReplicatedWriteConflictException{}},
	{400, "TransactionInProgressException", "", &types.TransactionInProgressException{}},
	{400, "IdempotentParameterMismatchException", "", &types.IdempotentParameterMismatchException{}},
	{400, "ResourceNotFoundException", "", &types.ResourceNotFoundException{}},
	{400, "ItemCollectionSizeLimitExceededException", "", &types.ItemCollectionSizeLimitExceededException{}},
	{500, "InternalServerError", "", &types.InternalServerError{}},
	{400, "ValidationException", "", &smithy.GenericAPIError{}},
	{400, "ExpiredTokenException", "", &smithy.GenericAPIError{}},
	{400, "UnrecognizedClientException", "", &smithy.GenericAPIError{}},
	{400, "AccessDeniedException", "", &smithy.GenericAPIError{}},
	{400, "SomethingNewException", `"new":{}`, &smithy.GenericAPIError{}},
	{503, "ServiceUnavailableException", "", &smithy.GenericAPIError{}},
}

// TestErrors: each error of DynamoDB has the type, the fields, the wrapping and the text that the SDK's has.
func TestErrors(t *testing.T) {
	service := &replay{}
	client := New(config(service))
	for _, test := range modelled {
		for _, message := range []string{`"message":"so"`, `"Message":"so"`, `"x":1`} {
			fields := message
			if test.fields != "" {
				fields += "," + test.fields
			}
			service.status = test.status
			service.text = fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s",%s}`, test.code, fields)
			service.header = map[string]string{"X-Amz-Crc32": "right"}
			for _, in := range inputs() {
				sdk, lean := decoded(t, service, client, in)
				if diff := differ(sdk, lean); diff != "" {
					t.Errorf("%s: SDK, lean:\n%s", service.text, diff)
				}
				if reflect.TypeOf(lean.API) != reflect.TypeOf(test.want) || lean.Status != test.status ||
					lean.Replied != "ID1" {
					t.Errorf("%s: %T, status %d, request %s; want %T", test.code, lean.API, lean.Status,
						lean.Replied, test.want)
				}
			}
		}
	}
}

// TestStrangeReplies: replies of proxies, without an id, with the error's code elsewhere, or cut off.
func TestStrangeReplies(t *testing.T) {
	late := errors.New("late")
	for name, service := range map[string]*replay{
		"a page":           {status: 502, text: "<html>bad gateway</html>"},
		"nothing":          {status: 503},
		"a redirect":       {status: 301, header: map[string]string{"Location": "https://example.com"}},
		"no success":       {status: 199, text: "{}"},
		"an empty success": {status: 200},
		"created":          {status: 201, text: "{}"},
		"a code in a header": {status: 400, text: "{}", header: map[string]string{
			"X-Amzn-Errortype": "ThrottlingException:x"}},
		"another code there": {status: 400, text: `{"__type":"com.amazonaws.dynamodb.v20120810#` +
			`ConditionalCheckFailedException"}`, header: map[string]string{"X-Amzn-Errortype": "ValidationException"}},
		"a code as code": {status: 400, text: `{"code":"ThrottlingException","message":"x"}`},
		"an old id": {status: 400, text: "{}", header: map[string]string{
			"X-Amzn-Requestid": "", "X-Amz-RequestId": "ID2"}},
		"no id":        {status: 200, text: "{}", header: map[string]string{"X-Amzn-Requestid": ""}},
		"no date":      {status: 200, text: "{}", header: map[string]string{"Date": ""}},
		"a wrong date": {status: 200, text: "{}", header: map[string]string{"Date": "today"}},
		"a wrong form": {status: 200, text: "{}", header: map[string]string{"X-Amz-Crc32": "x"}},
		"cut off": {status: 200, body: func() io.Reader {
			return io.MultiReader(strings.NewReader(`{"A`), iotest.ErrReader(io.ErrUnexpectedEOF))
		}},
		"an error cut off": {status: 400, body: func() io.Reader { return iotest.ErrReader(late) }},
		"byte by byte": {status: 200, body: func() io.Reader {
			return iotest.OneByteReader(strings.NewReader(`{"ConsumedCapacity":{"CapacityUnits":1}}`))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			sdk, lean := decoded(t, service, New(config(service)), inputs()[0])
			if diff := differ(sdk, lean); diff != "" {
				t.Errorf("SDK, lean:\n%s", diff)
			}
		})
	}
}

// TestChecksum: a reply whose checksum is another one is garbled. The SDK's client only logs that.
func TestChecksum(t *testing.T) {
	service := &replay{status: 200, text: `{"Attributes":{"n":{"N":"1"}}}`}
	client := New(config(service))
	off := New(config(service), func(o *dynamodb.Options) { o.DisableValidateResponseChecksum = true })
	for _, test := range []struct {
		client *Client
		status int
		sum    string
		want   bool
	}{
		{client, 200, "right", true}, {client, 200, "", true}, {client, 200, "1", false}, {client, 200, "0", false},
		{client, 400, "right", true}, {client, 400, "1", false}, {off, 200, "1", true}, {off, 200, "x", true},
	} {
		service.status, service.header = test.status, map[string]string{"X-Amz-Crc32": test.sum}
		_, err := send(t.Context(), test.client, inputs()[0])
		_, garbled := errors.AsType[*smithy.DeserializationError](err)
		if garbled == test.want {
			t.Errorf("status %d, checksum %q: %v", test.status, test.sum, err)
		}
		if o, _ := wire.Classify(err); garbled && o != wire.Unknown {
			t.Errorf("a garbled reply counts as %v", o)
		}
	}
}

// provider is a provider of credentials that fails.
type provider struct{ err error }

// Retrieve implements aws.CredentialsProvider.
func (p provider) Retrieve(context.Context) (aws.Credentials, error) { return aws.Credentials{}, p.err }

// TestNoReply: errors of calls that got no reply are the SDK's, and count for the runtime as those do.
func TestNoReply(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	noHost := &net.DNSError{Err: "no such host"}
	reset := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	for name, test := range map[string]struct {
		err  error
		want wire.Outcome
	}{
		"refused":    {&url.Error{Op: "Post", URL: "https://x", Err: refused}, wire.NotSent},
		"no host":    {&url.Error{Op: "Post", URL: "https://x", Err: noHost}, wire.NotSent},
		"reset":      {&url.Error{Op: "Post", URL: "https://x", Err: reset}, wire.Unknown},
		"end":        {io.EOF, wire.Unknown},
		"deadline":   {context.DeadlineExceeded, wire.Unknown},
		"some error": {errors.New("some"), wire.Unknown},
	} {
		service := &replay{err: test.err}
		client := New(config(service))
		sdk, lean := decoded(t, service, client, inputs()[0])
		if diff := differ(sdk, lean); diff != "" {
			t.Errorf("%s: SDK, lean:\n%s", name, diff)
		}
		_, err := send(t.Context(), client, inputs()[0])
		if o, _ := wire.Classify(err); o != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s: %v counts as %v, want %v", name, err, o, test.want)
		}
	}
}

// TestCancelled: so are those of a caller who left before the request was sent, or after.
func TestCancelled(t *testing.T) {
	left, cancel := context.WithCancel(t.Context())
	cancel()
	service := &replay{status: 200, text: "{}"}
	client := New(config(service))
	if diff := differ(see(left, client.Client, inputs()[0]), see(left, client, inputs()[0])); diff != "" {
		t.Errorf("SDK, lean:\n%s", diff)
	}
	_, err := send(left, client, inputs()[0])
	o, _ := wire.Classify(err)
	if o != wire.NotSent || service.request != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v counts as %v; sent %v", err, o, service.request != nil)
	}

	leaving := func(client func(aws.HTTPClient) api) outcome {
		ctx, cancel := context.WithCancel(t.Context())
		return see(ctx, client(doer(func(r *http.Request) (*http.Response, error) {
			cancel()
			return nil, r.Context().Err()
		})), inputs()[0])
	}
	sdk := leaving(func(c aws.HTTPClient) api { return New(config(c)).Client })
	lean := leaving(func(c aws.HTTPClient) api { return New(config(c)) })
	if diff := differ(sdk, lean); diff != "" || !strings.Contains(lean.Text, "canceled") {
		t.Errorf("SDK, lean:\n%s", diff)
	}
}

// doer is a function as an aws.HTTPClient.
type doer func(*http.Request) (*http.Response, error)

// Do implements aws.HTTPClient.
func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }

// TestCredentials: an error of the credentials is the SDK's, and nothing is sent.
func TestCredentials(t *testing.T) {
	service := &replay{status: 200, text: "{}"}
	cfg := config(service)
	cfg.Credentials = provider{errors.New("none here")}
	client := New(cfg)
	sdk, lean := see(t.Context(), client.Client, inputs()[0]), see(t.Context(), client, inputs()[0])
	if diff := differ(sdk, lean); diff != "" || service.request != nil {
		t.Errorf("sent %v; SDK, lean:\n%s", service.request != nil, diff)
	}
	_, err := send(t.Context(), client, inputs()[0])
	if o, _ := wire.Classify(err); o != wire.Failed || !wire.IsUnsent(err) {
		t.Errorf("%v counts as %v", err, o)
	}
}

// TestLargest: a reply that is too long is given up, one that is just not is read.
func TestLargest(t *testing.T) {
	for length, want := range map[int]string{1000: "<nil>", 1001: "a reply of more than 1000 bytes"} {
		_, err := new(decoder).read(strings.NewReader(strings.Repeat(" ", length)), -1, 1000)
		if fmt.Sprint(err) != want {
			t.Errorf("%d bytes: %v, want %s", length, err, want)
		}
	}
}

// TestSkew: a request is signed by the service's clock, as the reply before had it, unless that is switched
// off.
func TestSkew(t *testing.T) {
	for _, off := range []bool{false, true} {
		service := &replay{status: 200, text: "{}"}
		client := New(config(service), func(o *dynamodb.Options) { o.DisableClockSkewCorrection = off })
		signedAt := func(by api) time.Duration {
			if _, err := send(t.Context(), by, inputs()[0]); err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse("20060102T150405Z", service.request.Header.Get("X-Amz-Date"))
			if err != nil {
				t.Fatal(err)
			}
			return time.Until(at).Round(time.Minute)
		}
		service.header = map[string]string{
			"Date": time.Now().Add(time.Hour).UTC().Format(http.TimeFormat),
		}
		for _, by := range []api{client, client.Client} {
			first, second := signedAt(by), signedAt(by)
			want := time.Hour
			if off {
				want = 0
			}
			if first != 0 || second != want {
				t.Errorf("%T, switched off %v: signed %v ahead, then %v, want %v", by, off, first, second, want)
			}
		}
	}
}
