package poll_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/sluice-go/sluice/internal/test/longform"
)

// TestLost: that records may be gone is said when they can be, once, and otherwise not.
func TestLost(t *testing.T) {
	longform.NoRace(t, "TestKilled runs the same goroutines")
	for _, test := range []struct {
		name   string
		splits int          // before a Poller reads all there is
		before func(*world) // it is off
		off    time.Duration
		lost   int
	}{
		{"a little off", 0, func(w *world) { w.consume(1, 10) }, 22 * time.Hour, 0},
		{"too long", 0, func(w *world) { w.consume(1, 10) }, 26 * time.Hour, 1},
		{"too long, shard gone", 0, func(w *world) { w.consume(1, 10); w.split() }, 26 * time.Hour, 1},
		{"too long, nothing read", 1, func(w *world) { w.all(10) }, 26 * time.Hour, 2},
		{"too long, all gone", 0, func(w *world) { w.consume(1, 10); w.split(); w.split() }, 60 * time.Hour, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.consume(1, 1)
				for range test.splits {
					w.split()
				}
				w.idle = 10 * time.Minute
				stop := w.run(w.tap())
				later(30 * time.Hour) // an idle shard is no loss
				if err := stop(); err != nil {
					t.Fatal(err)
				}
				if log := w.logged(); strings.Contains(log, "lost") {
					t.Errorf("it ran all the time, and logged %s", log)
				}
				test.before(w)
				later(test.off)
				w.consume(2, 100)
				w.drain(w.tap())
				if got := w.progress(); got.Lost != test.lost || got.Counted == 0 {
					t.Errorf("got %+v", got)
				}
				const lost = "level=ERROR msg=\"sluice: records may be lost"
				if logged := strings.Count(w.logged(), lost); logged != test.lost {
					t.Errorf("it was logged %d times, want %d", logged, test.lost)
				}
				sums := w.totals()
				if diff := sums.wrong(); (diff != "") != (test.lost > 0) || sums.lose() != (test.lost > 0) {
					t.Errorf("%d lost, but the windows differ by %q", test.lost, diff)
				}
				later(time.Hour)
				w.consume(2, 100)
				w.drain(w.tap())
				if got := w.progress(); got.Lost != 0 || got.Counted != 1 {
					t.Errorf("the next time: %+v", got)
				}
			})
		})
	}
}

// all has so many entities take millitokens that there are some in each of two shards.
func (w *world) all(milli int) {
	w.Helper()
	for n := range 10 {
		w.consume(n, milli)
	}
}

// TestLostInChildren: a shard without a checkpoint is one that its parent's Poller never came to.
func TestLostInChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.all(1)
		w.split()
		ctx, cancel := context.WithCancel(t.Context())
		p := w.tap()
		p.after = func(_ context.Context, c call) error {
			if in, ok := c.in.(*dynamodb.PutItemInput); ok && in.Item["done"] != nil {
				cancel() // between the parent's end and the children's beginning
			}
			return nil
		}
		if err := w.poller(p).Drain(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if n := len(w.checkpoints()); n != 1 {
			t.Fatalf("%d checkpoints, want the parent's", n)
		}
		w.all(10)
		later(26 * time.Hour)
		w.all(100)
		w.drain(w.tap())
		if got := w.progress(); got.Lost != 2 || got.Counted != 10 {
			t.Errorf("got %+v", got)
		}
	})
}

// TestDoneStays: a Poller that is behind another does not take back that a shard is done.
func TestDoneStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.all(1)
		w.split()
		w.drain(w.tap())
		ctx, cancel := context.WithCancel(t.Context())
		p := w.tap()
		p.after = func(_ context.Context, c call) error {
			switch out := c.out.(type) {
			case *dynamodb.QueryOutput: // it began before there was a checkpoint
				out.Items = nil
			case *dynamodbstreams.GetRecordsOutput: // it does not know yet that this is all
				out.NextShardIterator = c.in.(*dynamodbstreams.GetRecordsInput).ShardIterator
			case *dynamodb.PutItemOutput:
				t.Error("a checkpoint was taken back")
			}
			return nil
		}
		p.before = func(context.Context, call) error {
			if p.count("GetRecords") == 2 {
				cancel()
				return ctx.Err()
			}
			return nil
		}
		if err := w.poller(p).Drain(ctx); !errors.Is(err, context.Canceled) || p.count("PutItem") == 0 {
			t.Fatal(err)
		}
		done := 0
		for _, item := range w.checkpoints() {
			if text(item["done"]) == "true" {
				done++
			}
		}
		if done != 1 {
			t.Errorf("%d shards are done, want 1", done)
		}
		w.exact()
	})
}

// TestFirstStart: a Poller that comes to a table that is used for long counts what there is, and claims no
// more.
func TestFirstStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.consume(1, 1)
		later(30 * time.Hour)
		w.consume(2, 1)
		w.drain(w.tap())
		if got := w.progress(); got.Lost != 0 || got.Counted != 1 {
			t.Errorf("got %+v", got)
		}
	})
}

// TestIdleForLong: what comes after a position that is trimmed itself is all there, if a checkpoint says that
// the shard was idle.
func TestIdleForLong(t *testing.T) {
	longform.NoRace(t, "TestKilled runs the same goroutines")
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.split()
		w.all(1)
		w.idle = 10 * time.Minute
		stop := w.run(w.tap())
		later(40 * time.Hour)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		later(20 * time.Hour)
		for n := range 10 {
			w.consume(n, 5)
		}
		w.drain(w.tap())
		w.exact()
		if got := w.progress(); got.Lost != 0 || got.Counted != 10 {
			t.Errorf("got %+v", got)
		}
	})
}

// TestUnlisted: a list that misses a shard for a moment, as one that is behind does, is not the shard's end.
func TestUnlisted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.all(1)
		w.drain(w.tap())
		p := w.tap()
		p.after = func(_ context.Context, c call) error {
			if out, ok := c.out.(*dynamodbstreams.DescribeStreamOutput); ok && p.count("DescribeStream") == 1 {
				out.StreamDescription.Shards = nil
			}
			return nil
		}
		stop := w.run(p)
		later(2 * time.Minute)
		w.all(10)
		later(10 * time.Second)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if got := w.progress(); got.Counted != 10 || got.Lost != 0 {
			t.Errorf("once it is listed: %+v", got)
		}
		w.all(100)
		w.drain(w.tap())
		w.exact()
	})
}
