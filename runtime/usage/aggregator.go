package usage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/internal/namespace"
)

// API is the part of *dynamodb.Client that an Aggregator calls.
type API interface {
	UpdateItem(context.Context, *dynamodb.UpdateItemInput,
		...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
}

// Extract is ExtractDeltas of a generated package.
type Extract func(codec.Record) ([]codec.Delta, error)

// LeastKeep is the shortest time for which a window can be kept after its end: as long as a stream goes back.
// A record delivered again finds its window with its watermark. If the window were deleted earlier, the
// record would begin another one, with a part of the sum.
const LeastKeep = 24 * time.Hour

// Config configures an Aggregator. Client, Table, Extract and Poisoned are needed: New fails without one.
type Config struct {
	Client  API     // of the whole table, not one of operator.InNamespace
	Table   string  // its name or its ARN
	Extract Extract // ExtractDeltas of the generated package
	// Namespace is the part of the table whose consumption counts, and that has the windows: the name given to
	// dynamo.Namespace, or "" for the part without a name. Records of other namespaces are passed over.
	Namespace string
	// Keep is how long windows are kept after they end, 24 hours or more; 0 is the default: 35 days for hours,
	// 400 for days and for limits' own windows. A window that still counts after its end is kept so long from
	// a day after its last record on.
	Keep map[Span]time.Duration
	// Poisoned is called with each record that cannot be read, and again if the record is delivered again. If it
	// fails, the batch fails from that record on. It is needed, since such a record is lost unless it is kept
	// somewhere.
	Poisoned func(context.Context, Poison) error
	// Writers is the number of windows written at once; 0 is 8.
	Writers int
}

// Aggregator adds up the consumption in a table's stream, in windows of the same table: by entity, resource
// and limit. There is a window for each hour and each day, and one for each window of a windowed limit. An
// Aggregator is safe for concurrent use, for different shards.
//
// Every record counts once, however often it is delivered. A window's item has a watermark for each shard
// that added to it: the last sequence number that is in its sums. Each write adds to the sums and moves the
// watermark on, under the condition that the watermark is below the first record that it adds. If the
// condition fails, the returned item has the watermark: records at or below it are dropped, and the rest is
// written again. So a batch costs one write for each window that it touches, and a redelivery one rejected
// write for each.
//
// New returns one; its Config does not change afterwards.
type Aggregator struct{ config Config }

// New returns an Aggregator. It does no I/O.
func New(c Config) (*Aggregator, error) {
	switch {
	case c.Client == nil:
		return nil, errors.New("usage.New: the client is nil")
	case c.Table == "":
		return nil, errors.New("usage.New: the table has no name")
	case c.Extract == nil:
		return nil, errors.New("usage.New: Extract is nil: pass ExtractDeltas of the generated package")
	case c.Poisoned == nil:
		return nil,
			errors.New("usage.New: Poisoned is nil: say where records go that cannot be read, or they are lost")
	case namespace.Of(c.Client) != "": // keys get the namespace here
		return nil, errors.New("usage.New: the client is one of operator.InNamespace: pass the client that it " +
			"was made from, and the name as Config.Namespace")
	case c.Namespace != "":
		if _, err := item.ParseNamespace(c.Namespace); err != nil {
			return nil, fmt.Errorf("usage.New: %w", err)
		}
	}
	if c.Writers < 0 {
		return nil, fmt.Errorf("usage.New: %d writers, want at least 1, or 0 for the default", c.Writers)
	}
	keep := map[Span]time.Duration{
		Hour: 35 * 24 * time.Hour, Day: 400 * 24 * time.Hour, LimitWindow: 400 * 24 * time.Hour,
	}
	for span, d := range c.Keep {
		if _, known := keep[span]; !known || d < 0 {
			return nil, fmt.Errorf("usage.New: keep %q for %v: want %s, %s or %s, and a duration", span, d, Hour, Day,
				LimitWindow)
		}
		if d > 0 && d < LeastKeep {
			return nil, fmt.Errorf("usage.New: keep %q for %v: want %v or more, or 0 for the default", span, d,
				LeastKeep)
		}
		if d > 0 {
			keep[span] = d
		}
	}
	c.Keep = keep
	if c.Writers == 0 {
		c.Writers = 8
	}
	return &Aggregator{c}, nil
}

// Namespace returns that of the Config.
func (a *Aggregator) Namespace() string { return a.config.Namespace }

// UncountedError names the record from which a batch must be added again.
type UncountedError struct {
	Sequence string // of the first record that is not in all its windows
	Err      error
}

// Error names the record and the cause.
func (f *UncountedError) Error() string {
	return fmt.Sprintf("sluice: stream record %s is not counted yet: %v", f.Sequence, f.Err)
}

// Unwrap returns the cause.
func (f *UncountedError) Unwrap() error { return f.Err }

// Add adds records of one shard, in their order, to their windows. The error is an *UncountedError. It names
// the first record from which they have to be added again, as Lambda's batchItemFailures and a poller's
// checkpoint need it. Records counted already are recognised then, and not counted twice.
func (a *Aggregator) Add(ctx context.Context, shard string, records []codec.Record) error {
	_, err := a.add(ctx, shard, records)
	return err
}

// add is Add; it also counts what became of the records.
func (a *Aggregator) add(ctx context.Context, shard string, records []codec.Record) (Added, error) {
	entries, aside, failed := a.read(ctx, shard, records)
	var mu sync.Mutex
	fail := func(s *addition, err error) {
		mu.Lock()
		defer mu.Unlock()
		first := s.entries[0]
		if failed == nil || first.sequence < failed.sequence {
			failed = &failing{first.sequence, &UncountedError{Sequence: first.raw, Err: err}}
		}
	}
	free := make(chan struct{}, a.config.Writers)
	var writing sync.WaitGroup
	for _, s := range additions(entries) {
		free <- struct{}{}
		writing.Go(func() {
			defer func() { <-free }()
			if err := a.write(ctx, shard, s); err != nil {
				fail(s, err)
			}
		})
	}
	writing.Wait()
	added := Added{PutAside: aside}
	for _, e := range entries {
		if len(e.deltas) > 0 && (failed == nil || e.sequence < failed.sequence) {
			added.Counted++
		}
	}
	if failed == nil {
		return added, nil
	}
	return added, failed.UncountedError
}

// failing is an UncountedError with its position in the batch.
type failing struct {
	sequence string // padded
	*UncountedError
}

// read decodes records, up to the first that can neither be read nor put aside. aside is the number put
// aside.
func (a *Aggregator) read(ctx context.Context, shard string, records []codec.Record) (entries []entry,
	aside int, failed *failing) {
	for _, rec := range records {
		sequence, err := padded(rec.Sequence)
		if err != nil { // nothing distinguishes it from other records
			return entries, aside, &failing{"", &UncountedError{Sequence: rec.Sequence, Err: err}}
		}
		if rec.Namespace() != a.config.Namespace {
			continue
		}
		deltas, err := a.config.Extract(rec)
		windows := windowed(rec, deltas)
		if err == nil && len(deltas) > 0 {
			err = windowless(deltas, windows, item.Namespace(a.config.Namespace))
		}
		if err != nil {
			if err := a.putAside(ctx, Poison{shard, rec, err}); err != nil {
				return entries, aside, &failing{sequence, &UncountedError{Sequence: rec.Sequence, Err: err}}
			}
			aside++
			continue
		}
		entries = append(entries, entry{sequence: sequence, raw: rec.Sequence, deltas: deltas, windows: windows})
	}
	return entries, aside, nil
}
