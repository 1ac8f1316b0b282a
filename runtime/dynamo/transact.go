package dynamo

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/sluice-go/sluice/runtime"
)

// transaction is a TransactWriteItems as it was built, with the plans it was built from. Under its token it may go any
// number of times, and is applied once.
type transaction struct {
	input *dynamodb.TransactWriteItemsInput
	plans []plan
}

// tryTransaction sends the legs' plans together, or again the transaction whose outcome is unknown. Its results are
// look's.
func (c *charge) tryTransaction(ctx context.Context) (done bool, failed, err error) {
	tx := c.pending
	if tx == nil {
		if tx, err = c.transaction(); err != nil {
			return false, nil, err
		}
	}
	c.tries++
	attempt, cancel := c.attempt(ctx)
	defer cancel()
	o, err := c.sendTransaction(attempt, tx)
	_, atWork := errors.AsType[*types.TransactionInProgressException](err)
	switch o {
	case applied, refused, conflict, fatal: // definite, of earlier tries with this token too
		c.pending, c.unknown = nil, false
	case unknown, throttled, unapplied: // of this try
	}
	if o == unknown || atWork {
		c.pending, c.unknown = tx, true
	}
	for i, l := range c.legs {
		l.passed, l.sent = false, &tx.plans[i]
	}
	switch o {
	case applied:
		c.retries.succeeded()
		for i, l := range c.legs {
			p := &tx.plans[i]
			l.learn(p.predict(c.op), false)
			l.committed(p)
			if p.path == reshape {
				c.recordRevision(ctx)
			}
		}
		return true, nil, nil
	case refused:
		c.retries.succeeded()
		return c.refusedTransaction(tx, err)
	case conflict:
		c.conflicts++
		return false, c.lost(), nil
	case unknown, throttled, unapplied:
		return false, c.unavailable(o, err), nil
	default:
		return false, nil, err
	}
}

// refusedTransaction learns the images of the legs that failed. Only those are built anew: the others' conditions held.
func (c *charge) refusedTransaction(tx *transaction, err error) (done bool, failed, fatal error) {
	cancelled, _ := errors.AsType[*types.TransactionCanceledException](err)
	raced := false
	for i, l := range c.legs {
		reason := cancelled.CancellationReasons[i]
		l.passed = aws.ToString(reason.Code) == "None"
		if aws.ToString(reason.Code) != conditionFailed {
			continue
		}
		img, err := l.decode(reason.Item)
		if err != nil {
			l.memory.image.Store(nil)
			return false, nil, err
		}
		l.learn(img, true)
		raced = raced || img != nil
		c.raced(l, &tx.plans[i], img)
	}
	if !raced && c.tries < c.budget { // nobody to race with
		return false, nil, nil
	}
	return false, c.lost(), nil
}

// transaction builds the legs' plans.
func (c *charge) transaction() (*transaction, error) {
	token := newOp()
	tx := &transaction{input: &dynamodb.TransactWriteItemsInput{
		ClientRequestToken:     &token,
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}}
	for _, l := range c.legs {
		w, err := l.build(&l.plan, c.op)
		if err != nil {
			return nil, err
		}
		tx.plans = append(tx.plans, l.plan)
		var item types.TransactWriteItem
		if l.plan.path == create {
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
func (c *charge) sendTransaction(ctx context.Context, tx *transaction) (outcome, error) {
	began := c.env.Clock.Now()
	out, err := c.api.TransactWriteItems(ctx, tx.input, once)
	o := applied
	event := runtime.StoreEvent{Path: "transact", Buckets: len(c.legs), Generic: slices.ContainsFunc(tx.plans, func(p plan) bool { return p.generic })}
	var metadata middleware.Metadata
	switch {
	case err == nil:
		metadata = out.ResultMetadata
		for _, used := range out.ConsumedCapacity {
			event.Write += aws.ToFloat64(used.CapacityUnits)
		}
	default:
		if o, err = classifyTransaction(err, len(c.legs)); o == refused {
			event.Write = 2 * float64(len(c.legs)) // billed like one that is applied
		}
		err = explain(c.table, o, err)
	}
	event.Outcome, event.Took = o.String(), c.env.Clock.Now().Sub(began)
	c.observe(c.legs[0], event)
	c.skew.watch(c.env, began, metadata)
	return o, err
}
