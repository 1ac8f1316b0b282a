// Package feed keeps the images of regional sync current from a table's stream.
//
//	poller, err := poll.New(poll.Config{
//		Streams: streams, Table: "rate_limits",
//		Consumers: []poll.Consumer{feed.New(buckets, "")},
//	})
//	if err != nil {
//		return err
//	}
//	return feed.Run(ctx, poller, buckets, store.SystemClock(), time.Minute, slog.Default())
//
// [Run] runs the poller beside the Run of a region.Sync, whose Config has the same images. With an Aggregator
// in the same poll.Config, one reader serves usage and regions.
package feed

import (
	"context"
	"log/slog"
	"time"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/region/images"
	"github.com/sluice-go/sluice/runtime/store"
	"github.com/sluice-go/sluice/runtime/usage/poll"
)

// Feed passes the records of buckets to an images.Images. It is a poll.Consumer.
type Feed struct {
	images    *images.Images
	namespace string
}

// New returns a Feed of the buckets of one namespace of the table, "" for the part without a name.
func New(into *images.Images, namespace string) *Feed { return &Feed{into, namespace} }

// Take passes on a reply's records. Like a read of all buckets, it leaves out malformed ones.
func (f *Feed) Take(shard string, records []codec.Record, asked time.Time) {
	var last time.Time
	for _, rec := range records {
		last = rec.At
		if rec.Namespace() == f.namespace {
			f.pass(rec)
		}
	}
	f.images.Heard(shard, asked, last)
}

func (f *Feed) pass(rec codec.Record) {
	if resource := rec.Bucket(); f.images.Holds(resource) {
		if entity, img, err := codec.BucketImage(rec.New); err == nil {
			f.images.Put(resource, entity, rec.Sequence, img)
		}
	} else if resource := rec.Deleted(); f.images.Holds(resource) {
		if entity, img, err := codec.BucketImage(rec.Old); err == nil {
			f.images.Delete(resource, entity, rec.Sequence, img)
		}
	}
}

// Reading implements poll.Consumer.
func (f *Feed) Reading(shards []string) { f.images.Reading(shards) }

// Lost implements poll.Consumer.
func (f *Feed) Lost() { f.images.Lost() }

// Run runs a poller that feeds into, until ctx ends. It returns an error, of poll.Poller's Run, if the
// stream cannot be read from the start. Later failures are logged, and the stream is followed again after
// pause: all buckets are read then.
func Run(
	ctx context.Context, p *poll.Poller, into *images.Images, clock store.Clock, pause time.Duration,
	logger *slog.Logger,
) error {
	for {
		err := p.Run(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // this is how it ends
		}
		select {
		case <-into.Ready():
		default:
			return err
		}
		into.Lost()
		logger.LogAttrs(ctx, slog.LevelError, "sluice: the table's stream cannot be followed, and is tried again",
			slog.Any("error", err))
		select {
		case <-clock.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}
