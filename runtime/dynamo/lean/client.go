// Package lean is a client of DynamoDB for the calls that limiting makes, without the middleware of the SDK's
// client.
//
//	lim, err := limits.New(dynamo.New(lean.New(cfg), "rate_limits"))
//	if err != nil {
//		return nil, err
//	}
//	return lim, lim.Check(ctx)
//
// Five calls do without it: UpdateItem, PutItem, GetItem, BatchGetItem and TransactWriteItems. The middleware
// takes most of an acquire's CPU. A request is written straight from attribute values, signed, and sent by
// the SDK's HTTP client or yours. Its reply is read straight into attribute values. The SDK's own code does
// what is unusual:
//   - it makes each call whose configuration, options or input this package does not know;
//   - it decodes each reply that this package does not know, so all errors but a failed condition.
//
// So outputs and errors are those of the SDK's client. docs/dynamodb.md has a table of what differs.
package lean

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"

	"github.com/sluice-go/sluice/runtime/internal/sdklog"
)

// Client is the SDK's client with five calls of its own. Those are never retried, since the runtime does
// that. All other calls are the SDK's, with its retries. It is safe for concurrent use.
type Client struct {
	*dynamodb.Client

	options   dynamodb.Options // of Client
	unusual   bool             // the SDK's client makes all calls
	userAgent string
	traced    bool // in Lambda, whose trace id goes with each request
	signer    signer
	endpoint  atomic.Pointer[endpoint] // the last one that a request was sent to
	skew      atomic.Int64             // of the service's clock against this host's in ns, by the last reply
	exchanges sync.Pool                // of *exchange
}

// New returns a client that is made from cfg and options as dynamodb.NewFromConfig makes its own. It does no
// I/O. The SDK's HTTP client, which LoadDefaultConfig puts into cfg and which a cfg without one gets, is
// tuned for DynamoDB: it keeps up to 256 idle connections, of HTTP/1.1. Any other HTTPClient is used as it
// is.
//
// If cfg or an option has what only the SDK's client honours, such as APIOptions, that client makes all
// calls. It also does if the SDK is so new that this package does not know all members of its inputs. New
// logs this to the Logger of cfg.
func New(cfg aws.Config, options ...func(*dynamodb.Options)) *Client {
	options = slices.Concat(options, []func(*dynamodb.Options){tune, sdklog.Quiet})
	c := &Client{Client: dynamodb.NewFromConfig(cfg, options...)}
	c.exchanges.New = func() any { return new(exchange) }
	c.options = c.Client.Options()
	c.userAgent, c.traced = userAgent(&c.options), inLambda()
	if why := cmp.Or(unusualOption(&c.options), newMember(known)); why != "" {
		c.unusual = true
		log := logging.WithContext(context.Background(), c.options.Logger) // which may be nil
		log.Logf(logging.Warn, "sluice: lean: the SDK's client makes all calls, because of %s", why)
	}
	return c
}

// UpdateItem implements dynamo.API.
func (c *Client) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	if x := c.begin(opts); x != nil && x.updateItem(in) {
		out := &updateItemReply{}
		if done, err := c.exchange(ctx, x, out, &out.ResultMetadata); done {
			return result(&out.UpdateItemOutput, err)
		}
	}
	return c.Client.UpdateItem(ctx, in, opts...)
}

// PutItem implements dynamo.API.
func (c *Client) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	if x := c.begin(opts); x != nil && x.putItem(in) {
		out := &putItemReply{}
		if done, err := c.exchange(ctx, x, out, &out.ResultMetadata); done {
			return result(&out.PutItemOutput, err)
		}
	}
	return c.Client.PutItem(ctx, in, opts...)
}

// GetItem implements dynamo.API.
func (c *Client) GetItem(
	ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.GetItemOutput, error) {
	if x := c.begin(opts); x != nil && x.getItem(in) {
		out := &getItemReply{}
		if done, err := c.exchange(ctx, x, out, &out.ResultMetadata); done {
			return result(&out.GetItemOutput, err)
		}
	}
	return c.Client.GetItem(ctx, in, opts...)
}

// BatchGetItem implements dynamo.API.
func (c *Client) BatchGetItem(
	ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	if x := c.begin(opts); x != nil && x.batchGetItem(in) {
		out := &batchGetItemReply{}
		if done, err := c.exchange(ctx, x, out, &out.ResultMetadata); done {
			return result(&out.BatchGetItemOutput, err)
		}
	}
	return c.Client.BatchGetItem(ctx, in, opts...)
}

// TransactWriteItems implements dynamo.API.
func (c *Client) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	if x := c.begin(opts); x != nil && x.transactWriteItems(in) {
		out := &transactWriteItemsReply{}
		if done, err := c.exchange(ctx, x, out, &out.ResultMetadata); done {
			return result(&out.TransactWriteItemsOutput, err)
		}
	}
	return c.Client.TransactWriteItems(ctx, in, opts...)
}

// result returns what the SDK's client returns: no output beside an error.
func result[T any](out *T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	return out, nil
}
