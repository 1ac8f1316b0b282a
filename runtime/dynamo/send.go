package dynamo

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// reply is what came of one write. img is the bucket after an applied write or as a refused one found it, nil where there
// is none; err says why it was neither.
type reply struct {
	outcome outcome
	img     *bucket.Image
	err     error
	stands  bool // fatal though it was applied: the bucket that it left is malformed
}

// send writes p to b's bucket under op.
func (s *session) send(ctx context.Context, l *leg, p *plan, op string) reply {
	w, err := l.build(p, op)
	if err != nil {
		return reply{outcome: fatal, err: err}
	}
	began := s.env.Clock.Now()
	var (
		item     codec.Item
		consumed *types.ConsumedCapacity
		metadata middleware.Metadata
	)
	if p.path == create {
		var out *dynamodb.PutItemOutput
		out, err = s.api.PutItem(ctx, &dynamodb.PutItemInput{
			TableName:                           &s.table,
			Item:                                w.Item,
			ConditionExpression:                 &w.Cond,
			ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}, once)
		if err == nil {
			item, consumed, metadata = w.Item, out.ConsumedCapacity, out.ResultMetadata
		}
	} else {
		var out *dynamodb.UpdateItemOutput
		out, err = s.api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName:                           &s.table,
			Key:                                 l.Key(l.entity),
			UpdateExpression:                    &w.Update,
			ConditionExpression:                 &w.Cond,
			ExpressionAttributeNames:            w.Names,
			ExpressionAttributeValues:           w.Values,
			ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
			ReturnValues:                        types.ReturnValueAllNew,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}, once)
		if err == nil {
			item, consumed, metadata = out.Attributes, out.ConsumedCapacity, out.ResultMetadata
		}
	}
	r := reply{outcome: applied}
	if err != nil {
		r.outcome, item = classify(err)
		r.err = explain(s.table, r.outcome, err)
	}
	if r.outcome == applied && len(item) == 0 { // no DynamoDB answers so: something in between did
		r = reply{outcome: unknown, err: errors.New("the reply to an update is empty")}
	}
	if r.outcome == applied || r.outcome == refused {
		if r.img, err = l.decode(item); err != nil {
			r = reply{outcome: fatal, err: err, stands: r.outcome == applied}
			l.memory.image.Store(nil) // the next call reads first, and so is not charged
		}
	}
	s.retries.answered(r.outcome)
	s.observe(l, runtime.StoreEvent{
		Path: p.name(l.settle), Generic: p.generic, Outcome: r.outcome.String(),
		Write: writeUnits(r.outcome, consumed), Took: s.env.Clock.Now().Sub(began),
	})
	s.skew.watch(s.env, began, metadata)
	return r
}

// read reads b's bucket consistently and learns it. The outcome is that of a write: applied, or why not.
func (s *session) read(ctx context.Context, l *leg) (outcome, error) {
	began := s.env.Clock.Now()
	out, err := s.api.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:              &s.table,
		Key:                    l.Key(l.entity),
		ConsistentRead:         aws.Bool(true),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}, once)
	event := runtime.StoreEvent{Path: "read", Outcome: "found", Took: s.env.Clock.Now().Sub(began)}
	if err != nil {
		o, _ := classify(err)
		event.Outcome = "failed"
		s.observe(l, event)
		return o, explain(s.table, o, err)
	}
	if len(out.Item) == 0 {
		event.Outcome = "missing"
	}
	if c := out.ConsumedCapacity; c != nil {
		event.Read = aws.ToFloat64(c.CapacityUnits)
	}
	s.retries.answered(applied)
	s.observe(l, event)
	s.skew.watch(s.env, began, out.ResultMetadata)
	img, err := l.decode(out.Item)
	if err != nil {
		return fatal, err
	}
	l.learn(img, true)
	return applied, nil
}

// once turns the client's retries off: a write that is sent again unasked could be applied twice, and a read is repeated
// by the charge that needs it.
func once(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// build turns p into text and values.
func (l *leg) build(p *plan, op string) (*codec.Write, error) {
	w := &codec.Write{
		Entity: l.entity, Image: p.img, Limits: p.limits,
		Cost: p.cost, Fill: p.fill, Lo: p.lo, Hi: p.hi,
		RF: p.rf, CV: p.cv, TTL: p.ttl, Op: op,
	}
	switch {
	case p.generic:
		if err := buildGeneric(w, p, l.spec); err != nil {
			return nil, err
		}
	case p.path == create:
		l.Create(w)
	case p.path == normal:
		l.Normal(w)
	case p.path == retry:
		l.Retry(w)
	case p.path == adjust:
		l.Adjust(w)
		if p.undo != "" {
			// Design section 4: a charge of unknown outcome is given back under its own op, so only while it is the last write.
			w.Cond = "op = :undo"
			w.Values[":undo"] = codec.S(p.undo)
		}
	case p.path == reshape:
		l.Reshape(w)
	}
	return w, nil
}

// decode reads an item; none is nil.
func (l *leg) decode(item codec.Item) (*bucket.Image, error) {
	if len(item) == 0 {
		return nil, nil
	}
	img := &bucket.Image{}
	if err := l.Decode(img, item); err != nil {
		return nil, malformed(l.entity, l.spec.Resource, err)
	}
	return img, nil
}

// name is the path as observers see it, which know a settle that charges as one.
func (p *plan) name(settle bool) string {
	switch {
	case p.undo != "":
		return "undo"
	case p.repair:
		return "repair"
	case settle && p.path != adjust:
		return "settle"
	}
	return p.path.String()
}

// writeUnits returns what a write cost. DynamoDB bills a failed condition like a write, and does not say so; buckets are
// rarely above 1 KB, so that is one unit.
func writeUnits(o outcome, consumed *types.ConsumedCapacity) float64 {
	switch {
	case o == refused:
		return 1
	case consumed != nil:
		return aws.ToFloat64(consumed.CapacityUnits)
	}
	return 0
}

func (s *session) observe(l *leg, e runtime.StoreEvent) {
	if f := s.env.Observer.Store; f != nil {
		e.Resource = l.spec.Resource
		f(e)
	}
}
