package dynamo

import (
	"context"
	"errors"
	"maps"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

var errUnprocessed = errors.New("DynamoDB left keys of a batch unread")

// batch reads keys for the legs, into items. It returns the keys that were left over; the outcome is that of a write.
func (c *charge) batch(ctx context.Context, keys []codec.Item, consistent bool, items map[item.Key]codec.Item) (wire.Outcome, []codec.Item, error) {
	began := c.env.Clock.Now()
	got, err := wire.BatchGet(ctx, c.api, c.table, keys, consistent)
	event := store.StoreEvent{Call: "BatchGetItem", Path: "levels", Outcome: "found", Read: got.Units, Began: began}
	if len(got.Items) == 0 {
		event.Outcome = "missing"
	}
	for _, l := range c.legs {
		if l.lacks&image == 0 {
			continue
		}
		event.Path = "read"
		event.Buckets++
		if got.Items[item.KeyOf(l.Key(l.entity))] == nil {
			event.Outcome = "missing"
		}
	}
	if err != nil {
		o, _ := wire.Classify(err)
		event.Outcome = "failed"
		c.observe(ctx, c.legs[0], event)
		return o, nil, wire.Explain(c.table, o, err)
	}
	c.retries.Answered(wire.Applied)
	c.observe(ctx, c.legs[0], event)
	c.skew.Watch(c.env, began, got.Metadata)
	maps.Copy(items, got.Items)
	return wire.Applied, got.Unprocessed, nil
}
