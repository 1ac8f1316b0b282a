package dynamotest

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
)

// mostPatience is how long a request waits for DynamoDB Local, so that nothing hangs if the engine does.
const mostPatience = 30 * time.Second

// patient returns client, with requests that go on when their deadline has passed; they end once they are
// cancelled. A store gives an attempt a second, and then repeats it, which may charge twice. While a machine
// compiles and tests other packages, DynamoDB Local may take longer. Tests that count tokens would then fail
// for the machine. Replies that come late, or never, are tested on the engine in the process.
func patient(client *dynamodb.Client) *dynamodb.Client {
	return dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Patient", waitLonger), middleware.Before)
		})
	})
}

func waitLonger(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	middleware.InitializeOutput, middleware.Metadata, error,
) {
	longer, cancel := context.WithTimeout(context.WithoutCancel(ctx), mostPatience)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel()
		}
	})
	defer stop()
	return next.HandleInitialize(longer, in)
}
