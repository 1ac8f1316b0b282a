package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Fill implements store.OverrideStore, in one read and one write. A bucket with older numbers gets those in
// force. Fill leaves tc and rf as they are: the refill since rf adds nothing to a full bucket. It may run
// beside acquires, and has the same effect however often its write arrives.
func (o *Overrides) Fill(ctx context.Context, spec *store.Spec, kind int, entity, root string) error {
	for attempt := 1; ; attempt++ {
		img, shape, err := o.shapeOf(ctx, spec, kind, entity, root)
		if img == nil || err != nil {
			return err
		}
		in, err := o.fillInput(spec, entity, img, shape)
		if err != nil {
			return err
		}
		err = o.retrier.Do(ctx, func() error {
			_, err := o.api.UpdateItem(ctx, in, wire.NoRetry)
			return err
		})
		if _, refused := errors.AsType[*types.ConditionalCheckFailedException](err); !refused {
			return err
		}
		if attempt == o.retrier.Attempts { // it got another shape each time
			return &store.ContendedError{Resource: spec.Resource, Entity: entity, Attempts: attempt}
		}
	}
}

// shapeOf reads an entity's bucket, without a schema, and the shape that it should have. Both are nil if
// there is no bucket. root is as in Fill.
func (o *Overrides) shapeOf(
	ctx context.Context, spec *store.Spec, kind int, entity, root string,
) (*bucket.Image, *override.Resolved, error) {
	key, at := item.BucketKey(entity, spec.Resource), [...]string{entity, spec.Kinds[kind].Name}
	keys := []codec.Item{key, item.OverrideKey(spec.Resource, at[0]), item.OverrideKey(spec.Resource, at[1])}
	plans := item.PlansKey(spec.Resource)
	switch {
	case spec.Regions != nil:
		keys = append(keys, item.HeartbeatKey())
	case spec.OnPlans(kind):
		keys = append(keys, plans)
	}
	items, err := o.read(ctx, keys)
	if err != nil || items[item.KeyOf(key)] == nil {
		return nil, nil, err
	}
	img, err := wire.DecodeBucket(entity, spec.Resource, items[item.KeyOf(key)])
	if err != nil {
		return nil, nil, err
	}
	now := o.now().UnixMilli()
	var both [2]override.Override
	for i := range both {
		both[i].ReadAt = now
		both[i].Stored, both[i].Version, err = override.Decode(spec, at[i], items[item.KeyOf(keys[1+i])])
		if err != nil {
			return nil, nil, err
		}
	}
	heartbeat, err := override.DecodeHeartbeat(items[item.Heartbeat], now)
	if err != nil {
		return nil, nil, err
	}
	from := override.Sources{Own: &both[0], OfKind: &both[1], Heartbeat: heartbeat}
	if spec.OnPlans(kind) {
		if from.Plans, err = override.DecodePlans(spec, items[item.KeyOf(plans)]); err != nil {
			return nil, nil, err
		}
		on, err := o.onPlan(ctx, spec, kind, entity, root, img.PlanOf)
		if err != nil {
			return nil, nil, err
		}
		from.On = &on
	}
	shape, err := override.Resolve(spec, kind, &from, now)
	return img, shape, err
}

// fillInput returns the write that fills the bucket of img. It depends on no balance. A charge that was
// planned before either fails or has bounds that a full bucket meets, as with Reset. A window is filled once.
func (o *Overrides) fillInput(
	spec *store.Spec, entity string, img *bucket.Image, shape *override.Resolved,
) (*dynamodb.UpdateItemInput, error) {
	limits, dropped, version, planOf := shape.Full(spec, img)
	ttl, at := img.TTL, max(img.Refilled, o.now().UnixMilli())
	update := expression.Set(expression.Name("op"), expression.Value(wire.NewOp()))
	set := func(name, field string, value any) {
		operand, ok := value.(expression.OperandBuilder)
		if !ok {
			operand = expression.Value(value)
		}
		update = update.Set(expression.Name(item.LimitAttribute(name, field)), operand)
	}
	condition := expression.Name("cv").Equal(expression.Value(img.Version))
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		l := limits[name]
		ttl = max(ttl, bucket.Expiry(bucket.Balance{Limit: l, Tokens: l.Burst}, at))
		tc := expression.Name(item.LimitAttribute(name, "tc"))
		for k, n := range [...]int64{l.Burst, l.Capacity, l.Burst, l.Refill, l.Period} {
			set(name, item.LimitFields[k], n)
		}
		set(name, "tc", expression.IfNotExists(tc, expression.Value(0)))
		b, _ := img.Find(name)
		if l.Windowed() { // as with Reset
			set(name, item.WindowField, b.Filled(l, at))
		}
		if b.Holds() || shape.AddsHolds(spec, img, name) {
			var same expression.ConditionBuilder
			update, same = emptyCells(update, name, b, at)
			condition = condition.And(same)
		}
	}
	for _, name := range dropped {
		for _, field := range slices.Concat(item.LimitFields[:], item.HoldFields[:]) {
			update = update.Remove(expression.Name(item.LimitAttribute(name, field)))
		}
	}
	for _, extra := range img.Extra {
		if !extra.Windowed() {
			continue
		}
		we := expression.Name(item.LimitAttribute(extra.Name, item.WindowField))
		if condition = condition.And(we.Equal(expression.Value(extra.Ends))); slices.Contains(dropped, extra.Name) {
			update = update.Remove(we)
		}
	}
	update = update.Set(expression.Name(item.TTL), expression.Value(ttl)).
		Set(expression.Name("cv"), expression.Value(version))
	built, err := withPlan(update, condition, img.PlanOf, planOf).Build()
	if err != nil {
		return nil, fmt.Errorf("expression that fills the bucket on %s: %w", spec.Resource, err)
	}
	return &dynamodb.UpdateItemInput{
		TableName: &o.retrier.Table, Key: item.BucketKey(entity, spec.Resource),
		UpdateExpression: built.Update(), ConditionExpression: built.Condition(),
		ExpressionAttributeNames: built.Names(), ExpressionAttributeValues: built.Values(),
	}, nil
}

// withPlan returns a builder of a write to a bucket that has the plan of an entity, and gets that of another.
// Two entities' plans may have one version, so it applies only while the bucket has the old one.
func withPlan(
	u expression.UpdateBuilder, c expression.ConditionBuilder, old, next string,
) expression.Builder {
	if po := expression.Name(item.PlanOf); next != old {
		u = u.Set(po, expression.Value(next))
		c = c.And(expression.Or(po.AttributeNotExists(), po.Equal(expression.Value(old))))
	}
	return expression.NewBuilder().WithUpdate(u).WithCondition(c)
}
