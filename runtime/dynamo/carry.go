package dynamo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/sluice-go/sluice/runtime/internal/item"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/layout"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/perlimit"
	"github.com/sluice-go/sluice/runtime/store"
)

// PerLimitItems has the store look, where a bucket is missing, for items of the layout that package perlimit describes, and
// make the bucket of them before it charges it: a query for each bucket that it creates, and, once in a bucket's life, a
// transaction. Every program that shares the table needs it from before the first bucket is made until `sluice migrate
// --cleanup` has removed the last such item: one without it makes full buckets beside them. Whoever wrote per-limit items
// stops before: what is written to one that was carried over counts nowhere.
func PerLimitItems() Option {
	return func(o *options) error {
		o.perLimit = true
		return nil
	}
}

// lacksPerLimit says that p creates a bucket that there may be per-limit items of.
func (c *charge) lacksPerLimit(l *leg) lack {
	if c.perLimit && l.plan.Path == plan.Create && l.plan.Decision == plan.Write && !l.surveyed {
		return legacy
	}
	return 0
}

// carryOver makes the missing bucket of l of its per-limit items, if there are any that count. What it writes takes nothing:
// the charge follows, by the bucket's own paths. The outcome is that of a write.
func (c *charge) carryOver(ctx context.Context, l *leg) (wire.Outcome, error) {
	c.lostAt = l
	items, o, err := c.survey(ctx, l)
	if o != wire.Applied {
		return o, err
	}
	counting, _ := ofSchema(l.spec, items)
	if len(counting) == 0 {
		l.surveyed = true
		return wire.Applied, nil
	}
	b, err := made(l.spec, l.shape, l.entity, counting, c.now())
	if err != nil {
		return wire.Failed, err
	}
	return c.sendCarry(ctx, l, b)
}

// survey reads l's per-limit items.
func (c *charge) survey(ctx context.Context, l *leg) ([]perlimit.Item, wire.Outcome, error) {
	began := c.env.Clock.Now()
	items, err := perLimitItems(ctx, c.api, c.table, l.entity, l.spec.Resource, func(out *dynamodb.QueryOutput, err error) {
		event := store.StoreEvent{Call: "Query", Path: "perlimit", Outcome: "found", Began: began}
		switch {
		case err != nil:
			event.Outcome = "failed"
		case len(out.Items) == 0:
			event.Outcome = "missing"
		}
		if err == nil && out.ConsumedCapacity != nil {
			event.Read = aws.ToFloat64(out.ConsumedCapacity.CapacityUnits)
		}
		c.observe(ctx, l, event)
		began = c.env.Clock.Now()
	})
	switch _, bad := errors.AsType[*store.SetupError](err); {
	case bad:
		return nil, wire.Failed, err
	case err != nil:
		o, _ := wire.Classify(err)
		return nil, o, wire.Explain(c.table, o, err)
	}
	c.retries.Answered(wire.Applied)
	return items, wire.Applied, nil
}

// sendCarry writes b and learns of l what it leaves, or who was there before. An unknown outcome needs no care: the bucket is
// read next, and what put it there charged nothing.
func (c *charge) sendCarry(ctx context.Context, l *leg, b *perlimit.Bucket) (wire.Outcome, error) {
	img := b.Image()
	in := b.Transaction(c.table, img)
	began := c.env.Clock.Now()
	out, err := c.api.TransactWriteItems(ctx, in, wire.NoRetry)
	event := store.StoreEvent{Call: "TransactWriteItems", Path: "carry", Began: began}
	o, seen := wire.Applied, began.UnixMilli()
	if err == nil {
		for _, used := range out.ConsumedCapacity {
			event.Write += aws.ToFloat64(used.CapacityUnits)
		}
		c.skew.Watch(c.env, began, out.ResultMetadata)
		c.recordCarrying(ctx)
	} else {
		img, seen = nil, predicted
		o, err = wire.ClassifyTransaction(err, len(in.TransactItems))
		event.Write = wire.CancelledUnits(o, len(in.TransactItems))
		err = wire.Explain(c.table, o, err)
	}
	l.learn(img, seen)
	c.retries.Answered(o)
	event.Outcome = o.String()
	c.observe(ctx, l, event)
	return o, err
}

