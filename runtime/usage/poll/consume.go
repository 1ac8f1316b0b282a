package poll

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/usage"
)

// Consumer takes what a Poller reads, beside its Aggregator or without one. Without an Aggregator, the Poller
// reads from the present end of each open shard. It takes every shard that is added later from its beginning.
// It keeps no checkpoints, so a new Poller misses what was written before it. Its methods return quickly:
// shards wait for them.
type Consumer interface {
	// Take takes a reply of the service: the next records of a shard, in their order, or none. asked is the time
	// of the request. Records may come again after later ones. A shard has one call at a time, and shards call
	// side by side. Records that cannot be adapted are left out.
	Take(shard string, records []codec.Record, asked time.Time)
	// Reading says which shards are read now. All that is written later is in these, or in their children.
	Reading(shards []string)
	// Lost says that the stream may have had records that no Take will get.
	Lost()
}

// meet decides where a shard is read from that has been listed for the first time.
func meet(r *run, l *tracked, s shard) {
	switch {
	case r.Aggregator != nil || r.listed:
	case s.closed: // nothing will be added to it
		l.done = true
	default:
		l.latest, l.at = true, r.began
	}
}

// orphans reports whether a new shard has no parent that was read: a stream was switched on again, and what
// was written in between is in none.
func orphans(r *run, found listing, known map[string]bool) bool {
	for _, s := range found.shards {
		if r.listed && !known[s.id] && r.tracked[s.parent] == nil {
			return true
		}
	}
	return false
}

// consumers are those of a Poller.
type consumers []Consumer

// lost says that records may be lost.
func (all consumers) lost() {
	for _, c := range all {
		c.Lost()
	}
}

// reading says which shards are read, in the order of their ids.
func (all consumers) reading(ids []string, tracked map[string]*tracked) {
	var shards []string
	for _, id := range ids {
		if tracked[id].reading {
			shards = append(shards, id)
		}
	}
	for _, c := range all {
		c.Reading(shards)
	}
}

// take passes on a reply.
func (all consumers) take(shard string, records []types.Record, asked time.Time) {
	if len(all) == 0 {
		return
	}
	adapted := make([]codec.Record, 0, len(records))
	for _, r := range records {
		if rec, err := usage.FromStreams(r); err == nil {
			adapted = append(adapted, rec)
		}
	}
	for _, c := range all {
		c.Take(shard, adapted, asked)
	}
}
