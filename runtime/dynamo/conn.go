package dynamo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// conn sends single calls to one table. It reports each to the observer. Answers to calls about buckets fill
// the retry budget, and their dates are compared with this host's clock. It is safe for concurrent use.
type conn struct {
	api     API
	table   string
	env     *store.Env
	budget  *wire.Budget
	skew    wire.SkewWatch
	inputs  sync.Pool // of *reusableInput
	noRetry []func(*dynamodb.Options)
}

func newConn(api API, table string, env *store.Env) *conn {
	return &conn{
		api: api, table: table, env: env, budget: wire.NewBudget(wire.BudgetTokens),
		inputs:  sync.Pool{New: func() any { return new(reusableInput) }},
		noRetry: []func(*dynamodb.Options){wire.NoRetry},
	}
}

// reusableInput is the input of one write. It is used again once the reply is there, since nothing keeps any
// of it.
type reusableInput struct {
	codec.Write

	update dynamodb.UpdateItemInput
	put    dynamodb.PutItemInput
}

// reply is how one write ended. image is the bucket as an applied write left it or a refused one found it,
// nil if there is none. err says why the write was neither applied nor refused.
type reply struct {
	outcome wire.Outcome
	image   *bucket.Image
	err     error
	stands  bool  // the write was applied although the outcome is Failed: the bucket that it left is malformed
	sentAt  int64 // ms
}

// now returns the clock's time in milliseconds.
func (c *conn) now() int64 { return c.env.Clock.Now().UnixMilli() }

// write sends p to t's bucket under op, once.
func (c *conn) write(ctx context.Context, t *target, p *plan.Plan, op string) reply {
	in := c.inputs.Get().(*reusableInput)
	defer c.inputs.Put(in)
	if err := t.build(&in.Write, p, op); err != nil {
		return reply{outcome: wire.Failed, err: err}
	}
	began := c.env.Clock.Now()
	stored, consumed, metadata, err := c.call(ctx, t, p, in)
	r := reply{outcome: wire.Applied, sentAt: began.UnixMilli()}
	if err != nil {
		r.outcome, stored = wire.Classify(err)
		r.err = wire.Explain(c.table, r.outcome, err)
	}
	if r.outcome == wire.Applied && len(stored) == 0 { // not DynamoDB's reply: something in between answered
		r.outcome, r.err = wire.Unknown, errors.New("the reply to an update is empty")
	}
	if r.outcome == wire.Applied || r.outcome == wire.Refused {
		if r.image, err = t.imageOf(r.outcome, p, op, stored); err != nil {
			r.outcome, r.err, r.stands = wire.Failed, err, r.outcome == wire.Applied
			t.cached.invalidate() // the next call reads first, and so is not charged
		}
	}
	c.budget.Answered(r.outcome)
	if c.env.Observer.Store != nil {
		event := store.StoreEvent{
			Call: "UpdateItem", Path: p.Label(t.settlesOnly), Generic: p.Generic, Outcome: r.outcome.String(),
			Coalesced: t.served, Write: wire.WriteUnits(r.outcome, consumed), Began: began,
		}
		if p.Path == plan.Create {
			event.Call = "PutItem"
		}
		if p.RepairsTTL || p.Uncharged {
			event.Coalesced = 0
		}
		c.reportFor(ctx, t, event)
	}
	c.skew.Watch(c.env, began, metadata)
	return r
}

