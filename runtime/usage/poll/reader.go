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
	// quiet is the number of replies without records in a row after which there are none at present. The service
	// also sends such replies before records, while it looks for them.
	quiet = 5
	// few is the number of records below which a shard is near its end. It is read again after a pause then:
	// each batch costs a write for each window that it touches, however many records it has for it.
	few = 100
	// skew is the maximum lag of this host's clock behind the service's, which dates records.
	skew = 5 * time.Second
)

// ending is why a shard is not read on.
type ending uint8

const (
	ended  ending = iota // it has been read to its end
	rested               // it had nothing more, and only its present end was asked for
	absent               // there is no such shard any more
)

// reader reads one shard, and counts what it reads.
type reader struct {
	*run
	shard
	position

	latest  bool      // begin at the present end, once
	horizon bool      // what comes after the position was deleted: read from the oldest that there is
	newest  time.Time // of the records read; not at, which other hosts' clocks have a part in
	empty   int       // replies without records in a row
	fresh   int       // records counted or put aside since the last checkpoint
	passed  int       // records read since the last checkpoint
	kept    time.Time // at, of the last checkpoint; zero for none
}

// read reads the shard, from its position on, until it ends. It tries once to write a last checkpoint.
func (d *reader) read(ctx context.Context) (ending, error) {
	defer d.last(ctx)
	if d.after == "" { // no error would report that the oldest records are deleted
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
			err = d.retry(ctx, "read the shard "+d.id, func() (err error) {
				out, err = d.Streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: iterator})
				return err
			})
		}
		if err != nil {
			iterator = nil
			if vanished, err := d.turn(ctx, err); vanished || err != nil {
				return absent, err
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

// iterator returns a shard iterator for the records after the position.
func (d *reader) iterator(ctx context.Context) (*string, error) {
	in := &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &d.stream, ShardId: &d.id, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	}
	switch {
	case d.latest:
		in.ShardIteratorType = types.ShardIteratorTypeLatest
	case d.after != "" && !d.horizon:
		in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, &d.after
	}
	var out *dynamodbstreams.GetShardIteratorOutput
	err := d.retry(ctx, "begin to read the shard "+d.id, func() (err error) {
		out, err = d.Streams.GetShardIterator(ctx, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	d.latest = false // where it expires unused, the shard is read from its beginning: records may have come
	return out.ShardIterator, nil
}

// turn decides what an error means for the shard: a new iterator, the shard has vanished, or the end of the
// run.
func (d *reader) turn(ctx context.Context, err error) (vanished bool, _ error) {
	if _, expired := errors.AsType[*types.ExpiredIteratorException](err); expired {
		return false, nil
	}
	if _, trimmed := errors.AsType[*types.TrimmedDataAccessException](err); trimmed {
		again := d.horizon
		d.horizon = true
		consumers(d.Consumers).lost()
		d.lost(ctx, d.id, &d.position)
		if again && !d.wait(ctx, d.Idle) { // the oldest was trimmed between two calls
			return false, ctx.Err()
		}
		return false, nil
	}
	if _, vanished = errors.AsType[*types.ResourceNotFoundException](err); vanished {
		consumers(d.Consumers).lost()
		d.wait(ctx, d.Idle) // so that a list that lags behind does not start it again at once
		return true, nil
	}
	return false, err
}
