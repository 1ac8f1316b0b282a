package dynamo

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
)

// sendTransaction sends the targets' plans together, or again the transaction whose outcome is unknown.
func (b *batch) sendTransaction(ctx context.Context) {
	tx := b.attempt.transaction
	if tx == nil {
		var err error
		if tx, err = b.targets.newTransaction(&b.scheduler.conn.Table, b.attempt.op); err != nil {
			b.roster.finishAll(b.roster.pending, err, b.targets)
			return
		}
	}
	b.count(b.roster.included, b.roster.leftover)
	if b.scheduler.onWrite != nil {
		ctx = b.scheduler.onWrite(ctx, b.roster.included)
	}
	bounded, cancel := withAttemptTimeout(ctx, b.roster.included)
	defer cancel()
	now := b.scheduler.conn.Now()
	o, err := b.scheduler.conn.Transact(bounded, tx, len(b.roster.included))
	_, inProgress := errors.AsType[*types.TransactionInProgressException](err)
	switch {
	case o == wire.Unknown, inProgress:
		b.attempt.transaction, b.roster.maybeApplied = tx, b.roster.included
		for i, t := range b.targets {
			t.sent = &sent{tx.Plans[i], slices.Clone(t.demand.Take)}
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
			t.update(tx.Plans[i].Predict(b.attempt.op), predicted)
			b.scheduler.recordApplied(ctx, t, all, i, &tx.Plans[i])
		}
		b.commit(all)
	case wire.Refused:
		b.refusedTransaction(ctx, tx, err, now)
	case wire.Conflict:
		b.attempt.conflicts++
		if i := wire.FirstConflict(err); i >= 0 {
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

// refusedTransaction updates the targets whose conditions failed. Those of the others held: they are planned
// anew too, but not read for it.
func (b *batch) refusedTransaction(ctx context.Context, tx *wire.Transaction, err error, now int64) {
	cancelled, _ := errors.AsType[*types.TransactionCanceledException](err)
	contended, ours := false, false
	for i, t := range b.targets {
		reason := cancelled.CancellationReasons[i]
		t.conditionHeld = aws.ToString(reason.Code) == "None"
		if aws.ToString(reason.Code) != wire.ConditionFailed {
			continue
		}
		img, err := t.cached.at.Decode(reason.Item)
		if err != nil {
			t.cached.invalidate()
			b.roster.finishAll(b.roster.pending, err, b.targets)
			return
		}
		b.attempt.lostAt = t
		t.update(img, now)
		contended, ours = contended || img != nil, ours || t.wrote(b.attempt.op)
		t.noteLost(&tx.Plans[i], img, b.scheduler.conn.Now())
	}
	switch {
	case ours: // an earlier copy, under another token, was applied late: to all targets, or none
		all := b.roster.covered()
		for i, t := range b.targets {
			p := &tx.Plans[i]
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
func (ts targets) newTransaction(table *string, op string) (*wire.Transaction, error) {
	tx := wire.NewTransaction(op)
	for _, t := range ts {
		if err := tx.Add(table, &t.cached.at, &t.plan); err != nil {
			return nil, err
		}
	}
	return tx, nil
}