// call puts or updates the item. It returns the item as the write left it.
func (c *conn) call(
	ctx context.Context, t *target, p *plan.Plan, in *reusableInput,
) (codec.Item, *types.ConsumedCapacity, middleware.Metadata, error) {
	if p.Path == plan.Create {
		in.put = dynamodb.PutItemInput{
			TableName:                           &c.table,
			Item:                                in.Item,
			ConditionExpression:                 &in.Cond,
			ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}
		out, err := c.api.PutItem(ctx, &in.put, c.noRetry...)
		if err != nil {
			return nil, nil, middleware.Metadata{}, err
		}
		return in.Item, out.ConsumedCapacity, out.ResultMetadata, nil
	}
	in.SetKey(t.cached.partition, t.resource.sortKey)
	in.update = dynamodb.UpdateItemInput{
		TableName:                           &c.table,
		Key:                                 in.Key,
		UpdateExpression:                    &in.Update,
		ConditionExpression:                 &in.Cond,
		ExpressionAttributeNames:            in.Names,
		ExpressionAttributeValues:           in.Values,
		ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	out, err := c.api.UpdateItem(ctx, &in.update, c.noRetry...)
	if err != nil {
		return nil, nil, middleware.Metadata{}, err
	}
	return out.Attributes, out.ConsumedCapacity, out.ResultMetadata, nil
}

// imageWithTwo is an image with room for the balances of two limits, in one allocation.
type imageWithTwo struct {
	bucket.Image
	balances [2]bucket.Balance
}

// imageOf decodes the item that a write left or was refused by. An applied Normal or Retry leaves the shape
// that p was made for, so only the balances are decoded.
func (t *target) imageOf(o wire.Outcome, p *plan.Plan, op string, stored codec.Item) (*bucket.Image, error) {
	plain := p.Path == plan.Normal || p.Path == plan.Retry
	if o != wire.Applied || p.Generic || !plain || len(p.Image.Extra) > 0 {
		return t.decode(stored)
	}
	next := &imageWithTwo{Image: *p.Image}
	img := &next.Image
	img.TTL, img.Op = p.TTL, op
	img.Balances = append(next.balances[:0], p.Image.Balances...)
	for i := range img.Balances {
		img.Balances[i].Consumed = bucket.Add(img.Balances[i].Consumed, p.Cost[i])
	}
	if err := t.resource.generated.DecodeBalances(img, stored); err != nil {
		return nil, wire.Malformed(t.entity, t.resource.spec.Resource, err)
	}
	return img, nil
}

// readBucket reads t's bucket consistently, and updates t. The outcome is that of a write: applied, or why
// not.
func (c *conn) readBucket(ctx context.Context, t *target) (wire.Outcome, error) {
	began := c.env.Clock.Now()
	out, err := c.api.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:              &c.table,
		Key:                    t.resource.generated.Key(t.entity),
		ConsistentRead:         aws.Bool(true),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}, c.noRetry...)
	event := store.StoreEvent{Call: "GetItem", Path: "read", Outcome: "found", Began: began}
	if err != nil {
		o, _ := wire.Classify(err)
		event.Outcome = "failed"
		c.reportFor(ctx, t, event)
		return o, wire.Explain(c.table, o, err)
	}
	if len(out.Item) == 0 {
		event.Outcome = "missing"
	}
	if used := out.ConsumedCapacity; used != nil {
		event.Read = aws.ToFloat64(used.CapacityUnits)
	}
	c.budget.Answered(wire.Applied)
	c.reportFor(ctx, t, event)
	c.skew.Watch(c.env, began, out.ResultMetadata)
	img, err := t.decode(out.Item)
	if err != nil {
		return wire.Failed, err
	}
	t.update(img, began.UnixMilli())
	t.justRead = true
	return wire.Applied, nil
}

// repairTTL writes the bucket's ttl anew: it was computed from an image with less debt than the bucket has.
func (c *conn) repairTTL(ctx context.Context, t *target) {
	p := plan.NewAdjust(make([]int64, len(t.image.Balances)), t.image, &t.shape.Shape, c.now())
	p.Decision, p.RepairsTTL = plan.Write, true
	if r := c.write(ctx, t, &p, wire.NewOp()); r.outcome == wire.Applied {
		t.update(r.image, r.sentAt)
	}
}

// note writes to an item of the table's own. A refused condition means that there is nothing to note.
func (c *conn) note(ctx context.Context, in *dynamodb.UpdateItemInput) error {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	event := store.StoreEvent{Call: "UpdateItem", Path: "system", Began: c.env.Clock.Now()}
	out, err := c.api.UpdateItem(ctx, in)
	o := wire.Applied
	if err != nil {
		o, _ = wire.Classify(err)
		event.Write = wire.WriteUnits(o, nil)
	} else {
		event.Write = wire.WriteUnits(o, out.ConsumedCapacity)
	}
	event.Outcome = o.String()
	c.report(ctx, event)
	if o == wire.Refused {
		return nil
	}
	return err
}

// reportFor reports a call that is about t.
func (c *conn) reportFor(ctx context.Context, t *target, e store.StoreEvent) {
	e.Resource = t.resource.spec.Resource
	c.report(ctx, e)
}

// report reports a call that has just ended. Its context may be over, or have an earlier deadline than the
// caller's.
func (c *conn) report(ctx context.Context, e store.StoreEvent) {
	if f := c.env.Observer.Store; f != nil {
		e.System, e.Took = "dynamodb", c.env.Clock.Now().Sub(e.Began)
		f(context.WithoutCancel(ctx), e)
	}
}

// build writes p as expressions and values into w: with the generated text, or with the generic one if the
// bucket has other limits than the generated text names.
func (t *target) build(w *codec.Write, p *plan.Plan, op string) error {
	w.Entity, w.Image, w.Limits = t.entity, p.Image, p.Limits
	w.Cost, w.Fill, w.Lo, w.Hi = p.Cost, p.Fill, p.Lo, p.Hi
	w.RF, w.CV, w.TTL, w.Op = p.Refilled, p.Version, p.TTL, op
	generated := t.resource.generated
	switch {
	case p.Generic:
		return buildGeneric(w, p, t.resource.spec)
	case p.Path == plan.Create:
		generated.Create(w)
	case p.Path == plan.Normal:
		generated.Normal(w)
	case p.Path == plan.Retry:
		generated.Retry(w)
	case p.Path == plan.Adjust:
		generated.Adjust(w)
		if p.Reverses != "" { // a charge of unknown outcome is given back only while it is the last write
			w.Cond = "op = :undo"
			w.S(":undo", p.Reverses)
		}
	case p.Path == plan.Reshape:
		generated.Reshape(w)
	}
	return nil
}

