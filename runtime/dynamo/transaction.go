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

// transaction is a TransactWriteItems as it was built, with the plans that it was built from. Under its token
// it may be sent any number of times, and is applied once.
type transaction struct {
	input  *dynamodb.TransactWriteItemsInput
	plans  []plan.Plan
	served int // requests
}

// sendTransaction sends the targets' plans together, or again the transaction whose outcome is unknown.
func (b *batch) sendTransaction(ctx context.Context) {
	tx := b.attempt.transaction
	if tx == nil {
		var err error
		if tx, err = b.targets.newTransaction(&b.scheduler.conn.table, b.attempt.op); err != nil {
			b.roster.finishAll(b.roster.pending, err, b.targets)
			return
		}
	}
	tx.served = len(b.roster.included)
	b.count(b.roster.included, b.roster.leftover)
	if b.scheduler.onWrite != nil {
		ctx = b.scheduler.onWrite(ctx, b.roster.included)
	}
	bounded, cancel := withAttemptTimeout(ctx, b.roster.included)
	defer cancel()
	now := b.scheduler.conn.now()
	o, err := b.scheduler.conn.transact(bounded, b.targets[0], tx)
	_, inProgress := errors.AsType[*types.TransactionInProgressException](err)
	switch {
	case o == wire.Unknown, inProgress:
		b.attempt.transaction, b.roster.maybeApplied = tx, b.roster.included
		for i, t := range b.targets {
			t.sent = &sent{tx.plans[i], slices.Clone(t.demand.Take)}
		}
	case o == wire.Applied, o == wire.Refused, o == wire.Failed:
		if b.attempt.transaction = nil; o != wire.Applied {
			b.roster.finishUncertain(b.targets)
		}
	} // else this attempt says nothing of those before it
	for _, t := range b.targets {
		t.conditionHeld = false
	}
	switch o {
	case wire.Applied:
		all := b.roster.included
		for i, t := range b.targets {
			t.update(tx.plans[i].Predict(b.attempt.op), predicted)
			b.scheduler.recordApplied(ctx, t, all, i, &tx.plans[i])
		}
		b.commit(all)
	case wire.Refused:
		b.refusedTransaction(ctx, tx, err, now)
	case wire.Conflict:
		b.attempt.conflicts++
		if i := conflicting(err); i >= 0 {
			b.attempt.lostAt = b.targets[i]
			b.attempt.lostAt.cached.noteConflict(now, false)
		}
		b.attempt.err = b.attempt.lost()
	case wire.Unknown, wire.Throttled, wire.NotSent:
		b.attempt.err = b.attempt.unavailable(b.targets.resourceName(), o, err)
	default:
		b.roster.finishAll(b.roster.pending, err, b.targets)
	}
}

// conflicting returns the index of the first item that met another transaction, -1 if err does not say.
func conflicting(err error) int {
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		return -1
	}
	return slices.IndexFunc(cancelled.CancellationReasons, func(r types.CancellationReason) bool {
		return aws.ToString(r.Code) == wire.ItemInConflict
	})
}

// refusedTransaction updates the targets whose conditions failed. Those of the others held: they are planned
// anew too, but not read for it.
func (b *batch) refusedTransaction(ctx context.Context, tx *transaction, err error, now int64) {
	cancelled, _ := errors.AsType[*types.TransactionCanceledException](err)
	contended, ours := false, false
	for i, t := range b.targets {
		reason := cancelled.CancellationReasons[i]
		t.conditionHeld = aws.ToString(reason.Code) == "None"
		if aws.ToString(reason.Code) != wire.ConditionFailed {
			continue
		}
		img, err := t.decode(reason.Item)
		if err != nil {
			t.cached.invalidate()
			b.roster.finishAll(b.roster.pending, err, b.targets)
			return
		}
		b.attempt.lostAt = t
		t.update(img, now)
		contended, ours = contended || img != nil, ours || t.wrote(b.attempt.op)
		t.noteLost(&tx.plans[i], img, b.scheduler.conn.now())
	}
	switch {
	case ours: // an earlier copy, under another token, was applied late: to all targets, or none
		all := b.roster.covered()
		for i, t := range b.targets {
			p := &tx.plans[i]
			if t.sent != nil {
				p = &t.sent.plan
			}
			b.scheduler.recordApplied(ctx, t, all, i, p)
		}
		b.commit(all)
	case !contended && b.roster.mayRetry(): // nobody to race with
	default:
		b.attempt.err = b.attempt.lost()
	}
}

// newTransaction builds the targets' plans into one write of table under op.
func (ts targets) newTransaction(table *string, op string) (*transaction, error) {
	token := wire.NewOp()
	tx := &transaction{input: &dynamodb.TransactWriteItemsInput{
		ClientRequestToken:     &token,
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}}
	for _, t := range ts {
		w := &codec.Write{}
		if err := t.build(w, &t.plan, op); err != nil {
			return nil, err
		}
		tx.plans = append(tx.plans, t.plan.Clone())
		var write types.TransactWriteItem
		if t.plan.Path == plan.Create {
			write.Put = &types.Put{
				TableName: table, Item: w.Item, ConditionExpression: &w.Cond,
				ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
			}
		} else {
			write.Update = &types.Update{
				TableName: table, Key: t.resource.generated.Key(t.entity), UpdateExpression: &w.Update,
				ConditionExpression: &w.Cond, ExpressionAttributeNames: w.Names, ExpressionAttributeValues: w.Values,
				ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
			}
		}
		tx.input.TransactItems = append(tx.input.TransactItems, write)
	}
	return tx, nil
}

// transact sends tx once. first is its first target. The error says why the transaction was not applied.
func (c *conn) transact(ctx context.Context, first *target, tx *transaction) (wire.Outcome, error) {
	began := c.env.Clock.Now()
	out, err := c.api.TransactWriteItems(ctx, tx.input, wire.NoRetry)
	o := wire.Applied
	event := store.StoreEvent{
		Call: "TransactWriteItems", Path: "transact", Buckets: len(tx.plans), Coalesced: tx.served, Began: began,
		Generic: slices.ContainsFunc(tx.plans, func(p plan.Plan) bool { return p.Generic }),
	}
	var metadata middleware.Metadata
	if err == nil {
		metadata = out.ResultMetadata
		for _, used := range out.ConsumedCapacity {
			event.Write += aws.ToFloat64(used.CapacityUnits)
		}
	} else {
		o, err = wire.ClassifyTransaction(err, len(tx.plans))
		event.Write = wire.CancelledUnits(o, len(tx.plans))
		err = wire.Explain(c.table, o, err)
	}
	c.budget.Answered(o)
	event.Outcome = o.String()
	c.reportFor(ctx, first, event)
	c.skew.Watch(c.env, began, metadata)
	return o, err
}
