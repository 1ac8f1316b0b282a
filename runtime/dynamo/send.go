package dynamo

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/store"
)

// reply is what came of one write. img is the bucket after an applied write or as a refused one found it, nil where there
// is none; err says why it was neither.
type reply struct {
	outcome wire.Outcome
	img     *bucket.Image
	err     error
	stands  bool  // fatal though it was applied: the bucket that it left is malformed
	sent    int64 // when, ms
}

// envelope is a request that is used again once its reply is there: nothing keeps any of it.
type envelope struct {
	codec.Write

	update dynamodb.UpdateItemInput
	put    dynamodb.PutItemInput
}

// send writes p to l's bucket under op.
func (s *session) send(ctx context.Context, l *leg, p *plan.Plan, op string) reply {
	w := s.envelopes.Get().(*envelope)
	defer s.envelopes.Put(w)
	if err := l.build(&w.Write, p, op); err != nil {
		return reply{outcome: wire.Failed, err: err}
	}
	began := s.env.Clock.Now()
	item, consumed, metadata, err := s.call(ctx, l, p, w)
	r := reply{outcome: wire.Applied, sent: began.UnixMilli()}
	if err != nil {
		r.outcome, item = wire.Classify(err)
		r.err = wire.Explain(s.table, r.outcome, err)
	}
	if r.outcome == wire.Applied && len(item) == 0 { // no DynamoDB answers so: something in between did
		r.outcome, r.err = wire.Unknown, errors.New("the reply to an update is empty")
	}
	if r.outcome == wire.Applied || r.outcome == wire.Refused {
		if r.img, err = l.found(r.outcome, p, op, item); err != nil {
			r.outcome, r.err, r.stands = wire.Failed, err, r.outcome == wire.Applied
			l.memory.forget() // the next call reads first, and so is not charged
		}
	}
	s.retries.Answered(r.outcome)
	if s.env.Observer.Store != nil {
		served := l.served
		if p.RepairsTTL || p.Uncharged {
			served = 0
		}
		call := "UpdateItem"
		if p.Path == plan.Create {
			call = "PutItem"
		}
		s.observe(ctx, l, store.StoreEvent{
			Call: call, Path: p.Label(l.SettlesOnly()), Generic: p.Generic, Outcome: r.outcome.String(), Coalesced: served,
			Write: wire.WriteUnits(r.outcome, consumed), Began: began,
		})
	}
	s.skew.Watch(s.env, began, metadata)
	return r
}

