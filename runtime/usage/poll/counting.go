package poll

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluice-go/sluice/runtime/usage"
)

// A shard without anything to count needs few checkpoints. Checkpoints are records of the table's stream
// themselves: one for each batch of such records would make the stream feed itself for ever.
const (
	renewAfter   = time.Hour // advance of at: far below the retention
	renewRecords = 10_000    // records to read again after a kill
)

// lastTimeout bounds the write of the last checkpoint when a run ends.
const lastTimeout = 2 * time.Second

// take counts records, and passes them on. It also counts replies without records.
func (d *reader) take(ctx context.Context, records []types.Record, asked time.Time) error {
	consumers(d.Consumers).take(d.id, records, asked)
	if len(records) > 0 {
		d.empty, d.horizon = 0, false
		d.arrived(d.id, len(records), records[0].Dynamodb)
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

// count adds records to their windows, for as long as it takes. A failed batch is tried again in halves:
// records of it that are in their windows already cost rejected writes, and a throttled table should get
// fewer of them.
func (d *reader) count(ctx context.Context, records []types.Record) error {
	if d.Aggregator == nil {
		d.move(records, usage.Added{})
		return nil
	}
	size := len(records)
	for try := 0; len(records) > 0; {
		batch := records[:min(size, len(records))]
		added, err := d.Aggregator.AddStreams(ctx, d.id, batch)
		done := through(batch, err)
		if done > 0 {
			d.move(batch[:done], added)
			records, try = records[done:], 0
		}
		if err == nil {
			size *= 2
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := d.setupError(err); err != nil {
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

// through returns the number of a batch's records before the one that AddStreams failed at.
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

// move moves the position past records.
func (d *reader) move(records []types.Record, added usage.Added) {
	for _, r := range records {
		if r.Dynamodb == nil {
			continue
		}
		d.after = aws.ToString(r.Dynamodb.SequenceNumber)
		at := aws.ToTime(r.Dynamodb.ApproximateCreationDateTime)
		if at.After(d.at) {
			d.at = at
		}
		if at.After(d.newest) {
			d.newest = at
		}
	}
	d.fresh += added.Counted + added.PutAside
	d.passed += len(records)
	d.behind(d.id, d.at, added.Counted)
}

// saveIfDue writes a checkpoint if one is needed.
func (d *reader) saveIfDue(ctx context.Context) error {
	if d.fresh > 0 || d.passed >= renewRecords || d.at.Sub(d.kept) >= renewAfter {
		return d.save(ctx)
	}
	return nil
}

// save writes a checkpoint, if there is something that counts.
func (d *reader) save(ctx context.Context) error {
	if d.Aggregator == nil {
		return nil
	}
	if err := d.retry(ctx, "write the checkpoint of the shard "+d.id, func() error {
		return d.put(ctx, d.id, d.position)
	}); err != nil {
		return err
	}
	d.fresh, d.passed, d.kept = 0, 0, d.at
	return nil
}

// end records that the shard has been read to its end.
func (d *reader) end(ctx context.Context) error {
	d.done = true
	return d.save(ctx)
}

// last writes a last checkpoint, once. If that fails, records counted since the previous one are read again.
func (d *reader) last(ctx context.Context) {
	if d.fresh == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTimeout)
	defer cancel()
	if err := d.put(ctx, d.id, d.position); err != nil {
		d.Logger.LogAttrs(ctx, slog.LevelWarn,
			"sluice: could not write the last checkpoint: some records will be read again, and counted once",
			slog.String("table", d.name), slog.String("shard", d.id), slog.Any("error", err))
	}
}
