package poll_test

import (
	"context"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/sluice-go/sluice/runtime/usage"
	"github.com/sluice-go/sluice/runtime/usage/poll"
)

// tap is all that a Poller and its Aggregator call. It counts calls, and lets a test have its way with them,
// one at a time.
type tap struct {
	table interface {
		poll.Table
		usage.API
	}
	streams poll.Streams

	before func(ctx context.Context, c call) error // instead of the call
	after  func(ctx context.Context, c call) error // instead of its reply

	mu     sync.Mutex
	number int
	calls  map[string]int
}

// call is one, with its reply once that is there.
type call struct {
	operation string
	number    int // from 1, of all
	in, out   any
}

// writes returns how many calls wrote something.
func (p *tap) writes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls["PutItem"] + p.calls["UpdateItem"]
}

// count returns how many calls there were of an operation.
func (p *tap) count(operation string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[operation]
}

func tapped[I, O any](ctx context.Context, p *tap, operation string, in *I, do func(*I) (*O, error)) (*O,
	error) {
	p.mu.Lock()
	p.number++
	if p.calls == nil {
		p.calls = map[string]int{}
	}
	p.calls[operation]++
	c := call{operation: operation, number: p.number, in: in}
	p.mu.Unlock()
	if p.before != nil {
		if err := p.before(ctx, c); err != nil {
			return nil, err
		}
	}
	out, err := do(in)
	if err == nil && p.after != nil {
		c.out = out
		err = p.after(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (p *tap) Query(ctx context.Context, in *dynamodb.QueryInput,
	opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return tapped(ctx, p, "Query", in, func(in *dynamodb.QueryInput) (*dynamodb.QueryOutput,
		error) {
		return p.table.Query(ctx, in, opts...)
	})
}

func (p *tap) PutItem(ctx context.Context, in *dynamodb.PutItemInput,
	opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return tapped(ctx, p, "PutItem", in, func(in *dynamodb.PutItemInput) (*dynamodb.PutItemOutput, error) {
		return p.table.PutItem(ctx, in, opts...)
	})
}

func (p *tap) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput,
	opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return tapped(ctx, p, "UpdateItem", in, func(in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput,
		error) {
		return p.table.UpdateItem(ctx, in, opts...)
	})
}

func (p *tap) ListStreams(ctx context.Context, in *dynamodbstreams.ListStreamsInput,
	opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.ListStreamsOutput, error) {
	return tapped(ctx, p, "ListStreams", in,
		func(in *dynamodbstreams.ListStreamsInput) (*dynamodbstreams.ListStreamsOutput, error) {
			return p.streams.ListStreams(ctx, in, opts...)
		})
}

func (p *tap) DescribeStream(ctx context.Context, in *dynamodbstreams.DescribeStreamInput,
	opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	return tapped(ctx, p, "DescribeStream", in,
		func(in *dynamodbstreams.DescribeStreamInput) (*dynamodbstreams.DescribeStreamOutput, error) {
			return p.streams.DescribeStream(ctx, in, opts...)
		})
}

func (p *tap) GetShardIterator(ctx context.Context, in *dynamodbstreams.GetShardIteratorInput,
	opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	return tapped(ctx, p, "GetShardIterator", in,
		func(in *dynamodbstreams.GetShardIteratorInput) (*dynamodbstreams.GetShardIteratorOutput, error) {
			return p.streams.GetShardIterator(ctx, in, opts...)
		})
}

func (p *tap) GetRecords(ctx context.Context, in *dynamodbstreams.GetRecordsInput,
	opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	return tapped(ctx, p, "GetRecords", in,
		func(in *dynamodbstreams.GetRecordsInput) (*dynamodbstreams.GetRecordsOutput, error) {
			return p.streams.GetRecords(ctx, in, opts...)
		})
}
