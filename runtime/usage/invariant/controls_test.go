package invariant_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/usage"
	"github.com/sluice-go/sluice/runtime/usage/poll"
)

// broken is what a reader of the stream does wrong: nothing, unless a control says so.
type broken struct {
	write   func(context.Context, usage.API, *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error)
	extract func(codec.Record) ([]codec.Delta, error)
	records func(*dynamodbstreams.GetRecordsOutput)
	goesOn  bool  // behind what failed; of Lambda's readers
	onLocal bool  // it is about what an engine does, and no shard has to split
	want    fault // that the windows show
}

// fault is what the windows say that readers did wrong.
type fault string

const (
	noFault       fault = "nothing is wrong"
	countsMore    fault = "calls count more than once"
	countsLess    fault = "calls do not count"
	countsExpired fault = "what expired counts, and nothing else is wrong"
	losesCreated  fault = "what created buckets does not count, and nothing else is wrong"
	losesRefunds  fault = "what was given back does not count, and nothing else is wrong"
	anHourLate    fault = "all of it counts an hour later"
	unclear       fault = "some calls count more, and others less, or as many with other costs"
	notOfReaders  fault = "hours and days are right, and something else is wrong"
)

// fault says how windows, of the same length as those of s, differ from the stream.
func (s *stream) fault(windows sums) fault {
	for _, c := range []struct {
		fault fault
		want  sums
	}{
		{noFault, s.consumed},
		{countsExpired, s.consumed.plus(s.expired)},
		{losesCreated, s.consumed.minus(s.created)},
		{losesRefunds, s.consumed.minus(s.refunded)},
		{anHourLate, s.consumed.later(time.Hour)},
	} {
		if c.want.diff(windows) == "" {
			return c.fault
		}
	}
	more, less := false, false
	for at, n := range windows.minus(s.consumed) {
		if at.limit == calls {
			more, less = more || n > 0, less || n < 0
		}
	}
	switch {
	case more && !less:
		return countsMore
	case less && !more:
		return countsLess
	}
	return unclear
}

// controls are readers that do something wrong.
func controls() map[string]broken {
	return map[string]broken{
		"no watermark": {want: countsMore, onLocal: true, write: func(ctx context.Context, api usage.API,
			in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
			in.ConditionExpression = aws.String(*in.ConditionExpression + " OR attribute_exists(PK)")
			return api.UpdateItem(ctx, in)
		}},
		"what failed is taken for written": {want: countsLess, write: func(ctx context.Context, api usage.API,
			in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
			out, err := api.UpdateItem(ctx, in)
			if _, refused := errors.AsType[*types.ConditionalCheckFailedException](err); refused {
				return nil, err
			}
			return out, nil
		}},
		"what expires counts": {want: countsExpired, onLocal: true,
			extract: func(r codec.Record) ([]codec.Delta, error) {
				if r.New == nil {
					r.Old, r.New = nil, r.Old
				}
				return limits.ExtractDeltas(r)
			}},
		"the first acquire is lost": {want: losesCreated, extract: func(r codec.Record) ([]codec.Delta, error) {
			if r.Old == nil {
				return nil, nil
			}
			return limits.ExtractDeltas(r)
		}},
		"give-backs are lost": {want: losesRefunds, extract: func(r codec.Record) ([]codec.Delta, error) {
			deltas, err := limits.ExtractDeltas(r)
			return slices.DeleteFunc(deltas, func(d codec.Delta) bool { return d.Millitokens < 0 }), err
		}},
		"an hour late": {want: anHourLate, extract: func(r codec.Record) ([]codec.Delta, error) {
			r.At = r.At.Add(time.Hour)
			return limits.ExtractDeltas(r)
		}},
		"what failed is not handed over again": {want: countsLess, goesOn: true},
		"the tail of a shard that was split is skipped": {want: countsLess,
			records: func(out *dynamodbstreams.GetRecordsOutput) {
				if out.NextShardIterator == nil {
					out.Records = nil
				}
			}},
	}
}

// writer writes windows, its own way if it is broken.
type writer struct {
	usage.API
	write func(context.Context, usage.API, *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error)
}

func (c writer) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput,
	opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if c.write != nil {
		return c.write(ctx, c.API, in)
	}
	return c.API.UpdateItem(ctx, in, opts...)
}

// tailor changes what is read, if it is broken.
type tailor struct {
	poll.Streams
	change func(*dynamodbstreams.GetRecordsOutput)
}

func (c tailor) GetRecords(
	ctx context.Context, in *dynamodbstreams.GetRecordsInput, opts ...func(*dynamodbstreams.Options),
) (*dynamodbstreams.GetRecordsOutput, error) {
	out, err := c.Streams.GetRecords(ctx, in, opts...)
	if err == nil && c.change != nil {
		c.change(out)
	}
	return out, err
}
