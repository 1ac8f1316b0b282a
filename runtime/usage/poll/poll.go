// Package poll follows DynamoDB Streams of a table and hands what they say to a usage.Aggregator.
//
//	ListStreams, DescribeStream -> shards, parents first -> GetRecords -> Aggregator.AddStreams -> checkpoint
//
// # Exactly once
//
// The watermarks in the windows count each record once, whatever is delivered again. A checkpoint is where to
// go on: it is written after what it covers was counted, and never moves back. So a Poller may be killed at
// any instant. What it counted since its last checkpoint is read again, which costs a refused write for each
// window of it, and counts nothing.
//
// # Two at once
//
// Two Pollers beside each other do no harm, and no good: each reads everything, the slower one's writes are
// refused, and a refused write costs as much as one that is not. That is twice the cost for the same sums. A
// Poller and Lambda's handler beside each other count twice, for they have watermarks of their own.
//
// # Checkpoints
//
// They are items of the table, one for each shard:
//
//	PK       SK                     sequence (40 digits), after (as the stream has it), at (ms), done, ttl
//	SYSTEM#  #CHECKPOINT#{shard}
//
// All of the shard that was written before at has been read. A stream keeps its records for 24 hours: where a
// Poller finds, when it goes on, that at is longer ago and what comes behind it is gone, records may have
// been lost, and it says so.
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
	Client     Table
	Streams    Streams
	Table      string // its name or its ARN
	Aggregator *usage.Aggregator
	// Clock dates checkpoints and paces waits; nil is the system's.
	Clock store.Clock
	// Idle is the pause before a shard that had few records or none is asked again; 0 is a second. What comes
	// meanwhile is counted together: a window is written at most once for each pause, so that a longer one costs
	// less and is behind more.
	Idle time.Duration
	// Report is told how far it is whenever that has changed, by one goroutine at a time. It has to be quick:
	// shards wait for it.
	Report func(Progress)
	// Logger is told of data that may be lost, and of calls that fail and are made again; nil is slog.Default().
	Logger *slog.Logger
}

// Poller follows the streams of one table. Run and Drain may be called again once they returned, one at a
// time.
type Poller struct {
	Config

	name   string // of the table
	jitter func() float64
}

// New returns a Poller. It does no I/O.
func New(c Config) (*Poller, error) {
	name, named := operator.TableName(c.Table)
	switch {
	case c.Client == nil:
		return nil, errors.New("poll.New: the client is nil")
	case c.Streams == nil:
		return nil, errors.New("poll.New: the streams' client is nil: pass dynamodbstreams.NewFromConfig(cfg)")
	case !named:
		return nil, fmt.Errorf("poll.New: table %q: want 3 to 255 letters, digits, '_', '.' and '-', or an ARN",
			c.Table)
	case c.Aggregator == nil:
		return nil, errors.New("poll.New: the aggregator is nil: pass one of usage.New")
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
	return &Poller{Config: c, name: name, jitter: rand.Float64}, nil
}

// Run counts what the table's streams have and what they get, until ctx ends: then it returns nil, after a
// last checkpoint for which it takes two seconds at most. What may pass, as throttling and outages do, it
// waits for as long as it takes. What has to be mended ends it with a *store.SetupError: no table, no rights,
// no stream that is on and has both images.
func (p *Poller) Run(ctx context.Context) error {
	if err := p.follow(ctx, false); ctx.Err() == nil {
		return err
	}
	return nil
}

// Drain counts what the table's streams have, and returns once each shard has been read to its end as it is
// then: an open one until it has had nothing several times in a row, or has records that are newer than the
// call. It fails as Run does, and with ctx's cause if that ends before.
func (p *Poller) Drain(ctx context.Context) error {
	err := p.follow(ctx, true)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
