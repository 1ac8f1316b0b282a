package usage

import (
	"context"
	"errors"

	"github.com/aws/aws-lambda-go/events"
)

// lambdaShard stands for whatever shard a batch is of: Lambda does not say. One name does, for a window is of
// one bucket, whose records are in one shard at a time; Lambda ends a shard before it begins those that it
// was split into, and their sequence numbers are higher.
const lambdaShard = "lambda"

// HandleLambda adds a batch that Lambda read from the table's stream. It is what lambda.Start takes. The
// event source mapping needs FunctionResponseTypes: ReportBatchItemFailures; then Lambda delivers again from
// the first record that is not counted in all its windows, and what of it was counted is not counted twice. A
// table's stream is added up by one function, or by one poller, not by both: each has watermarks of its own.
func (a *Aggregator) HandleLambda(ctx context.Context,
	event events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	if _, err := addAdapted(ctx, a, lambdaShard, event.Records, FromLambda); err != nil {
		return failedFrom(err)
	}
	return events.DynamoDBEventResponse{}, nil
}

// failedFrom tells Lambda where to go on. Without a sequence number there is no such place: the whole batch
// goes again.
func failedFrom(err error) (events.DynamoDBEventResponse, error) {
	failure, ok := errors.AsType[*UncountedError](err)
	if !ok || failure.Sequence == "" {
		return events.DynamoDBEventResponse{}, err
	}
	return events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{{ItemIdentifier: failure.Sequence}}}, nil
}
