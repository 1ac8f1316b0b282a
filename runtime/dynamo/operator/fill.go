package operator

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/fills"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Fill implements store.OverrideStore, in one read and one write. A bucket with older numbers gets those in
// force. Fill leaves tc and rf as they are: the refill since rf adds nothing to a full bucket. It may run
// beside acquires, and has the same effect however often its write arrives.
func (o *Overrides) Fill(ctx context.Context, spec *store.Spec, kind int, entity, root string) error {
	return contend(o.retrier.Attempts, spec, entity, func() (done bool, err error) {
		img, shape, err := o.shapeOf(ctx, spec, kind, entity, root)
		if img == nil || err != nil {
			return true, err
		}
		to := &fills.Shape{AddsHolds: func(limit string) bool { return shape.AddsHolds(spec, img, limit) }}
		to.Limits, to.Dropped, to.Version, to.PlanOf = shape.Full(spec, img)
		b := fills.Bucket{
			Table: o.retrier.Table, Entity: entity, Resource: spec.ResourceOf(kind), Image: img,
		}
		u, err := b.Fill(to, wire.NewOp(), o.now().UnixMilli())
		if err != nil {
			return true, err
		}
		return o.update(ctx, u.Input())
	})
}

// contend calls try, which may lose its race to another write of the bucket, until it is done.
func contend(attempts int, spec *store.Spec, entity string, try func() (done bool, err error)) error {
	for attempt := 1; ; attempt++ {
		if done, err := try(); done {
			return err
		}
		if attempt == attempts {
			return &store.ContendedError{Resource: spec.Resource, Entity: entity, Attempts: attempt}
		}
	}
}

// update sends in. It reports false if its condition failed.
func (o *Overrides) update(ctx context.Context, in *dynamodb.UpdateItemInput) (done bool, err error) {
	err = o.retrier.Do(ctx, func() error {
		_, err := o.api.UpdateItem(ctx, in, wire.NoRetry)
		return err
	})
	_, refused := errors.AsType[*types.ConditionalCheckFailedException](err)
	return !refused, err
}

// Grant implements store.OverrideStore, in one read and one transaction: of the bucket, and of the item that
// has the id. A transaction of unknown outcome is planned anew, since that item says whether it was applied.
// A bucket without the limit first gets the shape in force.
func (o *Overrides) Grant(ctx context.Context, spec *store.Spec, g *store.Grant) error {
	return contend(o.retrier.Attempts, spec, g.Entity, func() (done bool, err error) {
		img, shape, err := o.shapeOf(ctx, spec, g.Kind, g.Entity, g.Root)
		if err != nil {
			return true, err
		}
		var write types.TransactWriteItem
		now := o.now()
		b := fills.Bucket{
			Table: o.retrier.Table, Entity: g.Entity, Resource: spec.ResourceOf(g.Kind), Image: img,
		}
		switch {
		case img == nil:
			write.Put, err = granted(o.retrier.Table, spec, g, shape, now.UnixMilli())
		case b.MissesLimits(spec, g):
			return o.reshape(ctx, spec, g, b, shape)
		default:
			write.Update, err = b.Grant(spec, g, wire.NewOp(), now.UnixMilli())
		}
		if err != nil {
			return true, err
		}
		once := types.TransactWriteItem{Put: fills.Granted(o.retrier.Table, spec, g, now)}
		before, done, err := o.transact(ctx, once, write)
		if before != nil {
			return true, g.Repeated(spec, fills.Amounts(spec, before))
		}
		return done, err
	})
}

// granted returns the put of a new bucket with a grant.
func granted(
	table string, spec *store.Spec, g *store.Grant, shape *override.Resolved, now int64,
) (*types.Put, error) {
	img, err := fills.Full(spec, shape.Limits, g, now)
	if err != nil {
		return nil, err
	}
	img.Version, img.PlanOf, img.Op = shape.Created(), shape.PlanOf, wire.NewOp()
	marshal := codec.Marshal
	if spec.Plans != nil {
		marshal = codec.MarshalOnPlan
	}
	return fills.New(table, marshal(g.Entity, spec.ResourceOf(g.Kind), img, spec.Limits...)), nil
}

// reshape gives a bucket that misses limits of g its shape, without a charge. done is false if that worked.
func (o *Overrides) reshape(
	ctx context.Context, spec *store.Spec, g *store.Grant, b fills.Bucket, shape *override.Resolved,
) (done bool, err error) {
	p := plan.NewReshape(make([]int64, len(spec.Limits)), b.InOrder(spec.Limits), &shape.Shape, g.Windows,
		o.now().UnixMilli())
	in, err := wire.Reshape(o.retrier.Table, spec, g.Kind, g.Entity, &p)
	if err == nil {
		done, err = o.update(ctx, in)
	}
	return done && err != nil, err
}

// transact sends a grant's item and the write to its bucket. before is the item of an earlier grant of the
// same id. done is false if the bucket has changed since it was read.
func (o *Overrides) transact(
	ctx context.Context, granted, bucket types.TransactWriteItem,
) (before codec.Item, done bool, err error) {
	token, all := wire.NewOp(), []types.TransactWriteItem{granted, bucket}
	in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: &token, TransactItems: all}
	err = o.retrier.Do(ctx, func() error {
		_, err := o.api.TransactWriteItems(ctx, in, wire.NoRetry)
		if c, ok := errors.AsType[*types.TransactionCanceledException](err); ok && len(c.CancellationReasons) > 0 {
			before = c.CancellationReasons[0].Item
		}
		return wire.AsSingle(err, len(all))
	})
	_, refused := errors.AsType[*types.ConditionalCheckFailedException](err)
	return before, !refused, err
}

// shapeOf reads an entity's bucket without a schema, nil if there is none, and the shape that it should have.
// root is as in Fill.
func (o *Overrides) shapeOf(
	ctx context.Context, spec *store.Spec, kind int, entity, root string,
) (img *bucket.Image, shape *override.Resolved, err error) {
	key, keys := item.BucketKey(entity, spec.ResourceOf(kind)), override.KeysOf(spec, kind, entity)
	items, err := o.read(ctx, append(keys.All(), key))
	if err != nil {
		return nil, nil, err
	}
	planOf := ""
	if stored := items[item.KeyOf(key)]; stored != nil {
		if img, err = wire.DecodeBucket(entity, spec.ResourceOf(kind), stored); err != nil {
			return nil, nil, err
		}
		planOf = img.PlanOf
	}
	now := o.now().UnixMilli()
	from, err := keys.Sources(items, now)
	if err == nil && spec.OnPlans(kind) {
		var on store.OnPlan
		on, err = o.onPlan(ctx, spec, kind, entity, root, planOf)
		from.On = &on
	}
	if err == nil {
		shape, err = override.Resolve(spec, kind, from, now)
	}
	return img, shape, err
}
