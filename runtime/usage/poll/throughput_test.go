package poll_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
	"github.com/sluice-go/sluice/runtime/usage"
	"github.com/sluice-go/sluice/runtime/usage/poll"
)

// second is how many acquires, of one bucket each, there are in each second of traffic.
const second = 1000

// traffic is a table that is acquired on, a second's worth at a time.
type traffic struct {
	engine  *memdynamo.Engine
	client  *dynamodb.Client
	limiter *limits.Limiter
	buckets int
	dice    *rand.Rand
}

const trafficTable = "limits"

func newTraffic(b *testing.B, buckets int) *traffic {
	b.Helper()
	engine := memdynamo.New()
	c := &traffic{engine: engine, client: engine.Client(), buckets: buckets, dice: rand.New(rand.NewPCG(1, 1))}
	_, err := operator.CreateTable(b.Context(), c.client, trafficTable)
	if err == nil {
		c.limiter, err = limits.New(dynamo.New(c.client, trafficTable),
			runtime.WithCallDefaults(runtime.OnUnavailable(store.Deny)))
	}
	if err == nil {
		enough := limits.GPT4Limits{RPM: &runtime.Rate{Capacity: 1_000_000, Every: time.Minute},
			TPM: &runtime.Rate{Capacity: 1_000_000, Every: time.Minute}}
		_, err = c.limiter.Config.GPT4.Kind(limits.Project{}).Set(b.Context(), enough, "")
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := c.limiter.Close(context.WithoutCancel(b.Context())); err != nil {
			b.Error(err)
		}
	})
	return c
}

// pass acquires for a second, one call after the other: each is a record of the stream.
func (c *traffic) pass(b *testing.B) {
	b.Helper()
	for range second {
		c.acquire(b, c.dice.IntN(c.buckets))
	}
}

func (c *traffic) acquire(b *testing.B, at int) {
	b.Helper()
	if _, err := c.limiter.GPT4.Acquire(b.Context(), limits.Project{ID: fmt.Sprint(at)},
		limits.GPT4Cost{TPM: 5}); err != nil {
		b.Fatal(err)
	}
}

// read returns what the stream has, as GetRecords returns it.
func (c *traffic) read(b *testing.B, streams *dynamodbstreams.Client) (records []streamtypes.Record) {
	b.Helper()
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	table, err := c.client.DescribeTable(b.Context(), &dynamodb.DescribeTableInput{TableName: new(trafficTable)})
	must(err)
	stream, err := streams.DescribeStream(b.Context(),
		&dynamodbstreams.DescribeStreamInput{StreamArn: table.Table.LatestStreamArn})
	must(err)
	at, err := streams.GetShardIterator(b.Context(), &dynamodbstreams.GetShardIteratorInput{
		StreamArn: table.Table.LatestStreamArn, ShardId: stream.StreamDescription.Shards[0].ShardId,
		ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
	})
	must(err)
	for next := at.ShardIterator; ; {
		page, err := streams.GetRecords(b.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: next})
		must(err)
		if len(page.Records) == 0 {
			return records
		}
		records, next = append(records, page.Records...), page.NextShardIterator
	}
}

// extract takes records apart, as an aggregator does.
func extract(b *testing.B, records []streamtypes.Record) (deltas int) {
	b.Helper()
	for _, r := range records {
		rec, err := usage.FromStreams(r)
		if err != nil {
			b.Fatal(err)
		}
		all, err := limits.ExtractDeltas(rec)
		if err != nil {
			b.Fatal(err)
		}
		deltas += len(all)
	}
	return deltas
}

// BenchmarkRead and BenchmarkExtract are parts of what BenchmarkDrain does; usage.BenchmarkAdd is the third.
func BenchmarkRead(b *testing.B) {
	c := newTraffic(b, 20)
	c.pass(b)
	streams := c.engine.Streams()
	read := 0
	for b.Loop() {
		read += len(c.read(b, streams))
	}
	b.ReportMetric(float64(read)/b.Elapsed().Seconds(), "records/s")
}

func BenchmarkExtract(b *testing.B) {
	c := newTraffic(b, 20)
	c.pass(b)
	records := c.read(b, c.engine.Streams())
	for b.Loop() {
		if n := extract(b, records); n != 2*second {
			b.Fatalf("%d deltas", n)
		}
	}
	b.ReportMetric(float64(b.N*len(records))/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkDrain is the whole way, a second of traffic at a time. It reports records of acquires a second,
// and write units for a thousand acquires, checkpoints included. Beside them it reports what the acquires
// consumed themselves. The client reads JSON, the engine in the process writes it and does the writes: both
// are most of the time.
func BenchmarkDrain(b *testing.B) {
	for _, buckets := range []int{20, 2000} {
		b.Run(fmt.Sprintf("buckets=%d", buckets), func(b *testing.B) {
			c := newTraffic(b, buckets)
			p := c.poller(b)
			drain := func() {
				if err := p.Drain(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			units := func(do func()) float64 {
				c.engine.ResetConsumed()
				do()
				return c.engine.Consumed().Table(trafficTable).Total().Write
			}
			for at := range buckets { // to create a bucket costs more
				c.acquire(b, at)
			}
			drain()
			var acquired, counted float64
			for b.Loop() {
				b.StopTimer()
				acquired += units(func() { c.pass(b) })
				b.StartTimer()
				counted += units(drain)
			}
			thousands := float64(b.N) * second / 1000
			b.ReportMetric(float64(b.N)*second/b.Elapsed().Seconds(), "records/s")
			b.ReportMetric(acquired/thousands, "acquired-units/1000")
			b.ReportMetric(counted/thousands, "counted-units/1000")
		})
	}
}

func (c *traffic) poller(b *testing.B) *poll.Poller {
	b.Helper()
	a, err := usage.New(usage.Config{
		Client: c.client, Table: trafficTable, Extract: limits.ExtractDeltas,
		Poisoned: func(_ context.Context, p usage.Poison) error { return p.Err },
	})
	if err != nil {
		b.Fatal(err)
	}
	p, err := poll.New(poll.Config{
		Client: c.client, Streams: c.engine.Streams(), Table: trafficTable, Aggregator: a,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	return p
}
