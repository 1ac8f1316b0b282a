package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/internal/test/bench/generated"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/lean"
)

// canned is a transport that, once it has passed on an UpdateItem, answers every further request with that
// one's answer.
type canned struct {
	next   aws.HTTPClient
	header http.Header
	body   []byte
	served int
}

// Do implements aws.HTTPClient.
func (c *canned) Do(r *http.Request) (*http.Response, error) {
	if c.body == nil {
		answer, err := c.next.Do(r)
		if err != nil || r.Header.Get("X-Amz-Target") != "DynamoDB_20120810.UpdateItem" {
			return answer, err
		}
		c.header = answer.Header
		if c.body, err = io.ReadAll(answer.Body); err != nil {
			return nil, err
		}
	} else if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	c.served++
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Header: c.header, Request: r,
		Body: io.NopCloser(bytes.NewReader(c.body)), ContentLength: int64(len(c.body)),
	}, nil
}

// bareUpdate is the request that an acquire of s's bucket sends.
func bareUpdate(s *sample) *dynamodb.UpdateItemInput {
	s.generated()
	w := s.write
	return &dynamodb.UpdateItemInput{
		TableName:                           aws.String(table),
		Key:                                 s.resource.Key(s.entity),
		UpdateExpression:                    &w.Update,
		ConditionExpression:                 &w.Cond,
		ExpressionAttributeNames:            w.Names,
		ExpressionAttributeValues:           w.Values,
		ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// cannedAcquire returns a call that acquires one token of one bucket, on a transport that answers at once.
// api makes the client from options with that transport. The call adds what fails to failed.
func cannedAcquire(
	ctx context.Context, api func(dynamodb.Options) dynamo.API, failed *error,
) (acquire func(), wire *canned, err error) {
	w, err := newWorld(ctx, 0)
	if err != nil {
		return nil, nil, err
	}
	wire = &canned{next: w.engine.HTTPClient()}
	options := w.engine.Client().Options()
	options.HTTPClient = wire
	process, err := w.processOn(api(options))
	if err != nil {
		return nil, nil, err
	}
	var who generated.HotEntity = generated.Project{ID: "123"}
	acquire = func() {
		if _, err := process.Hot.Acquire(ctx, who, generated.HotCost{}); err != nil {
			*failed = errors.Join(*failed, err)
		}
	}
	for range 2 { // a Create, and the Normal whose reply is kept
		acquire()
	}
	return acquire, wire, *failed
}

// allocations returns what f allocates on average. It fails unless each call of f is one request to wire.
func allocations(f func(), wire *canned) (float64, error) {
	const runs = 100 // AllocsPerRun makes one more
	wire.served = 0
	n := testing.AllocsPerRun(runs, f)
	if wire.served != runs+1 {
		return 0, fmt.Errorf("%d requests, want one for each of %d calls", wire.served, runs+1)
	}
	return n, nil
}

// sdkExperiment is on what an acquire takes beside the SDK's call, on a transport that answers at once.
func sdkExperiment(resources map[string]codec.Resource, c conditions) experiment {
	return experiment{
		rows: []row{{"runtime around one bare SDK UpdateItem, canned reply", []figure{
			{name: "CPU more, percent", format: "%.1f%% CPU", want: atMost(5)},
			{name: "allocations more", format: "%.0f allocs more", want: atMost(8)},
		}}},
		measure: func(ctx context.Context) ([]float64, error) {
			var failed error
			var client *dynamodb.Client
			acquire, wire, err := cannedAcquire(ctx, func(o dynamodb.Options) dynamo.API {
				client = dynamodb.New(o)
				return client
			}, &failed)
			if err != nil {
				return nil, err
			}
			in := bareUpdate(newSample(resources[generated.Hot]))
			// as the store's, which repeats itself
			once := []func(*dynamodb.Options){func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }}
			bare := func() {
				if _, err := client.UpdateItem(ctx, in, once...); err != nil {
					failed = errors.Join(failed, err)
				}
			}
			ours, err := allocations(acquire, wire)
			if err != nil {
				return nil, err
			}
			theirs, err := allocations(bare, wire)
			if err != nil {
				return nil, err
			}
			times, _ := inTurns(5*c.timing, acquire, bare)
			return []float64{100 * (times - 1), ours - theirs}, failed
		},
	}
}

// leanExperiment is on an acquire by package lean, against one by the SDK's client. Both have a transport
// that answers at once.
func leanExperiment(c conditions) experiment {
	return experiment{
		rows: []row{{"acquire by package lean vs by the SDK's client, canned reply", []figure{
			{name: "times faster", format: "%.1fx", want: atLeast(3.5)},
			{name: "allocations", format: "%.0f allocs", want: atMost(60)},
			{name: "microseconds", format: "%.1f us"},
			{name: "their allocations", format: "%.0f allocs theirs"},
		}}},
		measure: func(ctx context.Context) ([]float64, error) {
			var failed error
			own, wire, err := cannedAcquire(ctx, func(o dynamodb.Options) dynamo.API {
				return lean.New(aws.Config{}, func(made *dynamodb.Options) { *made = o })
			}, &failed)
			if err != nil {
				return nil, err
			}
			theirs, theirWire, err := cannedAcquire(ctx, func(o dynamodb.Options) dynamo.API {
				return dynamodb.New(o)
			}, &failed)
			if err != nil {
				return nil, err
			}
			allocs, err := allocations(own, wire)
			if err != nil {
				return nil, err
			}
			theirAllocs, err := allocations(theirs, theirWire)
			if err != nil {
				return nil, err
			}
			times, nanoseconds := inTurns(5*c.timing, theirs, own)
			return []float64{times, allocs, nanoseconds / 1000, theirAllocs}, failed
		},
	}
}
