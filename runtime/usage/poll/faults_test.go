package poll_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// refused is an answer of a service, as its client returns it.
func refused(service, operation, code string) error {
	fault, status := smithy.FaultClient, http.StatusBadRequest
	if code == "InternalServerError" {
		fault, status = smithy.FaultServer, http.StatusInternalServerError
	}
	return &smithy.OperationError{ServiceID: service, OperationName: operation, Err: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}},
		Err:      &smithy.GenericAPIError{Code: code, Message: "not now", Fault: fault},
	}}
}

// small has GetRecords return few records at a time.
func small(c call) {
	if in, ok := c.in.(*dynamodbstreams.GetRecordsInput); ok {
		in.Limit = aws.Int32(7)
	}
}

// eager writes a checkpoint for each batch of which which is true, before it is counted, as a Poller must
// not.
func (w *world) eager(p *tap, which func([]streamtypes.Record) bool) func(context.Context, call) error {
	var mu sync.Mutex
	shards := map[string]string{} // by iterator
	return func(ctx context.Context, c call) error {
		switch out := c.out.(type) {
		case *dynamodbstreams.GetShardIteratorOutput:
			mu.Lock()
			defer mu.Unlock()
			in := c.in.(*dynamodbstreams.GetShardIteratorInput)
			shards[aws.ToString(out.ShardIterator)] = aws.ToString(in.ShardId)
		case *dynamodbstreams.GetRecordsOutput:
			mu.Lock()
			shard := shards[aws.ToString(c.in.(*dynamodbstreams.GetRecordsInput).ShardIterator)]
			shards[aws.ToString(out.NextShardIterator)] = shard
			mu.Unlock()
			if len(out.Records) == 0 || !which(out.Records) {
				return nil
			}
			last := out.Records[len(out.Records)-1].Dynamodb
			after := aws.ToString(last.SequenceNumber)
			_, err := p.PutItem(ctx, &dynamodb.PutItemInput{TableName: &w.table, Item: map[string]types.AttributeValue{
				"PK":       &types.AttributeValueMemberS{Value: "SYSTEM#"},
				"SK":       &types.AttributeValueMemberS{Value: "#CHECKPOINT#" + shard},
				"sequence": &types.AttributeValueMemberS{Value: strings.Repeat("0", 40-len(after)) + after},
				"after":    &types.AttributeValueMemberS{Value: after},
			}})
			return err
		}
		return nil
	}
}

func anyBatch([]streamtypes.Record) bool { return true }

// ofBuckets reports that a batch tells of buckets.
func ofBuckets(records []streamtypes.Record) bool {
	return slices.ContainsFunc(records,
		func(r streamtypes.Record) bool { return r.Dynamodb.NewImage["b_rpm_tc"] != nil })
}
