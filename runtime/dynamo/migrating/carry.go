package migrating

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/layout"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating/perlimit"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// carry makes the missing bucket f of its per-limit items, if any count. The transaction charges nothing. It
// returns nil once the bucket exists, or once no item counts.
//
// A transaction of unknown outcome needs no care: the bucket is read again, and the transaction that put it
// there charged nothing.
func (s *session) carry(ctx context.Context, call *store.Call, f firstUse) error {
	spec := f.part.Def.Spec()
	for attempt := 1; ; attempt++ {
		b, _, err := s.futureBucket(ctx, f)
		if err != nil || b == nil {
			return err
		}
		outcome, err := s.send(ctx, spec, b)
		switch outcome {
		case wire.Applied:
			s.recordCarrying(ctx)
			return nil
		case wire.Failed:
			return err
		}
		if attempt == s.retrier.Attempts {
			if outcome == wire.Refused || outcome == wire.Conflict {
				return &store.ContendedError{Resource: spec.Resource, Entity: f.entity, Attempts: attempt}
			}
			return &store.UnavailableError{
				Resource: spec.Resource, Attempts: attempt, Throttled: outcome == wire.Throttled, Err: err,
			}
		}
		// A refused transaction has lost its race to a write that is done; the others meet their obstacle again.
		if outcome != wire.Refused && !s.retrier.Pause(ctx, attempt) {
			return &store.UnavailableError{
				Resource: spec.Resource, Attempts: attempt, Err: errors.Join(ctx.Err(), err),
			}
		}
		found, err := s.read(ctx, call, []firstUse{f})
		if err != nil || found[0] != nil {
			return err
		}
	}
}

// future returns the bucket that the per-limit items of a missing one would make, or have made since it was
// read as missing. It is nil if there are none.
func (s *session) future(ctx context.Context, call *store.Call, f firstUse) (*bucket.Image, error) {
	if _, ok := s.seen.Get(f.bucketKey); ok {
		return nil, nil
	}
	b, marked, err := s.futureBucket(ctx, f)
	switch {
	case err != nil:
		return nil, err
	case b != nil:
		return b.Image(), nil
	case marked:
		found, err := s.read(ctx, call, []firstUse{f})
		if err != nil {
			return nil, err
		}
		return found[0], nil
	}
	return nil, nil
}

// futureBucket returns the bucket that f's per-limit items make, nil if none counts. marked reports whether
// some of the schema's limits have items that do not count any more.
func (s *session) futureBucket(ctx context.Context, f firstUse) (b *perlimit.Bucket, marked bool, err error) {
	spec := f.part.Def.Spec()
	items, err := s.items(ctx, spec, f.resource, f.entity)
	if err != nil {
		return nil, false, err
	}
	unmarked, unknown := ofSchema(spec, items)
	if len(unmarked) == 0 {
		return nil, len(items) > len(unknown), nil
	}
	shape, err := s.shape(ctx, spec, f.bucket, f.entity)
	if err != nil {
		return nil, false, err
	}
	b, err = newBucket(spec, shape, f.bucketKey, unmarked, s.conn.Now())
	return b, false, err
}

// items reads the per-limit items of an entity.
func (s *session) items(
	ctx context.Context, spec *store.Spec, resource, entity string,
) (items []perlimit.Item, err error) {
	began := s.conn.Env.Clock.Now()
	report := func(out *dynamodb.QueryOutput, err error) {
		if err != nil {
			out = &dynamodb.QueryOutput{}
		}
		event := wire.ReadEvent("Query", "perlimit", began, len(out.Items) > 0, out.ConsumedCapacity, err)
		event.Resource = spec.Resource
		s.conn.Report(ctx, event)
		began = s.conn.Env.Clock.Now()
	}
	err = s.retrier.Do(ctx, func() error {
		items, err = readItems(ctx, s.conn.API, s.conn.Table, entity, resource, report)
		return err
	})
	return items, ofResource(spec, err)
}

// shape reads the overrides of an entity and its kind, together and consistently.
func (s *session) shape(
	ctx context.Context, spec *store.Spec, b *store.Bucket, entity string,
) (shape *override.Resolved, err error) {
	get := func(keys []item.Item) (wire.Batch, error) {
		var got wire.Batch
		err := s.retrier.Do(ctx, func() (err error) {
			if got, _, err = s.conn.ReadAll(ctx, spec, keys, true); err == nil && len(got.Unprocessed) > 0 {
				err = &types.ProvisionedThroughputExceededException{
					Message: aws.String("keys of the batch were not read"),
				}
			}
			return err
		})
		return got, ofResource(spec, err)
	}
	return readShape(spec, b.Kind, entity, &b.Plan, s.conn.Now(), get)
}

