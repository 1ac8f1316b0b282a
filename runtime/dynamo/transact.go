package dynamo

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/store"
)

// transaction is a TransactWriteItems as it was built, with the plans it was built from. Under its token it may go any
// number of times, and is applied once.
type transaction struct {
	input *dynamodb.TransactWriteItemsInput
	plans []plan.Plan
}

// tryTransaction sends the legs' plans together, or again the transaction whose outcome is unknown.
func (c *charge) tryTransaction(ctx context.Context) {
	tx := c.pending
	if tx == nil {
		var err error
		if tx, err = c.transaction(); err != nil {
			c.endAll(c.members, func(*request) error { return err })
			return
		}
	}
	c.tried(c.aboard, c.behind)
	if c.joint != nil {
		ctx = c.joint(ctx, c.aboard)
	}
	bounded, cancel := attempt(ctx, c.aboard)
	defer cancel()
	now := c.now()
	o, err := c.sendTransaction(bounded, tx)
	_, atWork := errors.AsType[*types.TransactionInProgressException](err)
	switch {
	case o == wire.Unknown, atWork:
		c.pending, c.party = tx, c.aboard
		for i, l := range c.legs {
			l.sent = &sent{tx.plans[i], slices.Clone(l.Take)}
		}
	case o == wire.Applied, o == wire.Refused, o == wire.Failed:
		if c.pending = nil; o != wire.Applied {
			c.endUnsure()
		}
	} // else this try has met others, and says nothing of those before it
	for _, l := range c.legs {
		l.passed = false
	}
	switch o {
	case wire.Applied:
		all := c.aboard
		for i, l := range c.legs {
			l.learn(tx.plans[i].Predict(c.op), predicted)
			c.committed(ctx, all, i, &tx.plans[i])
		}
		c.done(all)
	case wire.Refused:
		c.refusedTransaction(ctx, tx, err, now)
	case wire.Conflict:
		c.conflicts++
		if i := conflicting(err); i >= 0 {
			c.lostAt = c.legs[i]
			c.lostAt.memory.raced(now, false)
		}
		c.failed = c.lost()
	case wire.Unknown, wire.Throttled, wire.NotSent:
		c.failed = c.unavailable(o, err)
	default:
		c.endAll(c.members, func(*request) error { return err })
	}
}

// conflicting returns the first item that met another transaction, -1 where err does not say.
func conflicting(err error) int {
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		return -1
	}
	return slices.IndexFunc(cancelled.CancellationReasons, func(r types.CancellationReason) bool { return aws.ToString(r.Code) == wire.ItemInConflict })
}

// refusedTransaction learns the images of the legs that failed. The others' conditions held: they are planned anew too, but not
// read for it.
func (c *charge) refusedTransaction(ctx context.Context, tx *transaction, err error, now int64) {
	cancelled, _ := errors.AsType[*types.TransactionCanceledException](err)
	raced, ours := false, false
	for i, l := range c.legs {
		reason := cancelled.CancellationReasons[i]
		l.passed = aws.ToString(reason.Code) == "None"
		if aws.ToString(reason.Code) != wire.ConditionFailed {
			continue
		}
		img, err := l.decode(reason.Item)
		if err != nil {
			l.memory.forget()
			c.endAll(c.members, func(*request) error { return err })
			return
		}
		c.lostAt = l
		l.learn(img, now)
		raced, ours = raced || img != nil, ours || c.wrote(l)
		c.raced(l, &tx.plans[i], img)
	}
	switch {
	case ours: // an earlier copy, under another token, arrived late: all legs of it, or none
		all := c.covered()
		for i, l := range c.legs {
			p := &tx.plans[i]
			if l.sent != nil {
				p = &l.sent.plan
			}
			c.committed(ctx, all, i, p)
		}
		c.done(all)
	case !raced && c.mayTry(): // nobody to race with
	default:
		c.failed = c.lost()
	}
}

// transaction builds the legs' plans.
func (c *charge) transaction() (*transaction, error) {
	token := wire.NewOp()
	tx := &transaction{input: &dynamodb.TransactWriteItemsInput{
		ClientRequestToken:     &token,
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}}
	for _, l := range c.legs {
		w := &codec.Write{}
		if err := l.build(w, &l.plan, c.op); err != nil {
			return nil, err
		}
		tx.plans = append(tx.plans, l.plan.Clone())
		var item types.TransactWriteItem
		if l.plan.Path == plan.Create {
			item.Put = &types.Put{
				TableName: &c.table, Item: w.Item, ConditionExpression: &w.Cond,
				ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
			}
		} else {
			item.Update = &types.Update{
				TableName: &c.table, Key: l.Key(l.entity), UpdateExpression: &w.Update, ConditionExpression: &w.Cond,
				ExpressionAttributeNames: w.Names, ExpressionAttributeValues: w.Values,
				ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
			}
		}
		tx.input.TransactItems = append(tx.input.TransactItems, item)
	}
	return tx, nil
}

// sendTransaction sends tx once. The error says why it was not applied.
func (c *charge) sendTransaction(ctx context.Context, tx *transaction) (wire.Outcome, error) {
	began := c.env.Clock.Now()
	out, err := c.api.TransactWriteItems(ctx, tx.input, wire.NoRetry)
	o := wire.Applied
	event := store.StoreEvent{
		Call: "TransactWriteItems", Path: "transact", Buckets: len(c.legs), Coalesced: len(c.aboard), Began: began,
		Generic: slices.ContainsFunc(tx.plans, func(p plan.Plan) bool { return p.Generic }),
	}
	var metadata middleware.Metadata
	switch {
	case err == nil:
		metadata = out.ResultMetadata
		for _, used := range out.ConsumedCapacity {
			event.Write += aws.ToFloat64(used.CapacityUnits)
		}
	default:
		o, err = wire.ClassifyTransaction(err, len(c.legs))
		event.Write = wire.CancelledUnits(o, len(c.legs))
		err = wire.Explain(c.table, o, err)
	}
	c.retries.Answered(o)
	event.Outcome = o.String()
	c.observe(ctx, c.legs[0], event)
	c.skew.Watch(c.env, began, metadata)
	return o, err
}
