package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/internal/tool/secrets"
)

// boundedClient is a client of HTTP that bounds each attempt, as the SDK does not. A server that takes
// connections and does not answer would stop a command for ever.
type boundedClient struct {
	next   aws.HTTPClient
	server *program.Server
}

// Do implements aws.HTTPClient.
func (c *boundedClient) Do(request *http.Request) (*http.Response, error) {
	ctx, alive, done := c.server.Ask(request.Context())
	response, err := c.next.Do(request.WithContext(ctx))
	if err != nil {
		err = inTime(ctx, err)
		done(!errors.Is(err, program.ErrSilent) && request.Context().Err() == nil)
		return response, err
	}
	alive()
	response.Body = &boundedBody{ReadCloser: response.Body, ctx: ctx, alive: alive, done: done}
	return response, nil
}

// inTime returns err, or program.ErrSilent if that is why ctx ended: err would be a cancellation.
func inTime(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), program.ErrSilent) {
		return program.ErrSilent
	}
	return err
}

// boundedBody is a reply's body, of which each part may take as long as an attempt.
type boundedBody struct {
	io.ReadCloser
	ctx   context.Context //nolint:containedctx // the request's
	alive func()
	done  func(answered bool)

	broken bool // a read failed before the end of the body, so the server has not answered
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (n int, err error) {
	n, err = b.ReadCloser.Read(p)
	b.alive()
	b.broken = b.broken || err != nil && !errors.Is(err, io.EOF)
	return n, inTime(b.ctx, err)
}

// Close implements io.Closer.
func (b *boundedBody) Close() error {
	err := b.ReadCloser.Close()
	b.done(!b.broken)
	return err
}

// withTimeouts returns the client with bounded attempts, and its server.
func withTimeouts(client *dynamodb.Client) (*dynamodb.Client, *program.Server) {
	server := serverAt(client.Options().BaseEndpoint, Place(client), "AWS_ENDPOINT_URL_DYNAMODB")
	return dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.HTTPClient, o.APIOptions = &boundedClient{o.HTTPClient, server}, nil
	}), server
}

// streamsWithTimeouts is withTimeouts for a client of streams and for that of their table. Both may have one
// endpoint.
func streamsWithTimeouts(
	client *dynamodb.Client, streams *dynamodbstreams.Client,
) (*dynamodb.Client, *dynamodbstreams.Client) {
	client, server := withTimeouts(client)
	if base := streams.Options().BaseEndpoint; base == nil || secrets.URL(*base) != Place(client) {
		place := Place(client)
		if base != nil {
			place = secrets.URL(*base)
		}
		server = serverAt(base, place, "AWS_ENDPOINT_URL_DYNAMODB_STREAMS")
	}
	return client, dynamodbstreams.New(streams.Options(), func(o *dynamodbstreams.Options) {
		o.HTTPClient, o.APIOptions = &boundedClient{o.HTTPClient, server}, nil
	})
}

// serverAt returns the server at an endpoint of DynamoDB, which is nil for AWS's own.
func serverAt(base *string, place, variable string) *program.Server {
	name := place
	if base == nil {
		name = "DynamoDB in " + place
	}
	return program.NewServer(name, func(why string) error { return silentAt(base, place, variable, why) })
}

// silentAt returns the error for a server of DynamoDB that takes connections and does not answer.
func silentAt(base *string, place, variable, why string) error {
	if base == nil {
		return fmt.Errorf("DynamoDB in %s does not answer, %s: check the network, the proxy and the region", place,
			why)
	}
	return fmt.Errorf("%s takes the connection and does not answer, %s: check that DynamoDB is served there, "+
		"or correct the endpoint (--endpoint, %s)", place, why, variable)
}

// WithTransport returns the client with a transport that adjust has changed. The transport respects
// AWS_CA_BUNDLE.
func WithTransport(client *dynamodb.Client, adjust func(*http.Transport)) *dynamodb.Client {
	return dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		bounds, bounded := o.HTTPClient.(*boundedClient)
		if bounded {
			o.HTTPClient = bounds.next
		}
		usual, ok := o.HTTPClient.(*awshttp.BuildableClient)
		if !ok {
			usual = awshttp.NewBuildableClient()
		}
		o.HTTPClient = usual.WithTransportOptions(adjust)
		if bounded {
			o.HTTPClient = &boundedClient{o.HTTPClient, bounds.server}
		}
	})
}
