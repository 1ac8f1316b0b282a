package poll_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/internal/test/longform"
)

// order watches that no shard is begun before its parent was read to its end.
type order struct {
	mu      sync.Mutex
	parents map[string]string
	shards  map[string]string // by iterator
	ended   map[string]bool
	wrong   []string
}

// watch returns what sees a call and its reply.
func (o *order) watch(_ context.Context, c call) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch out := c.out.(type) {
	case *dynamodbstreams.GetShardIteratorOutput:
		shard := aws.ToString(c.in.(*dynamodbstreams.GetShardIteratorInput).ShardId)
		o.shards[aws.ToString(out.ShardIterator)] = shard
		if parent := o.parents[shard]; parent != "" && !o.ended[parent] {
			o.wrong = append(o.wrong, fmt.Sprintf("%s was begun before its parent %s was done", shard, parent))
		}
	case *dynamodbstreams.GetRecordsOutput:
		shard := o.shards[aws.ToString(c.in.(*dynamodbstreams.GetRecordsInput).ShardIterator)]
		if out.NextShardIterator == nil {
			o.ended[shard] = true
			return nil
		}
		o.shards[*out.NextShardIterator] = shard
	}
	return nil
}

// family has the table's shards split often, and returns them by child.
func (w *world) family() map[string]string {
	w.Helper()
	parents := map[string]string{}
	for generation := range 7 { // 127 shards
		for n := range 12 {
			w.consume(n, 100+generation)
		}
		if generation < 6 {
			w.split()
		}
	}
	streams, err := w.streams.ListStreams(w.Context(), &dynamodbstreams.ListStreamsInput{TableName: &w.table})
	if err != nil {
		w.Fatal(err)
	}
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: streams.Streams[0].StreamArn}
	for {
		out, err := w.streams.DescribeStream(w.Context(), in)
		if err != nil {
			w.Fatal(err)
		}
		for _, s := range out.StreamDescription.Shards {
			parents[aws.ToString(s.ShardId)] = aws.ToString(s.ParentShardId)
		}
		if in.ExclusiveStartShardId = out.StreamDescription.LastEvaluatedShardId; in.ExclusiveStartShardId == nil {
			return parents
		}
	}
}

// TestParentsFirst: shards are read after their parents, in a family too large for one page of its
// description.
func TestParentsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		o := &order{parents: w.family(), shards: map[string]string{}, ended: map[string]bool{}}
		if len(o.parents) != 127 {
			t.Fatalf("%d shards", len(o.parents))
		}
		p := w.tap()
		p.after = o.watch
		w.drain(p)
		w.exact()
		if len(o.wrong) > 0 {
			t.Error(o.wrong)
		}
		if got := w.progress(); got.Shards != 127 || got.Done != 63 || got.Counted != 12*7 {
			t.Errorf("got %+v", got)
		}
		kept := w.checkpoints()
		done := 0
		for shard := range o.ended {
			if text(kept[shard]["done"]) == "true" {
				done++
			}
		}
		if done != 63 || len(kept) != 127 {
			t.Errorf("%d checkpoints, %d of them of shards that are done", len(kept), done)
		}
	})
}

// TestParentsFirstControl: a Poller that does not know parents reads shards beside them.
func TestParentsFirstControl(t *testing.T) {
	longform.NoRace(t, "a control, whose broken variant ships nowhere")
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		o := &order{parents: w.family(), shards: map[string]string{}, ended: map[string]bool{}}
		p := w.tap()
		p.after = func(ctx context.Context, c call) error {
			if out, ok := c.out.(*dynamodbstreams.DescribeStreamOutput); ok {
				for i := range out.StreamDescription.Shards {
					out.StreamDescription.Shards[i].ParentShardId = nil
				}
			}
			return o.watch(ctx, c)
		}
		w.drain(p)
		if len(o.wrong) == 0 || !strings.Contains(o.wrong[0], " was begun before its parent ") {
			t.Errorf("%q, want that shards were begun before their parents", o.wrong)
		}
	})
}

// TestSplitMeanwhile: a Poller follows shards that are split under way, and streams and shards that come in
// pages of one.
func TestSplitMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.tap()
		p.before = func(_ context.Context, c call) error {
			switch in := c.in.(type) {
			case *dynamodbstreams.ListStreamsInput:
				in.Limit = aws.Int32(1)
			case *dynamodbstreams.DescribeStreamInput:
				in.Limit = aws.Int32(1)
			}
			return nil
		}
		w.consume(3, 5)
		w.stream(false, "")
		w.stream(true, types.StreamViewTypeNewAndOldImages)
		stop := w.run(p)
		for range 3 {
			for n := range 10 {
				w.consume(n, 7)
				later(time.Second)
			}
			w.split()
		}
		later(10 * time.Second)
		w.exact()
		if got := w.progress(); got.Streams != 2 || got.Shards != 1+15 || got.Done != 1+7 || got.Reading != 8 {
			t.Errorf("got %+v", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if lists := p.count("ListStreams"); lists > 2*40 {
			t.Errorf("%d pages of streams: shards are listed more often than they end", lists)
		}
	})
}

// TestOtherAccount: where the table is named by its ARN, streams of a table of the same name elsewhere are
// not its own.
func TestOtherAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		described, err := w.client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &w.table})
		if err != nil {
			t.Fatal(err)
		}
		w.consume(1, 1)
		w.table = aws.ToString(described.Table.TableArn)
		w.drain(w.tap())
		w.exact()

		w.consume(1, 10)
		p := w.tap()
		p.after = func(_ context.Context, c call) error {
			if out, ok := c.out.(*dynamodbstreams.ListStreamsOutput); ok {
				for i := range out.Streams {
					elsewhere := strings.Replace(*out.Streams[i].StreamArn, ":table/", "1:table/", 1)
					out.Streams[i].StreamArn = &elsewhere
				}
			}
			return nil
		}
		if err := w.poller(p).Drain(t.Context()); err == nil ||
			!strings.Contains(err.Error(), " has no stream that is on") || p.count("DescribeStream") > 0 {
			t.Errorf("got %v, and streams were described %d times", err, p.count("DescribeStream"))
		}
	})
}
