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
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
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

// sdkExperiment is on what an acquire takes beside the SDK's call, on a transport that answers at once.
func sdkExperiment(resources map[string]codec.Resource, c conditions) experiment {
	return experiment{
		rows: []row{{"runtime around one bare SDK UpdateItem, canned reply", []figure{
			{name: "CPU more, percent", format: "%.1f%% CPU", want: atMost(5)},
			{name: "allocations more", format: "%.0f allocs more", want: atMost(8)},
		}}},
		measure: func(ctx context.Context) ([]float64, error) {
			w, err := newWorld(ctx, 0)
			if err != nil {
				return nil, err
			}
			wire := &canned{next: w.engine.HTTPClient()}
			client := w.engine.Client(func(o *dynamodb.Options) { o.HTTPClient = wire })
			process, err := w.processOn(client)
			if err != nil {
				return nil, err
			}
			var who generated.HotEntity = generated.Project{ID: "123"}
			var failed error
			acquire := func() {
				if _, err := process.Hot.Acquire(ctx, who, generated.HotCost{}); err != nil {
					failed = errors.Join(failed, err)
				}
			}
			for range 2 { // a Create, and the Normal whose reply is kept
				acquire()
			}
			in := bareUpdate(newSample(resources[generated.Hot]))
			// as the store's, which repeats itself
			once := []func(*dynamodb.Options){func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }}
			bare := func() {
				if _, err := client.UpdateItem(ctx, in, once...); err != nil {
					failed = errors.Join(failed, err)
				}
			}
			if failed != nil {
				return nil, failed
			}
			wire.served = 0
			const runs = 100 // AllocsPerRun makes one more
			more := testing.AllocsPerRun(runs, acquire) - testing.AllocsPerRun(runs, bare)
			if wire.served != 2*(runs+1) {
				return nil, fmt.Errorf("%d requests, want one each for %d acquires and as many bare calls", wire.served,
					runs+1)
			}
			times, _ := inTurns(5*c.timing, acquire, bare)
			return []float64{100 * (times - 1), more}, failed
		},
	}
}
