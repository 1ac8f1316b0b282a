package poll

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/store"
)

// shard is a shard of a stream.
type shard struct {
	id, parent, stream string
	closed             bool // nothing will be added to it
}

// listing is the present state of the table's streams.
type listing struct {
	streams int
	on      bool // one of them is on
	shards  []shard
}

// list describes all streams of the table. One that was switched off can be read for 24 hours.
func (r *run) list(ctx context.Context) (listing, error) {
	var found listing
	arns, err := r.streams(ctx)
	for _, arn := range arns {
		if err == nil {
			err = r.describe(ctx, arn, &found)
		}
	}
	return found, err
}

// streams returns the ARNs of the table's streams. They are asked for by the table's name, which another
// account or region may have, too: where its ARN is known, theirs begin with it.
func (r *run) streams(ctx context.Context) (arns []string, err error) {
	in := &dynamodbstreams.ListStreamsInput{TableName: &r.name}
	for {
		var out *dynamodbstreams.ListStreamsOutput
		if err := r.retry(ctx, "list the streams", func() (err error) {
			out, err = r.Streams.ListStreams(ctx, in)
			return err
		}); err != nil {
			if _, none := errors.AsType[*types.ResourceNotFoundException](err); none {
				err = operator.CallError(r.Table, err) // there is no such table
			}
			return nil, err
		}
		for _, s := range out.Streams {
			if arn := aws.ToString(s.StreamArn); r.Table == r.name || strings.HasPrefix(arn, r.Table+"/stream/") {
				arns = append(arns, arn)
			}
		}
		if in.ExclusiveStartStreamArn = out.LastEvaluatedStreamArn; in.ExclusiveStartStreamArn == nil {
			return arns, nil
		}
	}
}

// describe adds a stream's shards to found, page by page. A stream that has vanished since it was listed has
// none.
func (r *run) describe(ctx context.Context, arn string, found *listing) error {
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &arn}
	for page := 0; ; page++ {
		var out *dynamodbstreams.DescribeStreamOutput
		err := r.retry(ctx, "describe the stream "+arn, func() (err error) {
			out, err = r.Streams.DescribeStream(ctx, in)
			return err
		})
		if _, vanished := errors.AsType[*types.ResourceNotFoundException](err); vanished {
			return nil
		}
		if err != nil {
			return err
		}
		d := out.StreamDescription
		on := d.StreamStatus == types.StreamStatusEnabled || d.StreamStatus == types.StreamStatusEnabling
		if d.StreamViewType != types.StreamViewTypeNewAndOldImages {
			if on {
				return r.wrongStream(fmt.Sprintf("the stream of table %s has %s, not %s",
					r.name, d.StreamViewType, types.StreamViewTypeNewAndOldImages))
			}
			return nil // there are not both images in it, and so no deltas
		}
		if page == 0 {
			found.streams++
			found.on = found.on || on
		}
		for _, s := range d.Shards {
			found.shards = append(found.shards, shard{
				id: aws.ToString(s.ShardId), parent: aws.ToString(s.ParentShardId), stream: arn,
				closed: s.SequenceNumberRange != nil && s.SequenceNumberRange.EndingSequenceNumber != nil,
			})
		}
		if in.ExclusiveStartShardId = d.LastEvaluatedShardId; in.ExclusiveStartShardId == nil {
			return nil
		}
	}
}

// wrongStream returns an error about the table's stream, with what to do.
func (p *Poller) wrongStream(what string) error {
	why := "usage is counted from the stream"
	if p.Aggregator == nil {
		why = "regional sync takes rates from the stream"
	}
	return &store.SetupError{
		What: what,
		Do: fmt.Sprintf("run `sluice table check --table %s`, which says how to fix it: %s",
			p.Table, why),
	}
}
