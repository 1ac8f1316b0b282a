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

// mostPatience is how long a request waits for DynamoDB Local, so that nothing hangs if the engine does.
const mostPatience = 30 * time.Second

// patient sends requests that go on when their deadline has passed; they end once they are cancelled. A store
// gives an attempt a second, and then repeats it, which may charge twice. While a machine compiles and tests
// other packages, DynamoDB Local may take longer. Tests that count tokens would then fail for the machine.
// Replies that come late, or never, are tested on the engine in the process.
type patient struct{ next aws.HTTPClient }

// withPatience returns client with requests that are patient.
func withPatience(client *dynamodb.Client) *dynamodb.Client {
	o := client.Options()
	o.HTTPClient = patient{o.HTTPClient}
	return dynamodb.New(o)
}

// Do returns the reply with all of its body, since it ends the request.
func (p patient) Do(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), mostPatience)
	defer cancel()
	stop := context.AfterFunc(r.Context(), func() {
		if errors.Is(r.Context().Err(), context.Canceled) {
			cancel()
		}
	})
	defer stop()
	reply, err := p.next.Do(r.WithContext(ctx))
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
