package dynamo

import (
	"context"
	"errors"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/layout"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/perlimit"
	"github.com/sluice-go/sluice/runtime/store"
)

// PerLimitItems makes the store look for per-limit items (package perlimit) where a bucket is missing, and
// make the bucket of them before it charges it. That takes a query for each bucket that it creates and, once
// in a bucket's life, a transaction. Every program that shares the table needs the option from before the
// first bucket is made until `sluice migrate --cleanup` has removed the last such item: a program without it
// makes full buckets beside them. Programs that write per-limit items stop before: a write to an item that
// was carried over counts nowhere.
func PerLimitItems() Option {
	return func(o *options) error {
		o.perLimit = true
		return nil
	}
}

// legacyNeeded returns needLegacy if t's plan creates a bucket of which there may be per-limit items.
func (r reader) legacyNeeded(t *target) need {
	if r.scheduler.perLimit && t.plan.Path == plan.Create && t.plan.Decision == plan.Write && !t.checkedLegacy {
		return needLegacy
	}
	return 0
}

// carryOver makes t's missing bucket of its per-limit items, if any count. The write takes nothing; the
// charge follows by the bucket's own paths. The outcome is that of a write.
func (r reader) carryOver(ctx context.Context, t *target) (wire.Outcome, error) {
	items, o, err := r.readLegacy(ctx, t)
	if o != wire.Applied {
		return o, err
	}
	unmarked, _ := ofSchema(t.resource.spec, items)
	if len(unmarked) == 0 {
		t.checkedLegacy = true
		return wire.Applied, nil
	}
	b, err := made(t.resource.spec, t.shape, t.entity, unmarked, r.scheduler.conn.now())
	if err != nil {
		return wire.Failed, err
	}
	return r.sendCarry(ctx, t, b)
}

// readLegacy reads t's per-limit items.
func (r reader) readLegacy(ctx context.Context, t *target) ([]perlimit.Item, wire.Outcome, error) {
	conn := r.scheduler.conn
	began := conn.env.Clock.Now()
	report := func(out *dynamodb.QueryOutput, err error) {
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
		conn.reportFor(ctx, t, event)
		began = conn.env.Clock.Now()
	}
	items, err := perLimitItems(ctx, conn.api, conn.table, t.entity, t.resource.spec.Resource, report)
	if _, bad := errors.AsType[*store.SetupError](err); bad {
		return nil, wire.Failed, err
	}
	if err != nil {
		o, _ := wire.Classify(err)
		return nil, o, wire.Explain(conn.table, o, err)
	}
	conn.budget.Answered(wire.Applied)
	return items, wire.Applied, nil
}

// sendCarry writes b, and updates t with the image that it leaves. An unknown outcome needs no care: the
// bucket is read next, and the write that put it there charged nothing.
func (r reader) sendCarry(ctx context.Context, t *target, b *perlimit.Bucket) (wire.Outcome, error) {
	conn := r.scheduler.conn
	img := b.Image()
	in := b.Transaction(conn.table, img)
	began := conn.env.Clock.Now()
	out, err := conn.api.TransactWriteItems(ctx, in, wire.NoRetry)
	event := store.StoreEvent{Call: "TransactWriteItems", Path: "carry", Began: began}
	o, seenAt := wire.Applied, began.UnixMilli()
	if err == nil {
		for _, used := range out.ConsumedCapacity {
			event.Write += aws.ToFloat64(used.CapacityUnits)
		}
		conn.skew.Watch(conn.env, began, out.ResultMetadata)
		r.scheduler.onCarry(ctx)
	} else {
		img, seenAt = nil, predicted
		o, err = wire.ClassifyTransaction(err, len(in.TransactItems))
		event.Write = wire.CancelledUnits(o, len(in.TransactItems))
		err = wire.Explain(conn.table, o, err)
	}
	t.update(img, seenAt)
	conn.budget.Answered(o)
	event.Outcome = o.String()
	conn.reportFor(ctx, t, event)
	return o, err
}

// futureBucket returns the bucket that a missing one's per-limit items would make, or have made since it was
// read as missing. It is nil if there are none.
func (r reader) futureBucket(ctx context.Context, t *target, retrier wire.Retrier) (*bucket.Image, error) {
	var items []perlimit.Item
	err := retrier.Do(ctx, func() (err error) {
		items, _, err = r.readLegacy(ctx, t)
		return err
	})
	if err != nil {
		return nil, err
	}
	unmarked, unknown := ofSchema(t.resource.spec, items)
	switch {
	case len(unmarked) > 0:
		b, err := made(t.resource.spec, t.shape, t.entity, unmarked, r.scheduler.conn.now())
		if err != nil {
			return nil, err
		}
		return b.Image(), nil
	case len(items) > len(unknown):
		err = retrier.Do(ctx, func() error {
			_, err := r.scheduler.conn.readBucket(ctx, t)
			return err
		})
	}
	return t.image, err
}

// recordCarrying notes in the table, once, in the background, that buckets are being carried over.
func (s *session) recordCarrying(ctx context.Context) {
	s.carrying.Do(func() {
		s.background.Start(func() {
			conn := s.scheduler.conn
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), conn.env.SettleTimeout)
			defer cancel()
			if err := conn.note(ctx, layout.Update(conn.table, layout.Buckets, layout.Carrying)); err != nil {
				conn.env.Logger.LogAttrs(ctx, slog.LevelWarn,
					"sluice: could not note in the table that per-limit items are carried over",
					slog.String("table", conn.table), slog.Any("error", err))
			}
		})
	})
}
