package lean

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/schemas"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// operation is one of the calls.
type operation struct {
	name, target string
	schema       *smithy.OperationSchema // for the SDK's decoder
}

func newOperation(name string, op, input, output *smithy.Schema) *operation {
	return &operation{name, "DynamoDB_20120810." + name, smithy.NewOperationSchema(op, input, output)}
}

// The calls.
var (
	updateItem = newOperation("UpdateItem",
		schemas.UpdateItem, schemas.UpdateItemInput, schemas.UpdateItemOutput)
	putItem = newOperation("PutItem", schemas.PutItem, schemas.PutItemInput, schemas.PutItemOutput)
	getItem = newOperation("GetItem", schemas.GetItem, schemas.GetItemInput, schemas.GetItemOutput)

	batchGetItem = newOperation("BatchGetItem",
		schemas.BatchGetItem, schemas.BatchGetItemInput, schemas.BatchGetItemOutput)
	transactWriteItems = newOperation("TransactWriteItems",
		schemas.TransactWriteItems, schemas.TransactWriteItemsInput, schemas.TransactWriteItemsOutput)
)

// exchange is the memory of one call. It is used again once the call has ended, since nothing keeps any of
// it.
type exchange struct {
	encoder

	operation *operation
	options   dynamodb.Options // of this call
	signature signature
	decoder   decoder
}

// kept is the most memory that stays with an exchange for its next use, for a request and for a reply.
const kept = 64 << 10

// begin returns an exchange, or nil if the SDK's client has to make a call with these options.
func (c *Client) begin(opts []func(*dynamodb.Options)) *exchange {
	if c.unusual {
		return nil
	}
	x := c.exchanges.Get().(*exchange)
	x.encoder.reset()
	if len(opts) > 0 {
		x.options = c.options
		for _, opt := range opts {
			opt(&x.options)
		}
		if changed(&c.options, &x.options) {
			c.end(x)
			return nil
		}
	}
	return x
}

// end keeps x for another call.
func (c *Client) end(x *exchange) {
	if cap(x.body) > kept {
		x.body = nil
	}
	x.decoder.release()
	c.exchanges.Put(x)
}

// reply is an output.
type reply interface {
	smithy.Deserializable
	// decode reads a reply. It reports false for one that the SDK has to decode.
	decode(*decoder) bool
	// reset empties an output that decode has begun to fill in.
	reset()
}

// exchange makes the call of x. It is not done if the SDK's client has to make it; nothing was sent then. The
// errors are those of the SDK's client. It fills in metadata even if it fails.
func (c *Client) exchange(
	ctx context.Context, x *exchange, out reply, metadata *middleware.Metadata,
) (done bool, err error) {
	defer c.end(x)
	s, err := c.prepare(ctx, x)
	switch {
	case err != nil:
	case s == nil:
		return false, nil
	default:
		err = c.send(ctx, x, s, out, metadata)
	}
	if err != nil {
		err = &smithy.OperationError{ServiceID: dynamodb.ServiceID, OperationName: x.operation.name, Err: err}
	}
	return true, err
}

// sent is a request and its response, in one allocation. Both may be kept by an error or by metadata.
type sent struct {
	http.Request

	url      url.URL
	values   [7]string
	body     body
	client   aws.HTTPClient
	response smithyhttp.Response
	metadata middleware.Metadata
}

// prepare returns the signed request of x, or nil if no endpoint was found for it.
func (c *Client) prepare(ctx context.Context, x *exchange) (*sent, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	credentials, err := c.options.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("get identity: %w", fmt.Errorf("get credentials: %w", err))
	}
	e := c.resolve(ctx, credentials.AccountID, x.table)
	if e == nil {
		return nil, nil
	}
	s := &sent{url: e.url, client: c.options.HTTPClient}
	s.body.text = x.body
	s.Request = *(&http.Request{
		Method: http.MethodPost, URL: &s.url, Host: e.header, Header: make(http.Header, len(s.values)),
		Body: &s.body, ContentLength: int64(len(x.body)),
	}).WithContext(ctx)
	date, authorization := c.sign(x, e, &credentials)
	s.set(0, "Accept-Encoding", "identity")
	s.set(1, "Content-Type", contentType)
	s.set(2, "X-Amz-Target", x.operation.target)
	s.set(3, "X-Amz-Date", date)
	s.set(4, "Authorization", authorization)
	s.set(5, "User-Agent", c.userAgent)
	if credentials.SessionToken != "" {
		s.set(6, "X-Amz-Security-Token", credentials.SessionToken)
	}
	if c.traced {
		trace(&s.Request)
	}
	return s, nil
}

// set sets a header to the i-th value.
func (s *sent) set(i int, name, value string) {
	s.values[i] = value
	s.Header[name] = s.values[i : i+1 : i+1]
}

// send sends s and decodes the reply into out. The SDK's middleware writes the metadata.
func (c *Client) send(
	ctx context.Context, x *exchange, s *sent, out reply, metadata *middleware.Metadata,
) (err error) {
	var raw awsmiddleware.AddRawResponse
	timing := awsmiddleware.RecordResponseTiming{
		DisableClockSkewCorrection: c.options.DisableClockSkewCorrection,
	}
	_, s.metadata, err = timing.HandleDeserialize(ctx, middleware.DeserializeInput{}, s)
	_, seen, _ := raw.HandleDeserialize(ctx, middleware.DeserializeInput{}, (*answered)(s))
	if skew, ok := awsmiddleware.GetAttemptSkew(seen); ok {
		c.skew.Store(int64(skew))
	}
	id := requestID(s.response.Header)
	if id != "" {
		awsmiddleware.SetRequestIDMetadata(&seen, id)
	}
	if err == nil {
		err = c.receive(ctx, x, &s.response, out)
	}
	*metadata = seen // a part of out, which receive may have reset
	if err != nil {
		err = &awshttp.ResponseError{
			ResponseError: &smithyhttp.ResponseError{Response: &s.response, Err: err}, RequestID: id,
		}
	}
	return err
}

