package feed_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/sluice-go/sluice/examples/regionsync/limits"
	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/region"
	"github.com/sluice-go/sluice/runtime/region/feed"
	"github.com/sluice-go/sluice/runtime/region/images"
	"github.com/sluice-go/sluice/runtime/store"
	"github.com/sluice-go/sluice/runtime/usage/poll"
)

// table is the name of every world's table.
const table = "rate_limits"

// world is a region's table with its stream, and a sync that follows it.
type world struct {
	*testing.T

	engine *memdynamo.Engine
	lim    *limits.Limiter
	images *images.Images
	table  *counted
	sync   *region.Sync
	down   atomic.Bool // the stream does not answer
	log    logged
}

// counted counts full reads.
type counted struct {
	region.Table
	reads int
}

func (c *counted) Each(ctx context.Context, resource string, f func(string, *bucket.Image)) error {
	c.reads++
	return c.Table.Each(ctx, resource, f)
}

// logged is the messages logged.
type logged struct {
	mu       sync.Mutex
	messages []string
}

func (l *logged) Enabled(context.Context, slog.Level) bool { return true }
func (l *logged) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logged) WithGroup(string) slog.Handler            { return l }
func (l *logged) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.messages = append(l.messages, r.Message)
	return nil
}

// objects is a store of snapshots.
type objects map[string][]byte

func (o objects) Get(_ context.Context, name string) ([]byte, error) {
	if object, ok := o[name]; ok {
		return object, nil
	}
	return nil, fs.ErrNotExist
}

func (o objects) Put(_ context.Context, name string, object []byte) error {
	o[name] = object
	return nil
}

// tapped has the world's faults in the stream's way.
type tapped struct {
	poll.Streams
	w *world
}

func (s tapped) GetRecords(ctx context.Context, in *dynamodbstreams.GetRecordsInput,
	opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	if s.w.down.Load() {
		return nil, errors.New("no answer")
	}
	return s.Streams.GetRecords(ctx, in, opts...)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, engine: memdynamo.New()}
	if _, err := operator.CreateTable(t.Context(), w.engine.Client(), table); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.lim, err = limits.New(dynamo.New(w.engine.Client(), table)); err != nil {
		t.Fatal(err)
	}
	w.images = images.New(w.lim.Specs())
	w.table = &counted{Table: operator.NewRegional(w.engine.Client(), table, time.Now)}
	if w.sync, err = region.New(region.Config{Region: "eu-central-1", Table: w.table, Snapshots: objects{},
		Specs: w.lim.Specs(), Images: w.images, Audit: time.Hour, Logger: slog.New(&w.log)}); err != nil {
		t.Fatal(err)
	}
	return w
}

// run follows the stream, and returns how to stop.
func (w *world) run() (stop func() error) {
	w.Helper()
	poller, err := poll.New(poll.Config{Streams: tapped{w.engine.Streams(), w}, Table: table,
		Consumers: []poll.Consumer{feed.New(w.images, "")}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- feed.Run(ctx, poller, w.images, store.SystemClock(), time.Minute, slog.New(&w.log))
	}()
	return func() error {
		cancel()
		return <-ended
	}
}

// spend has users make calls.
func (w *world) spend(users ...int) {
	w.Helper()
	for _, n := range users {
		if _, err := w.lim.GPT4.Acquire(w.Context(), limits.User{ID: fmt.Sprint(n)},
			limits.GPT4Cost{RPM: 1}); err != nil {
			w.Fatal(err)
		}
	}
}

// window has a window pass, and then a cycle.
func (w *world) window() *region.Report {
	w.Helper()
	time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
	synctest.Wait()
	r, err := w.sync.Cycle(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// TestFeed: a sync reads all buckets once, and then sees what is new, what is used and what is gone in the
// stream alone.
func TestFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.spend(1, 2)
		stop := w.run()
		w.window() // an epoch begins
		if r := w.window(); r.Read != "start" || r.Quotas != 4 || w.table.reads != 1 {
			t.Errorf("%q, %d quotas, %d reads; want all of 2 buckets, read once", r.Read, r.Quotas, w.table.reads)
		}
		w.spend(1, 3)
		for range 5 {
			w.spend(3)
			if r := w.window(); r.Read != "" || r.Quotas != 6 || r.Missed != 0 || len(r.Failed) > 0 {
				t.Errorf("%+v", r)
			}
		}
		if _, err := w.lim.Entities().Erase(t.Context(), limits.User{ID: "3"}); err != nil {
			t.Fatal(err)
		}
		w.window()
		if w.table.reads != 1 {
			t.Errorf("%d reads, want 1", w.table.reads)
		}
		time.Sleep(50 * time.Minute) //nolint:forbidigo // in a bubble
		if r := w.window(); r.Read != "" {
			t.Errorf("read for %q before an hour has passed", r.Read)
		}
		time.Sleep(10 * time.Minute) //nolint:forbidigo // in a bubble
		if r := w.window(); r.Read != "audit" || w.table.reads != 2 {
			t.Errorf("%q, %d reads, want an audit", r.Read, w.table.reads)
		}
		if r := w.window(); r.Missed != 0 || r.Read != "" {
			w.window()
			t.Errorf("the audit has found %d buckets of which the stream had told", r.Missed)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestFeedAudit: the control. An audit finds what the stream did not have.
func TestFeedAudit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.run()
		w.window()
		w.window()
		w.images.Reading([]string{"quiet"})
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		w.spend(1, 2)
		heard := func() *region.Report {
			w.images.Heard("quiet", time.Now().Add(time.Minute), time.Time{})
			return w.window()
		}
		if r := heard(); r.Quotas != 0 {
			t.Errorf("%d quotas of buckets that were in no record", r.Quotas)
		}
		time.Sleep(time.Hour) //nolint:forbidigo // in a bubble
		w.spend(1)
		if r := heard(); r.Read != "audit" || r.Quotas != 2 {
			t.Errorf("%q: %d quotas, want those of the bucket that is used", r.Read, r.Quotas)
		}
		heard()
		if r := heard(); r.Missed == 0 && !slices.Contains(w.log.messages,
			"sluice: an audit has found buckets whose writes the table's stream did not have") {
			t.Errorf("the audit said nothing: %+v %q", r, w.log.messages)
		}
	})
}

// TestFeedOutage: while the stream does not answer, rates stay as they were, which is said. Then nothing has
// to be read again.
func TestFeedOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.spend(1)
		stop := w.run()
		w.window()
		w.window()
		w.spend(1)
		w.window()
		w.down.Store(true)
		w.spend(2)
		w.window()
		w.window()
		r := w.window()
		if len(r.Failed) != 1 || r.Quotas != 2 || !r.Beating {
			t.Errorf("%+v, want the heartbeat, what was known, and one failure", r)
		}
		w.down.Store(false)
		w.spend(2) // its bucket expires after two minutes
		w.window()
		if r := w.window(); len(r.Failed) > 0 || r.Quotas != 4 || w.table.reads != 1 {
			t.Errorf("%+v after %d reads, want both buckets after 1", r, w.table.reads)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestFeedStart: a stream that cannot be read is said at the start.
func TestFeedStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		poller, err := poll.New(poll.Config{Streams: w.engine.Streams(), Table: "none",
			Consumers: []poll.Consumer{feed.New(w.images, "")}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		err = feed.Run(t.Context(), poller, w.images, store.SystemClock(), time.Minute, slog.New(&w.log))
		if _, setup := errors.AsType[*store.SetupError](err); !setup {
			t.Error(errtext.Of(err))
		}
	})
}
