package invariant_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/runtime/usage"
)

// calls stands for a limit, in whose place windows count writes that took something.
const calls = "(calls)"

// place is what one entity consumed of a limit from some instant on; the zero instant is ever.
type place struct {
	entity, resource, limit string
	start                   time.Time
}

// sums are what was consumed, in millitokens.
type sums map[place]int64

// by returns s in longer windows; 0 is one for all.
func (s sums) by(d time.Duration) sums {
	longer := sums{}
	for at, n := range s {
		if at.start = at.start.Truncate(d); d == 0 {
			at.start = time.Time{}
		}
		longer[at] += n
	}
	return longer
}

// plus returns the sum of both.
func (s sums) plus(more sums) sums {
	sum := maps.Clone(s)
	for at, n := range more {
		sum[at] += n
	}
	return sum
}

// minus returns s without other.
func (s sums) minus(other sums) sums {
	rest := maps.Clone(s)
	for at, n := range other {
		rest[at] -= n
	}
	return rest
}

// later returns s in windows that begin d later.
func (s sums) later(d time.Duration) sums {
	moved := sums{}
	for at, n := range s {
		at.start = at.start.Add(d)
		moved[at] = n
	}
	return moved
}

// add adds what one write took of each limit, which is a call if any of it is more than nothing.
func (s sums) add(at place, took map[string]int64) {
	call := false
	for limit, n := range took {
		at.limit = limit
		s[at] += n
		call = call || n > 0
	}
	if at.limit = calls; call {
		s[at]++
	}
}

// tokens returns s without calls.
func (s sums) tokens() sums {
	tokens := maps.Clone(s)
	maps.DeleteFunc(tokens, func(at place, _ int64) bool { return at.limit == calls })
	return tokens
}

// diff returns how got differs from s. That nothing is consumed somewhere may be said or not.
func (s sums) diff(got sums) string {
	zero := func(_ place, n int64) bool { return n == 0 }
	s, got = maps.Clone(s), maps.Clone(got)
	maps.DeleteFunc(s, zero)
	maps.DeleteFunc(got, zero)
	return cmp.Diff(s, got, cmp.AllowUnexported(place{}))
}

// windows returns what the windows of these entities hold.
func (w *world) windows(t testing.TB, span usage.Span, entities []string) sums {
	t.Helper()
	all := sums{}
	for _, entity := range entities {
		for u, err := range usage.Read(t.Context(), w.client, w.table, usage.Question{Entity: entity, Span: span}) {
			if err != nil {
				t.Fatal(err)
			}
			at := place{entity: u.Entity, resource: u.Resource, start: u.Start}
			for _, spent := range u.Limits {
				at.limit = spent.Limit
				all[at] = spent.Millitokens
			}
			at.limit = calls
			all[at] = u.Writes
		}
	}
	return all
}

// stream is what the table's stream has, by hour, and parts of it that a broken reader takes for something
// else.
type stream struct {
	consumed sums
	created  sums // by the writes that created buckets
	refunded sums // given back: below 0
	expired  sums // what buckets had consumed when they were deleted, as if a call took it then
}

// by returns s in longer windows.
func (s *stream) by(d time.Duration) *stream {
	return &stream{s.consumed.by(d), s.created.by(d), s.refunded.by(d), s.expired.by(d)}
}

// streamed reads the table's stream and adds it up without anything of ours.
func (w *world) streamed(t testing.TB) *stream {
	t.Helper()
	s := &stream{sums{}, sums{}, sums{}, sums{}}
	for r := range w.records(t) {
		if !strings.HasPrefix(streamText(r.Dynamodb.Keys["SK"]), "#BUCKET#") {
			continue
		}
		was, is := r.Dynamodb.OldImage, r.Dynamodb.NewImage
		removed := r.EventName == types.OperationTypeRemove
		if removed {
			was, is = nil, was
		}
		at := place{entity: streamText(is["entity_id"]), resource: streamText(is["resource"])}
		at.start = aws.ToTime(r.Dynamodb.ApproximateCreationDateTime).UTC().Truncate(time.Hour)
		took, refunded := map[string]int64{}, map[string]int64{}
		for name := range is {
			if limit, ok := consumption(name); ok {
				took[limit] = streamNumber(t, is[name]) - streamNumber(t, was[name])
				refunded[limit] = min(took[limit], 0)
			}
		}
		if removed {
			s.expired.add(at, took)
			continue
		}
		s.consumed.add(at, took)
		s.refunded.add(at, refunded)
		if was == nil {
			s.created.add(at, took)
		}
	}
	return s
}

// records reads the stream from its beginning to where it ends now.
func (w *world) records(t testing.TB) func(func(types.Record) bool) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	return func(yield func(types.Record) bool) {
		stream, err := w.streams.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &w.arn})
		must(err)
		for _, shard := range stream.StreamDescription.Shards {
			at, err := w.streams.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
				StreamArn: &w.arn, ShardId: shard.ShardId, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
			})
			must(err)
			for next := at.ShardIterator; next != nil; {
				page, err := w.streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: next})
				must(err)
				for _, r := range page.Records {
					if !yield(r) {
						return
					}
				}
				if next = page.NextShardIterator; len(page.Records) == 0 {
					break
				}
			}
		}
	}
}

func streamText(v types.AttributeValue) string {
	s, _ := v.(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

// streamNumber returns a number, 0 where there is none.
func streamNumber(t testing.TB, v types.AttributeValue) int64 {
	t.Helper()
	n, _ := v.(*types.AttributeValueMemberN)
	if n == nil {
		return 0
	}
	return number(t, n.Value)
}
