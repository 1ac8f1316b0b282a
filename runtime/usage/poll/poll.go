// Package poll follows the DynamoDB Streams of a table and passes their records to a usage.Aggregator, to
// Consumers, or to both.
//
//	aggregator, err := usage.New(usage.Config{
//		Client: client, Table: table, Extract: limits.ExtractDeltas,
//		Poisoned: func(ctx context.Context, p usage.Poison) error {
//			slog.ErrorContext(ctx, "a stream record cannot be read", "record", p)
//			return nil // the records behind it count
//		},
//	})
//	if err != nil {
//		return nil, err
//	}
//	return poll.New(poll.Config{
//		Client: client, Streams: streams, Table: table, Aggregator: aggregator,
//		Report: func(p poll.Progress) { *counted = p.Counted },
//	})
//
// A [Poller] reads each shard once those that it was split from are read:
//
//	ListStreams, DescribeStream -> shards, parents first -> GetRecords -> Aggregator.AddStreams -> checkpoint
//
// # Exactly once
//
// The watermarks in the windows count each record once, even if it is delivered again. A checkpoint is the
// place from which to go on: it is written after its records were counted, and never moves back. So a Poller
// may be killed at any instant. Records counted since its last checkpoint are read again. That costs a
// rejected write for each of their windows, and counts nothing.
//
// # Two at once
//
// Two Pollers of one table do no harm, but cost twice as much for the same sums. Each reads everything, the
// slower one's writes are rejected, and a rejected write costs as much as any other. A Poller and Lambda's
// handler together count twice, since they have watermarks of their own.
//
// # Checkpoints
//
// They are items of the table, one for each shard, in the namespace that the Aggregator counts:
//
//	PK       SK                     sequence (40 digits), after (as the stream has it), at (ms), done, ttl
//	SYSTEM#  #CHECKPOINT#{shard}
//
// All records of the shard written before at have been read. A stream keeps its records for 24 hours. If a
// Poller goes on later than that after at, and the stream has deleted records since, it reports that records
// may have been lost.
package poll

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/internal/namespace"
	"github.com/sluice-go/sluice/runtime/store"
	"github.com/sluice-go/sluice/runtime/usage"
)

// Table is the part of *dynamodb.Client that a Poller calls, for its checkpoints.
type Table interface {
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
}

// Streams is the part of *dynamodbstreams.Client that a Poller calls.
type Streams interface {
	ListStreams(context.Context, *dynamodbstreams.ListStreamsInput,
		...func(*dynamodbstreams.Options)) (*dynamodbstreams.ListStreamsOutput, error)
	DescribeStream(context.Context, *dynamodbstreams.DescribeStreamInput,
		...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error)
	GetShardIterator(context.Context, *dynamodbstreams.GetShardIteratorInput,
		...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error)
	GetRecords(context.Context, *dynamodbstreams.GetRecordsInput,
		...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error)
}

// Config is what a Poller needs.
type Config struct {
	Client     Table // for checkpoints: not one of operator.InNamespace; not needed without an Aggregator
	Streams    Streams
	Table      string            // its name or its ARN
	Aggregator *usage.Aggregator // nil to read for Consumers alone, from now on and without checkpoints
	Consumers  []Consumer
	// Clock dates checkpoints and paces waits; nil is the system's.
	Clock store.Clock
	// Idle is the pause before a shard that had few records or none is read again; 0 is a second. Records that
	// arrive in the pause are counted together: a window is written at most once for each pause, so a longer one
	// costs less and lags more.
	Idle time.Duration
	// Report is called with each change of the progress, by one goroutine at a time. It must return quickly:
	// shards wait for it.
	Report func(Progress)
	// Logger logs data that may be lost, and calls that fail and are repeated; nil is slog.Default().
	Logger *slog.Logger
}

// Poller follows the streams of one table. Run and Drain may be called again once they returned, one at a
// time.
type Poller struct {
	Config

	name      string         // of the table
	namespace item.Namespace // that the Aggregator counts; not used without one
	jitter    func() float64
}

// New returns a Poller. It does no I/O.
func New(c Config) (*Poller, error) {
	name, named := operator.TableName(c.Table)
	switch {
	case c.Aggregator == nil && len(c.Consumers) == 0:
		return nil, errors.New("poll.New: the aggregator is nil: pass one of usage.New, or a consumer")
	case c.Client == nil && c.Aggregator != nil:
		return nil, errors.New("poll.New: the client is nil")
	case namespace.Of(c.Client) != "": // keys get the namespace here
		return nil, errors.New("poll.New: the client is one of operator.InNamespace: pass the client that it was " +
			"made from")
	case c.Streams == nil:
		return nil, errors.New("poll.New: the streams' client is nil: pass dynamodbstreams.NewFromConfig(cfg)")
	case !named:
		return nil, fmt.Errorf("poll.New: %s", operator.WrongTable(c.Table))
	case c.Idle < 0:
		return nil, fmt.Errorf("poll.New: idle for %v, want a duration above 0, or 0 for the default", c.Idle)
	}
	if c.Clock == nil {
		c.Clock = store.SystemClock()
	}
	if c.Idle == 0 {
		c.Idle = time.Second
	}
	if c.Report == nil {
		c.Report = func(Progress) {}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	p := &Poller{Config: c, name: name, jitter: rand.Float64}
	if c.Aggregator != nil {
		p.namespace = item.Namespace(c.Aggregator.Namespace())
	}
	return p, nil
}

// Run counts the records of the table's streams until ctx ends. Then it returns nil, after a last checkpoint
// that takes at most two seconds. Failures that may pass, such as throttling and outages, are retried for as
// long as it takes. A *store.SetupError ends it: there is no table, no access, or no enabled stream with both
// images.
func (p *Poller) Run(ctx context.Context) error {
	if err := p.follow(ctx, false); ctx.Err() == nil {
		return err
	}
	return nil
}

// Drain counts the records of the table's streams, and returns once each shard has been read to its present
// end. It needs an Aggregator. An open shard is at its end after several empty replies in a row, or when its
// records are newer than the call. It fails as Run does, and with ctx's cause if that ends before.
func (p *Poller) Drain(ctx context.Context) error {
	err := p.follow(ctx, true)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
