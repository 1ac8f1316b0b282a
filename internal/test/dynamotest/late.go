package dynamotest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// mostWait is how long a request waits for DynamoDB Local, so that nothing hangs if the engine does.
const mostWait = 30 * time.Second

// awaiting sends requests that go on when their deadline has passed. Until then, they can be cancelled. A
// store waits a second for a reply, and then tries again, which may charge twice. While a machine compiles
// and tests other packages, DynamoDB Local may take longer. Tests that count tokens would then fail for the
// machine. Replies that come late, or never, are tested on the engine in the process.
type awaiting struct{ next aws.HTTPClient }

// withLateReplies returns a client that waits so, with the options of client.
func withLateReplies(client *dynamodb.Client) *dynamodb.Client {
	o := client.Options()
	o.HTTPClient = awaiting{o.HTTPClient}
	return dynamodb.New(o)
}

// Do reads the whole body, since the context of its request ends when it returns.
func (a awaiting) Do(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), mostWait)
	defer cancel()
	stop := context.AfterFunc(r.Context(), func() {
		if errors.Is(r.Context().Err(), context.Canceled) {
			cancel()
		}
	})
	defer stop()
	reply, err := a.next.Do(r.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(reply.Body)
	if err = errors.Join(err, reply.Body.Close()); err != nil {
		return nil, err
	}
	reply.Body = io.NopCloser(bytes.NewReader(body))
	return reply, nil
}
