package usage

import (
	"context"
	"errors"

	"github.com/aws/aws-lambda-go/events"
)

// lambdaShard stands for the shard of any batch, since Lambda does not name it. One name suffices: a window
// is of one bucket, whose records are in one shard at a time. Lambda ends a shard before it begins the shards
// that it was split into, and their sequence numbers are higher.
const lambdaShard = "lambda"

// HandleLambda adds a batch that Lambda read from the table's stream. It is the argument for lambda.Start.
// The event source mapping needs FunctionResponseTypes: ReportBatchItemFailures. With that, Lambda delivers
// again from the first record that is not counted in all its windows; records counted before are not counted
// twice. Use one function or one poller for a table's stream, not both: each has watermarks of its own.
func (a *Aggregator) HandleLambda(ctx context.Context,
	event events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	if _, err := addAdapted(ctx, a, lambdaShard, event.Records, FromLambda); err != nil {
		return failedFrom(err)
	}
	return events.DynamoDBEventResponse{}, nil
}

// failedFrom returns the response that tells Lambda from which record to deliver again. Without a sequence
// number Lambda delivers the whole batch again.
func failedFrom(err error) (events.DynamoDBEventResponse, error) {
	failure, ok := errors.AsType[*UncountedError](err)
	if !ok || failure.Sequence == "" {
		return events.DynamoDBEventResponse{}, err
	}
	failures := []events.DynamoDBBatchItemFailure{{ItemIdentifier: failure.Sequence}}
	return events.DynamoDBEventResponse{BatchItemFailures: failures}, nil
}
