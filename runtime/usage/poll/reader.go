package poll

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

const (
	// retention is how long a stream keeps its records.
	retention = 24 * time.Hour
	// quiet is how many replies without a record in a row say that there is none at present: the service gives
	// such replies also ahead of records, while it looks for them.
	quiet = 5
	// few records say that a shard is near its end. It is left for a while then: each batch costs a write for
	// each window that it touches, however many records of it do.
	few = 100
	// skew is how far this host's clock may be behind the service's, which dates records.
	skew = 5 * time.Second
)

// ending is why a shard is not read on.
type ending uint8

const (
	ended  ending = iota // it has been read to its end
	rested               // it had nothing more, and that was all that was asked for
	gone                 // there is no such shard any more
)

// reader reads one shard, and counts what it reads.
type reader struct {
	*run
	shard
	position

	horizon bool      // what comes after the position is gone: read from the oldest that there is
	newest  time.Time // of the records read; not at, which other hosts' clocks have a part in
	empty   int       // replies without records in a row
	fresh   int       // records counted or put aside since the last checkpoint
	passed  int       // records read since the last checkpoint
	kept    time.Time // at, of the last checkpoint; zero for none
}

// read reads the shard, from its position on, until it ends. What was counted until then is in the checkpoint
// if that can be written at once.
func (d *reader) read(ctx context.Context) (ending, error) {
	defer d.last(ctx)
	if d.after == "" { // nothing would tell that what came first is gone
		d.lost(ctx, d.id, &d.position)
	}
	var iterator *string
	for {
		var err error
		if iterator == nil {
			iterator, err = d.iterator(ctx)
		}
		var out *dynamodbstreams.GetRecordsOutput
		asked := d.Clock.Now()
		if err == nil {
			err = d.patiently(ctx, "read the shard "+d.id, func() (err error) {
				out, err = d.Streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: iterator})
				return err
			})
		}
		if err != nil {
			iterator = nil
			if vanished, err := d.turn(ctx, err); vanished || err != nil {
				return gone, err
			}
			continue
		}
		if err := d.take(ctx, out.Records, asked); err != nil {
			return ended, err
		}
		if iterator = out.NextShardIterator; iterator == nil {
			return ended, d.end(ctx)
		}
		if err := d.saveIfDue(ctx); err != nil {
			return ended, err
		}
		switch {
		case d.once && !d.closed && (d.empty >= quiet || d.newest.After(d.began.Add(skew))):
			return rested, nil
		case d.once || d.closed || len(out.Records) >= few:
		case !d.wait(ctx, d.Idle):
			return rested, ctx.Err()
		}
	}
}

// iterator returns one for what comes after the position.
func (d *reader) iterator(ctx context.Context) (*string, error) {
	in := &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &d.stream, ShardId: &d.id, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	}
	if d.after != "" && !d.horizon {
		in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, &d.after
	}
	var out *dynamodbstreams.GetShardIteratorOutput
	err := d.patiently(ctx, "begin to read the shard "+d.id, func() (err error) {
		out, err = d.Streams.GetShardIterator(ctx, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out.ShardIterator, nil
}

// turn decides what an error means to the shard: to begin again with a new iterator, that it is gone, or the
// end of all.
func (d *reader) turn(ctx context.Context, err error) (vanished bool, _ error) {
	if _, expired := errors.AsType[*types.ExpiredIteratorException](err); expired {
		return false, nil
	}
	if _, trimmed := errors.AsType[*types.TrimmedDataAccessException](err); trimmed {
		again := d.horizon
		d.horizon = true
		d.lost(ctx, d.id, &d.position)
		if again && !d.wait(ctx, d.Idle) { // the oldest was trimmed between two calls
			return false, ctx.Err()
		}
		return false, nil
	}
	if _, vanished = errors.AsType[*types.ResourceNotFoundException](err); vanished {
		d.wait(ctx, d.Idle) // lest a list that is behind has it begun again at once
		return true, nil
	}
	return false, err
}
