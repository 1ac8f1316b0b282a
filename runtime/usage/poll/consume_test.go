package poll_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/usage/poll"
)

// consumer counts what it takes.
type consumer struct {
	mu      sync.Mutex
	buckets int
	replies int
	shards  []string
	lost    int
}

func (c *consumer) Take(_ string, records []codec.Record, _ time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replies++
	for _, rec := range records {
		if rec.Bucket() != "" {
			c.buckets++
		}
	}
}

func (c *consumer) Reading(shards []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shards = shards
}

func (c *consumer) Lost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost++
}

// state returns what c has seen.
func (c *consumer) state() (buckets, shards, lost int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buckets, len(c.shards), c.lost
}

// TestConsumer: without an aggregator a poller begins at the present end, takes every record after that, of
// new shards too, and writes nothing. A child of what was read is no loss.
func TestConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.consume(1, 10)
		c, calls := &consumer{}, w.tap()
		poller, err := poll.New(poll.Config{Streams: calls, Table: w.table, Consumers: []poll.Consumer{c},
			Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- poller.Run(ctx) }()
		later(time.Minute)
		if buckets, shards, _ := c.state(); buckets != 0 || shards == 0 {
			t.Errorf("%d records from before, %d shards", buckets, shards)
		}
		w.consume(1, 10)
		w.split()
		w.all(10)
		later(5 * time.Minute)
		if buckets, _, lost := c.state(); buckets != 11 || lost != 0 {
			t.Errorf("%d records, %d losses; want 11, and none", buckets, lost)
		}
		end()
		if err := <-ended; err != nil || calls.writes() != 0 {
			t.Errorf("%v, %d writes", err, calls.writes())
		}
	})
}

// TestConsumerBeside: an aggregator's poller passes on what it counts.
func TestConsumerBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.all(10)
		c := &consumer{}
		poller := w.poller(w.tap())
		poller.Consumers = []poll.Consumer{c}
		if err := poller.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if buckets, _, lost := c.state(); buckets != 10 || lost != 0 {
			t.Errorf("%d records, %d losses", buckets, lost)
		}
		if diff := w.totals().wrong(); diff != "" {
			t.Error(diff)
		}
	})
}

// TestConsumerLost: a consumer is told that records may be gone, as the log is.
func TestConsumerLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.consume(1, 10)
		w.drain(w.tap())
		w.consume(1, 10)
		later(26 * time.Hour)
		c := &consumer{}
		poller := w.poller(w.tap())
		poller.Consumers = []poll.Consumer{c}
		if err := poller.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, _, lost := c.state(); lost == 0 {
			t.Error("no loss was reported to it")
		}
	})
}
