package usage

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/google/go-cmp/cmp"
)

// TestAddStreams: it says how many records counted and were put aside that are ahead of where it has to go
// on, and puts aside what it cannot adapt.
func TestAddStreams(t *testing.T) {
	l := newLedger(t)
	api := &tap{API: l.client}
	a := l.aggregator(t, api)
	a.config.Writers = 1
	at := noon
	image := func(sort string, tc int) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{
			"PK":        &types.AttributeValueMemberS{Value: "ENTITY#user-1"},
			"SK":        &types.AttributeValueMemberS{Value: sort},
			"entity_id": &types.AttributeValueMemberS{Value: "user-1"},
			"b_rpm_tc":  &types.AttributeValueMemberN{Value: strconv.Itoa(tc)},
		}
	}
	record := func(sequence string, old, now map[string]types.AttributeValue) types.Record {
		return types.Record{EventName: types.OperationTypeModify, Dynamodb: &types.StreamRecord{
			SequenceNumber: aws.String(sequence), ApproximateCreationDateTime: &at, OldImage: old, NewImage: now,
		}}
	}
	bucket := func(tc int) map[string]types.AttributeValue { return image("#BUCKET#gpt-4", tc) }
	records := []types.Record{
		record("100", bucket(0), bucket(1000)),
		record("101", image("#CONFIG#gpt-4", 0), image("#CONFIG#gpt-4", 7)), // no bucket
		record("102", bucket(1000), bucket(1000)),                           // nothing taken
		record("103", nil, bucket(9000)),                                    // has no image
		record("104", bucket(1000), bucket(3000)),
	}
	broken := errors.New("broken")
	sink := a.config.Poisoned
	a.config.Poisoned = func(context.Context, Poison) error { return broken }
	added, err := a.AddStreams(t.Context(), "shardId-1", records)
	failed, uncounted := errors.AsType[*UncountedError](err)
	if _, isSink := errors.AsType[*SinkError](err); added != (Added{Counted: 1}) || !uncounted ||
		failed.Sequence != "103" || !isSink || !errors.Is(err, broken) {
		t.Errorf("got %+v, %v: want 1, and to go on from 103", added, err)
	}
	a.config.Poisoned = sink
	api.fails = func(int) (before, after error) { return broken, nil }
	added, err = a.AddStreams(t.Context(), "shardId-1", records[1:])
	if failed, uncounted = errors.AsType[*UncountedError](err); added != (Added{PutAside: 1}) || !uncounted ||
		failed.Sequence != "104" {
		t.Errorf("got %+v, %v: want 0, and to go on from 104", added, err)
	}
	api.fails = nil
	if added, err = a.AddStreams(t.Context(), "shardId-1", records); added != (Added{2, 1}) || err != nil {
		t.Errorf("got %+v, %v: want both that consumed something", added, err)
	}
	if diff := cmp.Diff(map[string]map[string]int64{"user-1 2030-01-02T12": {"rpm": 3000, "writes": 2}},
		l.windows(t, true)); diff != "" {
		t.Errorf("hours (-want +got):\n%s", diff)
	}
	if len(l.poison) != 2 { // delivered twice
		t.Errorf("put aside: %q", l.poison)
	}
}
