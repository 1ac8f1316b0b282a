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
func (s *session) send(ctx context.Context, l *leg, p *plan, op string) reply {
	w := s.envelopes.Get().(*envelope)
	defer s.envelopes.Put(w)
	if err := l.build(&w.Write, p, op); err != nil {
		return reply{outcome: fatal, err: err}
	}
	began := s.env.Clock.Now()
	item, consumed, metadata, err := s.call(ctx, l, p, w)
	r := reply{outcome: applied, sent: began.UnixMilli()}
	if err != nil {
		r.outcome, item = classify(err)
		r.err = explain(s.table, r.outcome, err)
	}
	if r.outcome == applied && len(item) == 0 { // no DynamoDB answers so: something in between did
		r.outcome, r.err = unknown, errors.New("the reply to an update is empty")
	}
	if r.outcome == applied || r.outcome == refused {
		if r.img, err = l.found(r.outcome, p, op, item); err != nil {
			r.outcome, r.err, r.stands = fatal, err, r.outcome == applied
			l.memory.forget() // the next call reads first, and so is not charged
		}
	}
	s.retries.answered(r.outcome)
	if s.env.Observer.Store != nil {
		served := l.served
		if p.repair || p.bare {
			served = 0
		}
		call := "UpdateItem"
		if p.path == create {
			call = "PutItem"
		}
		s.observe(ctx, l, runtime.StoreEvent{
			Call: call, Path: p.name(l.settles()), Generic: p.generic, Outcome: r.outcome.String(), Coalesced: served,
			Write: writeUnits(r.outcome, consumed), Began: began,
		})
	}
	s.skew.watch(s.env, began, metadata)
	return r
}

// call puts or updates the item, and returns it as it is now.
func (s *session) call(ctx context.Context, l *leg, p *plan, w *envelope) (codec.Item, *types.ConsumedCapacity, middleware.Metadata, error) {
	if p.path == create {
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
func (l *leg) found(o outcome, p *plan, op string, item codec.Item) (*bucket.Image, error) {
	if o != applied || p.generic || p.path != normal && p.path != retry || len(p.img.Extra) > 0 {
		return l.decode(item)
	}
	made := &struct { // in one piece, as there are so many
		bucket.Image
		few [2]bucket.Balance
	}{Image: *p.img}
	img := &made.Image
	img.TTL, img.Op = p.ttl, op
	img.Balances = append(made.few[:0], p.img.Balances...)
	for i := range img.Balances {
		img.Balances[i].Consumed = bucket.Add(img.Balances[i].Consumed, p.cost[i])
	}
	if err := l.DecodeLevels(img, item); err != nil {
		return nil, malformed(l.entity, l.spec.Resource, err)
	}
	return img, nil
}

// read reads b's bucket consistently and learns it. The outcome is that of a write: applied, or why not.
func (s *session) read(ctx context.Context, l *leg) (outcome, error) {
	began := s.env.Clock.Now()
	out, err := s.api.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:              &s.table,
		Key:                    l.Key(l.entity),
		ConsistentRead:         aws.Bool(true),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}, s.once...)
	event := runtime.StoreEvent{Call: "GetItem", Path: "read", Outcome: "found", Began: began}
	if err != nil {
		o, _ := classify(err)
		event.Outcome = "failed"
		s.observe(ctx, l, event)
		return o, explain(s.table, o, err)
	}
	if len(out.Item) == 0 {
		event.Outcome = "missing"
	}
	if c := out.ConsumedCapacity; c != nil {
		event.Read = aws.ToFloat64(c.CapacityUnits)
	}
	s.retries.answered(applied)
	s.observe(ctx, l, event)
	s.skew.watch(s.env, began, out.ResultMetadata)
	img, err := l.decode(out.Item)
	if err != nil {
		return fatal, err
	}
	l.learn(img, began.UnixMilli())
	l.read = true
	return applied, nil
}

// once turns the client's retries off: a write that is sent again unasked could be applied twice, and a read is repeated
// by the charge that needs it.
func once(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// build turns p into text and values.
func (l *leg) build(w *codec.Write, p *plan, op string) error {
	w.Entity, w.Image, w.Limits = l.entity, p.img, p.limits
	w.Cost, w.Fill, w.Lo, w.Hi = p.cost, p.fill, p.lo, p.hi
	w.RF, w.CV, w.TTL, w.Op = p.rf, p.cv, p.ttl, op
	switch {
	case p.generic:
		return buildGeneric(w, p, l.spec)
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
			w.S(":undo", p.undo)
		}
	case p.path == reshape:
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

// cancelledUnits returns what a transaction over n items cost that was cancelled: like one that is applied, whether by a condition or
// by another transaction. One that was throttled cost nothing.
func cancelledUnits(o outcome, n int) float64 {
	if o == refused || o == conflict {
		return 2 * float64(n)
	}
	return 0
}

// observe tells of a call for l.
func (s *session) observe(ctx context.Context, l *leg, e runtime.StoreEvent) {
	e.Resource = l.spec.Resource
	s.tell(ctx, e)
}

// tell tells of e, which has ended just now. The context of the call may be over, or bound it more tightly than its caller did.
func (s *session) tell(ctx context.Context, e runtime.StoreEvent) {
	if f := s.env.Observer.Store; f != nil {
		e.System, e.Took = "dynamodb", s.env.Clock.Now().Sub(e.Began)
		f(context.WithoutCancel(ctx), e)
	}
}