// requestID returns the id that the service gave the request.
func requestID(h http.Header) string {
	if id := h.Get("X-Amzn-Requestid"); id != "" {
		return id
	}
	return h.Get("X-Amz-RequestId")
}

// HandleDeserialize implements middleware.DeserializeHandler: it sends the request.
func (s *sent) HandleDeserialize(ctx context.Context, _ middleware.DeserializeInput) (
	out middleware.DeserializeOutput, metadata middleware.Metadata, err error,
) {
	response, err := s.client.Do(&s.Request) //nolint:bodyclose // receive closes it
	if response == nil {
		response = &http.Response{Header: http.Header{}, Body: http.NoBody}
	}
	if err != nil {
		err = &smithyhttp.RequestSendError{Err: err}
		if over := ctx.Err(); over != nil {
			err = &smithy.CanceledError{Err: over}
		}
	}
	_ = s.body.Close() // never fails; the client may have left it to a goroutine of its own
	s.response.Response = response
	out.RawResponse = &s.response
	return out, metadata, err
}

// answered is a request that has its response.
type answered sent

// HandleDeserialize implements middleware.DeserializeHandler: it returns the response.
func (s *answered) HandleDeserialize(context.Context, middleware.DeserializeInput) (
	out middleware.DeserializeOutput, metadata middleware.Metadata, err error,
) {
	out.RawResponse = &s.response
	return out, s.metadata, nil
}

// body is the body of a request. An HTTP client may read it for a while after it has returned a response, so
// that closing it takes its text away. It is safe for concurrent use.
type body struct {
	mu   sync.Mutex
	text []byte // not read yet
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.text) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.text)
	b.text = b.text[n:]
	return n, nil
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = nil
	return nil
}

// largest is the most bytes that a reply may have. DynamoDB's have up to 16 MB of attributes.
const largest = 128 << 20

// receive reads the response, and decodes it into out or into an error.
func (c *Client) receive(ctx context.Context, x *exchange, r *smithyhttp.Response, out reply) error {
	defer func() { _ = r.Body.Close() }() // says nothing of a reply that was read
	succeeded := r.StatusCode >= 200 && r.StatusCode < 300
	sum, err := c.checksum(r.Header)
	if err != nil {
		return &smithy.DeserializationError{Err: err}
	}
	text, err := x.decoder.read(r.Body, r.ContentLength, largest)
	switch {
	case err != nil && !succeeded:
		return &smithy.DeserializationError{Err: fmt.Errorf("failed to copy error response body, %w", err)}
	case err != nil:
		return &smithy.DeserializationError{Err: err}
	case sum != "" && sum != strconv.FormatUint(uint64(crc32.ChecksumIEEE(text)), 10):
		return &smithy.DeserializationError{Err: fmt.Errorf("response did not match expected checksum, %s, %d",
			sum, crc32.ChecksumIEEE(text))}
	case succeeded && (len(text) == 0 || out.decode(&x.decoder)):
		return nil
	case !succeeded:
		if refused := x.decoder.refusal(r); refused != nil {
			return refused
		}
	}
	if succeeded && !wellFormed(text) {
		return &smithy.DeserializationError{Err: errors.New("the reply is not JSON")}
	}
	out.reset()
	closed := r.Body
	r.Body = io.NopCloser(bytes.NewReader(text))
	err = c.options.Protocol.DeserializeResponse(ctx, x.operation.schema, dynamodb.TypeRegistry, r, out)
	r.Body = closed
	return err
}

// wellFormed reports that a reply begins with a JSON value. The SDK's decoder does not look at what follows.
// It drops some mistakes within lists: it then returns a part of the reply, or panics.
func wellFormed(text []byte) bool {
	var value json.RawMessage
	return json.NewDecoder(bytes.NewReader(text)).Decode(&value) == nil
}

// checksum returns the checksum that a reply should have, "" if that is not known or not to be checked.
func (c *Client) checksum(h http.Header) (string, error) {
	sum := h.Get("X-Amz-Crc32")
	if sum == "" || c.options.DisableValidateResponseChecksum {
		return "", nil
	}
	if _, err := strconv.ParseUint(sum, 10, 32); err != nil {
		return "", fmt.Errorf("unable to parse checksum header %v, %w", sum, err)
	}
	return sum, nil
}

// read reads a reply of length bytes, -1 if that is not known, and of most at most. The text is valid until
// the next one is read.
func (d *decoder) read(from io.Reader, length int64, most int) ([]byte, error) {
	d.text, d.at = d.text[:0], 0
	if length > 0 {
		d.text = slices.Grow(d.text, int(min(length, kept))+1) // one more to find the end in
	}
	for {
		if len(d.text) == cap(d.text) {
			d.text = slices.Grow(d.text, 512)
		}
		n, err := from.Read(d.text[len(d.text):cap(d.text)])
		d.text = d.text[:len(d.text)+n]
		switch {
		case len(d.text) > most:
			return nil, fmt.Errorf("a reply of more than %d bytes", most)
		case err == io.EOF:
			return d.text, nil
		case err != nil:
			return nil, err
		}
	}
}
