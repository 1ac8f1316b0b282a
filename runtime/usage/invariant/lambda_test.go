package invariant_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// mapping is what reads the stream for Lambda, and calls the function: a shard after its parent, and what
// failed again. It is the service's: nobody kills it.
type mapping struct {
	*world
	*books
	broken

	dice  *rand.Rand
	after map[string]string // by shard, the last record that the function has said to have counted
	done  map[string]bool
}

func (w *world) mapping(b *books, dice *rand.Rand, how broken) *mapping {
	return &mapping{
		world: w, books: b, broken: how, dice: rand.New(rand.NewPCG(dice.Uint64(), 1)), after: map[string]string{},
		done: map[string]bool{},
	}
}

// run hands over records until ctx ends.
func (m *mapping) run(ctx context.Context, t testing.TB) {
	t.Helper()
	for ctx.Err() == nil {
		if !m.round(t) {
			select {
			case <-m.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
}

// drain hands over what there is.
func (m *mapping) drain(t testing.TB) {
	t.Helper()
	for m.round(t) {
		m.meet("rounds to the end")
	}
}

// round hands over a batch of each shard whose turn it is, and reports whether there was any.
func (m *mapping) round(t testing.TB) (more bool) {
	t.Helper()
	stream, err := m.streams.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: &m.arn})
	if err != nil {
		t.Fatal(err)
	}
	shards := stream.StreamDescription.Shards
	for _, s := range shards {
		id, parent := aws.ToString(s.ShardId), aws.ToString(s.ParentShardId)
		waits := !m.done[parent] && slices.ContainsFunc(shards,
			func(p types.Shard) bool { return aws.ToString(p.ShardId) == parent })
		if waits || m.done[id] {
			continue
		}
		records, ended := m.batch(t, id)
		m.done[id] = ended
		more = more || ended || len(records) > 0
		if len(records) > 0 {
			m.hand(t, id, records)
		}
	}
	return more
}

// batch reads what comes next in a shard.
func (m *mapping) batch(t testing.TB, shard string) (records []types.Record, ended bool) {
	t.Helper()
	in := &dynamodbstreams.GetShardIteratorInput{StreamArn: &m.arn, ShardId: &shard,
		ShardIteratorType: types.ShardIteratorTypeTrimHorizon}
	if after := m.after[shard]; after != "" {
		in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, &after
	}
	at, err := m.streams.GetShardIterator(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.streams.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{
		ShardIterator: at.ShardIterator, Limit: aws.Int32(1 + m.dice.Int32N(25)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Records, out.NextShardIterator == nil && len(out.Records) == 0
}

// hand calls the function with a batch. It may die of it, and its answer may be lost: then the whole batch
// goes again.
func (m *mapping) hand(t testing.TB, shard string, records []types.Record) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	l := &line{seen: m.meet, dice: m.dice, lost: 0.02, left: 1 + m.dice.IntN(60), kill: kill}
	var event events.DynamoDBEvent
	for _, r := range records {
		event.Records = append(event.Records, handed(r))
	}
	answer, err := m.aggregator(t, m.over(l), m.broken).HandleLambda(ctx, event)
	if err != nil {
		t.Error(err) // each record has a sequence number, so that there is a place to go on at
		return
	}
	if m.dice.IntN(10) == 0 {
		m.meet("answers lost")
		return
	}
	counted := len(records)
	if len(answer.BatchItemFailures) > 0 && !m.goesOn {
		m.meet("reported")
		counted = slices.IndexFunc(records, func(r types.Record) bool {
			return aws.ToString(r.Dynamodb.SequenceNumber) == answer.BatchItemFailures[0].ItemIdentifier
		})
	}
	if counted > 0 {
		m.after[shard] = aws.ToString(records[counted-1].Dynamodb.SequenceNumber)
	}
}

// handed is a record as Lambda hands it over.
func handed(r types.Record) events.DynamoDBEventRecord {
	at := aws.ToTime(r.Dynamodb.ApproximateCreationDateTime)
	return events.DynamoDBEventRecord{EventName: string(r.EventName), Change: events.DynamoDBStreamRecord{
		ApproximateCreationDateTime: events.SecondsEpochTime{Time: at},
		SequenceNumber:              aws.ToString(r.Dynamodb.SequenceNumber),
		OldImage:                    handedImage(r.Dynamodb.OldImage),
		NewImage:                    handedImage(r.Dynamodb.NewImage),
	}}
}

func handedImage(image map[string]types.AttributeValue) map[string]events.DynamoDBAttributeValue {
	if image == nil {
		return nil
	}
	all := map[string]events.DynamoDBAttributeValue{}
	for name, v := range image {
		switch v := v.(type) {
		case *types.AttributeValueMemberN:
			all[name] = events.NewNumberAttribute(v.Value)
		case *types.AttributeValueMemberS:
			all[name] = events.NewStringAttribute(v.Value)
		default:
			all[name] = events.NewNullAttribute()
		}
	}
	return all
}