// send sends the transaction that makes b, once. The error explains an outcome other than Applied.
func (s *session) send(ctx context.Context, spec *store.Spec, b *perlimit.Bucket) (wire.Outcome, error) {
	in := b.Transaction(s.conn.Table, b.Image())
	event := store.StoreEvent{
		Call: "TransactWriteItems", Path: "carry", Resource: spec.Resource, Began: s.conn.Env.Clock.Now(),
	}
	out, err := s.conn.API.TransactWriteItems(ctx, in, wire.NoRetry)
	outcome := wire.Applied
	if err == nil {
		for _, used := range out.ConsumedCapacity {
			event.Write += aws.ToFloat64(used.CapacityUnits)
		}
	} else {
		outcome, err = wire.ClassifyTransaction(err, len(in.TransactItems))
		event.Write = wire.CancelledUnits(outcome, len(in.TransactItems))
		err = wire.Explain(s.conn.Table, outcome, err)
	}
	s.conn.Budget.Answered(outcome)
	event.Outcome = outcome.String()
	s.conn.Report(ctx, event)
	return outcome, err
}

// ofResource makes an UnavailableError one of spec's resource, as those of acquires are.
func ofResource(spec *store.Spec, err error) error {
	if unavailable, ok := errors.AsType[*store.UnavailableError](err); ok {
		unavailable.Resource = spec.Resource
	}
	return err
}

// recordCarrying notes in the table, once, in the background, that buckets are being carried over: see
// Carrier.Begin.
func (s *session) recordCarrying(ctx context.Context) {
	s.recorded.Do(func() {
		s.conn.NoteInBackground(ctx, &s.background, layout.Update(s.conn.Table, layout.Buckets, layout.Carrying),
			"that per-limit items are carried over")
	})
}

// readItems reads the per-limit items of entity on resource, sorted by limit. It calls report after each
// query. The error is DynamoDB's, or a *store.SetupError for a malformed item.
func readItems(
	ctx context.Context, api wire.API, table, entity, resource string, report func(*dynamodb.QueryOutput, error),
) (items []perlimit.Item, err error) {
	in := perlimit.Query(table, entity, resource)
	for {
		out, err := api.Query(ctx, in, wire.NoRetry)
		report(out, err)
		if err != nil {
			return nil, err
		}
		for _, raw := range out.Items {
			decoded, err := perlimit.Decode(raw)
			if err != nil {
				return nil, &store.SetupError{
					What: fmt.Sprintf("the per-limit item %s is malformed", item.KeyOf(raw)),
					Do:   "fix or delete it", Err: err,
				}
			}
			items = append(items, decoded)
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return items, nil
		}
	}
}

// ofSchema returns the items that count and whose limit spec has or had. unknown are the limits of items that
// spec never had.
func ofSchema(spec *store.Spec, items []perlimit.Item) (unmarked []perlimit.Item, unknown []string) {
	for _, item := range items {
		switch {
		case !slices.Contains(spec.Limits, item.Name) && !slices.Contains(spec.Removed, item.Name):
			unknown = append(unknown, item.Name)
		case item.Counts():
			unmarked = append(unmarked, item)
		}
	}
	return unmarked, unknown
}

// newBucket returns the bucket that items make under shape at now, in ms. It fails with a *store.SetupError
// if one transaction does not take so many items.
func newBucket(
	spec *store.Spec, shape *override.Resolved, of bucketKey, items []perlimit.Item, now int64,
) (*perlimit.Bucket, error) {
	if n := len(items); n > perlimit.MostItems {
		return nil, &store.SetupError{
			What: fmt.Sprintf("%s has %d per-limit items on %s, and one transaction takes %d",
				store.Quote(of.entity), n, of.resource, perlimit.MostItems),
			Do: "delete those of limits that limits.yaml does not have",
		}
	}
	return &perlimit.Bucket{
		Entity: of.entity, Resource: of.resource, Names: spec.Limits, Limits: shape.Limits, Held: shape.Held,
		Version: shape.Created(), PlanOf: shape.PlanOf, Op: wire.NewOp(), Items: items, Now: now,
	}, nil
}

// readShape returns the shape that the overrides of an entity and its kind, and the entity's plan, give a
// bucket at now, in ms. Without an entity whose plan it is, the bucket gets the numbers of no plan, and the
// next acquire changes it. get reads the items and the heartbeat in one consistent call.
func readShape(
	spec *store.Spec, kind int, entity string, on *store.OnPlan, now int64,
	get func([]item.Item) (wire.Batch, error),
) (*override.Resolved, error) {
	keys := override.KeysOf(spec, kind, entity)
	read, err := get(keys.All())
	if err != nil {
		return nil, err
	}
	from, err := keys.Sources(read.Items, now)
	if err != nil {
		return nil, err
	}
	if from.On = on; on.Of == "" {
		from.On, from.Plans = nil, nil
	}
	return override.Resolve(spec, kind, from, now)
}
