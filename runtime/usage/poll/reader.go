package poll

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluice-go/sluice/runtime/usage"
)

const (
	// retention is how long a stream keeps its records.
	retention = 24 * time.Hour
	// quiet is how many replies without a record in a row say that there is none at present: the service gives such replies
	// also ahead of records, while it looks for them.
	quiet = 5
	// few records say that a shard is near its end. It is left for a while then: each batch costs a write for each window that
	// it touches, however many records of it do.
	few = 100
	// skew is how far this host's clock may be behind the service's, which dates records.
	skew = 5 * time.Second
	// lastTry is how long a checkpoint may take that is written when all ends.
	lastTry = 2 * time.Second
)

// A shard that has nothing to count needs few checkpoints. They are records of the table's stream themselves: one for each
// batch of such would have the stream feed itself for ever.
const (
	renewAfter   = time.Hour // that at has moved on: far below the retention
	renewRecords = 10_000    // to be read again after a kill
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
	empty   int       // replies without records in a row
	fresh   int       // records counted since the last checkpoint
	passed  int       // records read since the last checkpoint
	kept    time.Time // at, of the last checkpoint; zero for none
}

// read reads the shard, from its position on, until it ends. What was counted until then is in the checkpoint if that can be
// written at once.
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
		case d.once && !d.closed && (d.empty >= quiet || d.at.After(d.began.Add(skew))):
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

// turn decides what an error means to the shard: to begin again with a new iterator, that it is gone, or the end of all.
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

// take counts records, and notes what a reply without any says.
func (d *reader) take(ctx context.Context, records []types.Record, asked time.Time) error {
	if len(records) > 0 {
		d.empty, d.horizon = 0, false
		d.tell(func(p *Progress) { p.Records += int64(len(records)) })
		return d.count(ctx, records)
	}
	if d.empty++; d.empty == quiet {
		d.caughtUp(d.id)
	}
	if d.empty >= quiet && asked.After(d.at) {
		d.at = asked
	}
	return nil
}

// count adds records to their windows, for as long as it takes. What failed goes again in halves: what of it is in its windows
// costs refused writes, and a table that is throttled is to be asked less.
func (d *reader) count(ctx context.Context, records []types.Record) error {
	size := len(records)
	for try := 0; len(records) > 0; {
		batch := records[:min(size, len(records))]
		counted, err := d.Aggregator.AddStreams(ctx, d.id, batch)
		done := through(batch, err)
		if done > 0 {
			d.move(batch[:done], counted)
			records, try = records[done:], 0
		}
		if err == nil {
			size *= 2
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := d.toMend(err); err != nil {
			return err
		}
		if err := d.saveIfDue(ctx); err != nil {
			return err
		}
		if !d.pause(ctx, try, "count records of the shard "+d.id, err) {
			return ctx.Err()
		}
		size = max(1, len(batch)/2)
		try++
	}
	return nil
}

// through returns how many of a batch's records AddStreams is done with, by its error.
func through(batch []types.Record, err error) int {
	if err == nil {
		return len(batch)
	}
	failed, ok := errors.AsType[*usage.UncountedError](err)
	if !ok {
		return 0
	}
	return max(0, slices.IndexFunc(batch, func(r types.Record) bool {
		return r.Dynamodb != nil && aws.ToString(r.Dynamodb.SequenceNumber) == failed.Sequence
	}))
}

// move notes that records are done with.
func (d *reader) move(records []types.Record, counted int) {
	for _, r := range records {
		if r.Dynamodb == nil {
			continue
		}
		d.after = aws.ToString(r.Dynamodb.SequenceNumber)
		if at := aws.ToTime(r.Dynamodb.ApproximateCreationDateTime); at.After(d.at) {
			d.at = at
		}
	}
	d.fresh += counted
	d.passed += len(records)
	d.behind(d.id, d.at, counted)
}

// saveIfDue writes a checkpoint if there is a reason to.
func (d *reader) saveIfDue(ctx context.Context) error {
	if d.fresh > 0 || d.passed >= renewRecords || d.at.Sub(d.kept) >= renewAfter {
		return d.save(ctx)
	}
	return nil
}

// save writes a checkpoint.
func (d *reader) save(ctx context.Context) error {
	if err := d.patiently(ctx, "write the checkpoint of the shard "+d.id, func() error {
		return d.put(ctx, d.id, d.position)
	}); err != nil {
		return err
	}
	d.fresh, d.passed, d.kept = 0, 0, d.at
	return nil
}

// end notes that the shard has been read to its end.
func (d *reader) end(ctx context.Context) error {
	d.done = true
	return d.save(ctx)
}

// last writes what was counted since the last checkpoint, if that can be done at once. Where it cannot, it is read again.
func (d *reader) last(ctx context.Context) {
	if d.fresh == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTry)
	defer cancel()
	if err := d.put(ctx, d.id, d.position); err != nil {
		d.Logger.LogAttrs(ctx, slog.LevelWarn, "sluice: could not write the last checkpoint: some records will be read again, and counted once",
			slog.String("table", d.name), slog.String("shard", d.id), slog.Any("error", err))
	}
}