// prospect returns the bucket that a missing one's per-limit items would make, or have made since it was read as missing; nil
// for none.
func (c *charge) prospect(ctx context.Context, l *leg) (*bucket.Image, error) {
	var items []perlimit.Item
	p := c.patience(lookupTries)
	err := p.Do(ctx, func() (err error) {
		items, _, err = c.survey(ctx, l)
		return err
	})
	if err != nil {
		return nil, err
	}
	counting, strays := ofSchema(l.spec, items)
	switch {
	case len(counting) > 0:
		b, err := made(l.spec, l.shape, l.entity, counting, c.now())
		if err != nil {
			return nil, err
		}
		return b.Image(), nil
	case len(items) > len(strays):
		err = p.Do(ctx, func() error {
			_, err := c.read(ctx, l)
			return err
		})
	}
	return l.view.Image, err
}

// recordCarrying notes in the table, once, in the background, that buckets are being carried over: see Carrier.Begin.
func (s *session) recordCarrying(ctx context.Context) {
	s.carrying.Do(func() {
		s.background.Start(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.env.SettleTimeout)
			defer cancel()
			if err := s.note(ctx, layout.Update(s.table, layout.Buckets, layout.Carrying)); err != nil {
				s.env.Logger.LogAttrs(ctx, slog.LevelWarn, "sluice: could not note in the table that per-limit items are carried over",
					slog.String("table", s.table), slog.Any("error", err))
			}
		})
	})
}

// perLimitItems reads the per-limit items of entity on resource, by limit. It tells each of its queries.
func perLimitItems(
	ctx context.Context, api wire.API, table, entity, resource string, tell func(*dynamodb.QueryOutput, error),
) (items []perlimit.Item, err error) {
	in := perlimit.Query(table, entity, resource)
	for {
		out, err := api.Query(ctx, in, wire.NoRetry)
		tell(out, err)
		if err != nil {
			return nil, err
		}
		for _, raw := range out.Items {
			decoded, err := perlimit.Decode(raw)
			if err != nil {
				return nil, &store.SetupError{
					What: fmt.Sprintf("the per-limit item %s is malformed", item.KeyOf(raw).String()), Err: err, Do: "mend or delete it",
				}
			}
			items = append(items, decoded)
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return items, nil
		}
	}
}

// ofSchema returns those of items that count and whose limit spec has or had, and the limits of those that it never had.
func ofSchema(spec *store.Spec, items []perlimit.Item) (counting []perlimit.Item, strays []string) {
	for _, item := range items {
		switch {
		case !slices.Contains(spec.Limits, item.Name) && !slices.Contains(spec.Removed, item.Name):
			strays = append(strays, item.Name)
		case item.Counts():
			counting = append(counting, item)
		}
	}
	return counting, strays
}

// made returns the bucket that items make under s. More than one transaction takes are a *store.SetupError.
func made(spec *store.Spec, s *override.Resolved, entity string, items []perlimit.Item, now int64) (*perlimit.Bucket, error) {
	if n := len(items); n > perlimit.MostItems {
		return nil, &store.SetupError{
			What: fmt.Sprintf("%s has %d per-limit items on %s, and one transaction takes %d", entity, n, spec.Resource, perlimit.MostItems),
			Do:   "delete those of limits that limits.yaml does not have",
		}
	}
	return &perlimit.Bucket{
		Entity: entity, Resource: spec.Resource, Names: spec.Limits, Limits: s.Limits, Version: s.Version, Op: wire.NewOp(), Items: items, Now: now,
	}, nil
}