// buildGeneric builds p from the image, for a bucket with other limits than the generated text names. This
// binary is older or newer than the one that gave the bucket its shape. The paths mean the same
// (docs/design.md, "Overrides and cv").
func buildGeneric(w *codec.Write, p *plan.Plan, spec *store.Spec) error {
	g := genericBuilder{write: w, plan: p}
	g.update = expression.Set(expression.Name("op"), expression.Value(w.Op)).
		Set(expression.Name(item.TTL), expression.Value(w.TTL))
	g.condition = expression.Name("op").NotEqual(expression.Value(w.Op))
	if p.Path != plan.Adjust {
		g.condition = g.condition.And(expression.Name("cv").Equal(expression.Value(p.Image.Version)))
	}
	if p.Path == plan.Normal || p.Path == plan.Reshape {
		g.update = g.update.Set(expression.Name("rf"), expression.Value(w.RF))
		g.condition = g.condition.And(expression.Name("rf").Equal(expression.Value(p.Image.Refilled)))
	}
	if p.Path == plan.Reshape {
		g.update = g.update.Set(expression.Name("cv"), expression.Value(w.CV))
	}
	for i, limit := range limitsOf(spec, p.Image) {
		unknown := i >= len(spec.Limits)
		switch {
		case p.Path == plan.Reshape && unknown:
			g.remove(limit)
		case p.Path == plan.Reshape:
			g.reshape(limit, i)
		case unknown && p.Path != plan.Normal: // no refill to claim for it
			if p.DebtGuarded {
				g.guard(limit, i)
			}
		case p.Missing == nil || !p.Missing[i]:
			g.addTo(limit, i)
		}
	}
	if p.Reverses != "" { // as in build
		g.condition = expression.Name("op").Equal(expression.Value(p.Reverses))
	}
	built, err := expression.NewBuilder().WithUpdate(g.update).WithCondition(g.condition).Build()
	if err != nil {
		return fmt.Errorf("expression for %s: %w", spec.Resource, err)
	}
	w.Update, w.Cond, w.Names, w.Values = *built.Update(), *built.Condition(), built.Names(), built.Values()
	return nil
}

// genericBuilder collects the clauses of one generic write, limit by limit.
type genericBuilder struct {
	write     *codec.Write
	plan      *plan.Plan
	update    expression.UpdateBuilder
	condition expression.ConditionBuilder
}

// addTo adds the i-th limit of a Normal, Retry or Adjust.
func (g *genericBuilder) addTo(limit string, i int) {
	p, tk := g.plan, attribute(limit, "tk")
	g.update = g.update.Add(tk, expression.Value(bucket.Sub(p.Fill[i], p.Cost[i]))).
		Add(attribute(limit, "tc"), expression.Value(p.Cost[i]))
	if p.Path == plan.Adjust {
		g.condition = g.condition.And(tk.AttributeExists())
		return
	}
	g.guard(limit, i)
}

// guard bounds the i-th limit's balance.
func (g *genericBuilder) guard(limit string, i int) {
	g.condition = g.condition.And(attribute(limit, "tk").Between(bound(g.plan.Lo[i]), bound(g.plan.Hi[i])))
}

// reshape adds the i-th limit of a Reshape.
func (g *genericBuilder) reshape(limit string, i int) {
	p, numbers := g.plan, g.write.Limits[i]
	attr := func(field string) expression.NameBuilder { return attribute(limit, field) }
	sum := func(field string, start, change int64) expression.SetValueBuilder {
		stored := expression.IfNotExists(attr(field), expression.Value(start))
		return expression.Plus(stored, expression.Value(change))
	}
	g.update = g.update.
		Set(attr("tk"), sum("tk", numbers.Burst, bucket.Sub(p.Fill[i], p.Cost[i]))).
		Set(attr("tc"), sum("tc", 0, p.Cost[i])).
		Set(attr("cp"), expression.Value(numbers.Capacity)).
		Set(attr("bx"), expression.Value(numbers.Burst)).
		Set(attr("ra"), expression.Value(numbers.Refill)).
		Set(attr("rp"), expression.Value(numbers.Period))
	g.condition = g.condition.And(expression.Or(
		attr("tk").AttributeNotExists(), attr("tk").Between(bound(p.Lo[i]), bound(p.Hi[i]))))
}

// remove drops a limit that the schema no longer has.
func (g *genericBuilder) remove(limit string) {
	for _, field := range item.LimitFields {
		g.update = g.update.Remove(attribute(limit, field))
	}
}

func attribute(limit, field string) expression.NameBuilder {
	return expression.Name(item.LimitAttribute(limit, field))
}

// limitsOf returns the schema's limits and those that img has besides, in the order of a plan's vectors.
func limitsOf(spec *store.Spec, img *bucket.Image) []string {
	all := append([]string(nil), spec.Limits...)
	for _, named := range img.Extra {
		all = append(all, named.Name)
	}
	return all
}

// bound is codec.Bound for the expression package.
func bound(v int64) expression.ValueBuilder {
	if v == math.MinInt64 || v == math.MaxInt64 {
		return expression.Value(attributevalue.Number(codec.Bound(v).(*types.AttributeValueMemberN).Value))
	}
	return expression.Value(v)
}