// call puts or updates the item, and returns it as it is now.
func (s *session) call(ctx context.Context, l *leg, p *plan.Plan, w *envelope) (codec.Item, *types.ConsumedCapacity, middleware.Metadata, error) {
	if p.Path == plan.Create {
		w.put = dynamodb.PutItemInput{
			TableName:                           &s.table,
			Item:                                w.Item,
			ConditionExpression:                 &w.Cond,
			ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}
		out, err := s.api.PutItem(ctx, &w.put, s.once...)
		if err != nil {
			return nil, nil, middleware.Metadata{}, err
		}
		return w.Item, out.ConsumedCapacity, out.ResultMetadata, nil
	}
	w.SetKey(l.memory.hash, l.sort)
	w.update = dynamodb.UpdateItemInput{
		TableName:                           &s.table,
		Key:                                 w.Key,
		UpdateExpression:                    &w.Update,
		ConditionExpression:                 &w.Cond,
		ExpressionAttributeNames:            w.Names,
		ExpressionAttributeValues:           w.Values,
		ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	out, err := s.api.UpdateItem(ctx, &w.update, s.once...)
	if err != nil {
		return nil, nil, middleware.Metadata{}, err
	}
	return out.Attributes, out.ConsumedCapacity, out.ResultMetadata, nil
}

// found reads the item that a write has left, or was refused by. A Normal or a Retry was applied to a bucket of the very
// shape that p was made for, so of that item only the levels are news.
func (l *leg) found(o wire.Outcome, p *plan.Plan, op string, item codec.Item) (*bucket.Image, error) {
	if o != wire.Applied || p.Generic || p.Path != plan.Normal && p.Path != plan.Retry || len(p.Image.Extra) > 0 {
		return l.decode(item)
	}
	made := &struct { // in one piece, as there are so many
		bucket.Image
		few [2]bucket.Balance
	}{Image: *p.Image}
	img := &made.Image
	img.TTL, img.Op = p.TTL, op
	img.Balances = append(made.few[:0], p.Image.Balances...)
	for i := range img.Balances {
		img.Balances[i].Consumed = bucket.Add(img.Balances[i].Consumed, p.Cost[i])
	}
	if err := l.DecodeBalances(img, item); err != nil {
		return nil, wire.Malformed(l.entity, l.spec.Resource, err)
	}
	return img, nil
}

// read reads b's bucket consistently and learns it. The outcome is that of a write: applied, or why not.
func (s *session) read(ctx context.Context, l *leg) (wire.Outcome, error) {
	began := s.env.Clock.Now()
	out, err := s.api.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:              &s.table,
		Key:                    l.Key(l.entity),
		ConsistentRead:         aws.Bool(true),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}, s.once...)
	event := store.StoreEvent{Call: "GetItem", Path: "read", Outcome: "found", Began: began}
	if err != nil {
		o, _ := wire.Classify(err)
		event.Outcome = "failed"
		s.observe(ctx, l, event)
		return o, wire.Explain(s.table, o, err)
	}
	if len(out.Item) == 0 {
		event.Outcome = "missing"
	}
	if c := out.ConsumedCapacity; c != nil {
		event.Read = aws.ToFloat64(c.CapacityUnits)
	}
	s.retries.Answered(wire.Applied)
	s.observe(ctx, l, event)
	s.skew.Watch(s.env, began, out.ResultMetadata)
	img, err := l.decode(out.Item)
	if err != nil {
		return wire.Failed, err
	}
	l.learn(img, began.UnixMilli())
	l.read = true
	return wire.Applied, nil
}

// build turns p into text and values.
func (l *leg) build(w *codec.Write, p *plan.Plan, op string) error {
	w.Entity, w.Image, w.Limits = l.entity, p.Image, p.Limits
	w.Cost, w.Fill, w.Lo, w.Hi = p.Cost, p.Fill, p.Lo, p.Hi
	w.RF, w.CV, w.TTL, w.Op = p.Refilled, p.Version, p.TTL, op
	switch {
	case p.Generic:
		return buildGeneric(w, p, l.spec)
	case p.Path == plan.Create:
		l.Create(w)
	case p.Path == plan.Normal:
		l.Normal(w)
	case p.Path == plan.Retry:
		l.Retry(w)
	case p.Path == plan.Adjust:
		l.Adjust(w)
		if p.Reverses != "" {
			// Design section 4: a charge of unknown outcome is given back under its own op, so only while it is the last write.
			w.Cond = "op = :undo"
			w.S(":undo", p.Reverses)
		}
	case p.Path == plan.Reshape:
		l.Reshape(w)
	}
	return nil
}

// decode reads an item; none is nil.
func (l *leg) decode(item codec.Item) (*bucket.Image, error) {
	if len(item) == 0 {
		return nil, nil
	}
	img := &bucket.Image{}
	if err := l.Decode(img, item); err != nil {
		return nil, wire.Malformed(l.entity, l.spec.Resource, err)
	}
	return img, nil
}

// observe tells of a call for l.
func (s *session) observe(ctx context.Context, l *leg, e store.StoreEvent) {
	e.Resource = l.spec.Resource
	s.tell(ctx, e)
}

// tell tells of e, which has ended just now. The context of the call may be over, or bound it more tightly than its caller did.
func (s *session) tell(ctx context.Context, e store.StoreEvent) {
	if f := s.env.Observer.Store; f != nil {
		e.System, e.Took = "dynamodb", s.env.Clock.Now().Sub(e.Began)
		f(context.WithoutCancel(ctx), e)
	}
}
