package scheduler

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/known"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
)

// readMissing reads what the targets need for a decision.
func (b *batch) readMissing(ctx context.Context) {
	bounded, cancel := b.withAttemptTimeout(ctx, b.roster.pending)
	defer cancel()
	denied := b.attempt.denied
	b.attempt.denied = nil
	b.roster.noteReadSent()
	began := b.scheduler.conn.Env.Clock.Now()
	o, err := b.scheduler.reader.Fetch(bounded, b.targets.views())
	switch o {
	case wire.Applied:
		b.repay()
		if t := b.targets[0]; b.roster.unsure.exists() && len(b.targets) == 1 && t.Wrote(b.attempt.op) {
			p, all := t.covered(b.roster.unsure.requests)
			b.finishApplied(ctx, p, all)
		}
		return
	case wire.Failed:
		b.roster.finishAll(b.roster.pending, err)
		return
	}
	if denied != nil { // known already, whatever the rest of the chain says and whatever the failure policy
		b.roster.finish(b.roster.included[0], denied)
		return
	}
	b.count(b.roster.pending, nil)
	b.noteOutcome(o, began, b.roster.pending)
	b.attempt.err = b.attempt.unavailable(b.targets.resourceName(), err)
}

// count counts an attempt for all, and for leftover.
func (b *batch) count(all, leftover []*Request) {
	b.attempt.n++
	b.roster.count(all, leftover)
}

// send sends what was planned. A write that charges nothing goes by itself, ahead of the rest.
func (b *batch) send(ctx context.Context) {
	b.attempt.lostAt = b.targets[0]
	for _, t := range b.targets {
		t.JustRead = false
	}
	if len(b.targets) == 1 {
		b.sendOne(ctx, b.targets[0])
		return
	}
	if b.roster.unsure.transaction == nil {
		for _, t := range b.targets {
			if t.plan.Uncharged {
				b.sendOne(ctx, t)
				return
			}
		}
	}
	b.sendTransaction(ctx)
}

// startOp returns the op of the next attempt. The op is new if the attempt serves other requests than the
// last one, since a late copy of that may still be applied. It stays if the outcome is unknown. It also
// stays if the last attempt gave something back: under two ops, its late copy and the next attempt would
// both give it. Only a network that repeats what it has delivered can then make that copy pass for the next
// attempt.
func (b *batch) startOp(uncharged bool) string {
	if uncharged {
		return wire.NewOp()
	}
	a, all := &b.attempt, b.roster.included
	stays := a.gaveBack || slices.Equal(a.served, all)
	if a.op == "" || !stays && !b.roster.unsure.exists() {
		a.op = wire.NewOp()
	}
	a.served, a.gaveBack = all, slices.ContainsFunc(all, (*Request).givesBack)
	return a.op
}

// sendOne sends the plan of t: the only target, or one whose plan charges nothing.
func (b *batch) sendOne(ctx context.Context, t *target) {
	p := &t.plan
	if !p.Uncharged && !b.roster.noteExtensions(1) {
		return
	}
	op := b.startOp(p.Uncharged)
	b.count(b.roster.included, b.roster.leftover)
	noted := ctx
	if b.scheduler.seams.OnWrite != nil && !p.Uncharged { // an uncharged write serves no request
		noted = b.scheduler.seams.OnWrite(ctx, b.roster.included)
	}
	bounded, cancel := b.withAttemptTimeout(noted, b.roster.included)
	defer cancel()
	began := b.scheduler.conn.Env.Clock.Now()
	reply := b.scheduler.write(bounded, t, p, op)
	b.noteOutcome(reply.Outcome, began, b.roster.included, b.roster.leftover)
	if !p.Uncharged && (reply.Outcome == wire.Unknown || reply.Stands) {
		t.noteUnknown(p.Clone(), b.roster.included)
		b.roster.unsure.note(b.roster.included, b.targets, nil)
	}
	if !p.Uncharged && reply.Outcome != wire.Applied && reply.Outcome != wire.Unknown && !reply.Stands {
		b.roster.noteExtensions(-1)
	}
	switch reply.Outcome {
	case wire.Applied:
		t.Update(reply.Image, reply.SentAt)
		if p.Uncharged {
			b.scheduler.onReshape(ctx)
			return
		}
		b.finishApplied(ctx, p, b.roster.included)
	case wire.Refused:
		b.refused(ctx, t, &reply)
	case wire.Conflict:
		b.attempt.conflicts++
		t.Bucket.NoteConflict(reply.SentAt, true)
		b.attempt.err = b.attempt.contendedErr()
	case wire.Unknown:
		t.Confirmed = false
		b.attempt.err = b.attempt.unavailable(b.targets.resourceName(), reply.Err)
		// A refund whose outcome is unknown is never sent again: it would mint tokens.
		for _, r := range b.roster.included {
			if r.givesBack() && !p.Uncharged {
				b.roster.finish(r, b.attempt.errFor(r, b.roster.unsure.exists()))
			}
		}
	case wire.Throttled, wire.NotSent:
		t.Confirmed = false
		b.attempt.err = b.attempt.unavailable(b.targets.resourceName(), reply.Err)
	default:
		b.roster.finishAll(b.roster.pending, reply.Err)
	}
}

// write sends p to t's bucket under op, once.
func (s *scheduler) write(ctx context.Context, t *target, p *plan.Plan, op string) wire.Reply {
	attempt := wire.Attempt{Plan: p, Op: op, SettlesOnly: t.SettlesOnly, Served: t.served}
	reply := s.conn.Write(ctx, &t.Bucket.At, attempt)
	if reply.Malformed {
		t.Bucket.Invalidate() // the next call reads first, and so is not charged
	}
	return reply
}

// repairTTL writes the bucket's ttl anew: it was computed from an image with less debt than the bucket has.
func (s *scheduler) repairTTL(ctx context.Context, t *target) {
	nothing := bucket.Charge{Cost: make([]int64, len(t.Image.Balances))}
	p := plan.NewAdjustWrite(nothing, t.Image, &t.Shape.Shape, s.conn.Now())
	p.RepairsTTL, p.After = true, t.Image.Op // a later write has a ttl of its own
	if r := s.write(ctx, t, &p, wire.NewOp()); r.Outcome == wire.Applied {
		t.Update(r.Image, r.SentAt)
	}
}

// refused handles a write to t whose condition failed. The reply's image is the truth.
func (b *batch) refused(ctx context.Context, t *target, reply *wire.Reply) {
	p, found := &t.plan, reply.Image
	t.Update(found, reply.SentAt)
	if found != nil && t.extends { // another process extends its holds too
		t.Bucket.NoteShared(b.scheduler.conn.Now())
	}
	switch {
	case !p.Uncharged && t.Wrote(b.attempt.op): // an earlier copy had been applied
		p, all := t.covered(b.roster.included)
		b.finishApplied(ctx, p, all)
		return
	case found == nil && b.roster.mayRetry(): // the bucket is gone, so there is nobody to race with
		return
	case found != nil && p.After != "" && found.Op != p.After:
		if t.Bucket.NoteShared(b.scheduler.conn.Now()); p.Path == plan.Adjust {
			return // it has no other guard, so the next attempt applies
		}
	}
	t.noteLost(p, found, b.scheduler.conn.Now())
	b.attempt.races++
	b.attempt.err = b.attempt.contendedErr()
}

// finishApplied ends all, which p has served: p was applied to the only target. It repairs a ttl that turns
// out too short.
func (b *batch) finishApplied(ctx context.Context, p *plan.Plan, all []*Request) {
	t := b.targets[0]
	if p.Path == plan.Normal {
		t.Bucket.NoteClaim(false)
	}
	b.recordApplied(ctx, t, all, p)
	if plan.ExpiresTooSoon(t.Image) {
		bounded, cancel := b.withAttemptTimeout(ctx, all)
		b.scheduler.repairTTL(bounded, t)
		cancel()
	}
	b.commit(all)
}

// commit ends the requests for which the plans were applied, and denies those for which nothing is left.
func (b *batch) commit(all []*Request) {
	b.served = len(all)
	b.roster.finishAll(all, nil)
	b.roster.denyLeftover(b.attempt.plannedAt)
	b.reset()
	b.roster.returnLazy()
}

// sendTransaction sends the targets' plans together, or again the transaction whose outcome is unknown.
func (b *batch) sendTransaction(ctx context.Context) {
	tx := b.roster.unsure.transaction
	if tx == nil {
		var err error
		if tx, err = b.targets.newTransaction(&b.scheduler.conn.Table, b.startOp(false)); err != nil {
			b.roster.finishAll(b.roster.pending, err)
			return
		}
	}
	b.count(b.roster.included, b.roster.leftover)
	if b.scheduler.seams.OnWrite != nil {
		ctx = b.scheduler.seams.OnWrite(ctx, b.roster.included)
	}
	bounded, cancel := b.withAttemptTimeout(ctx, b.roster.included)
	defer cancel()
	began := b.scheduler.conn.Env.Clock.Now()
	o, err := b.scheduler.conn.Transact(bounded, tx, len(b.roster.included))
	now := b.scheduler.conn.At(began) // by the clock as the reply bounds it
	b.noteOutcome(o, began, b.roster.included, b.roster.leftover)
	_, inProgress := errors.AsType[*types.TransactionInProgressException](err)
	switch {
	case o == wire.Unknown, inProgress:
		b.roster.unsure.note(b.roster.included, b.targets, tx)
		for i, t := range b.targets {
			t.noteUnknown(tx.Plans[i], b.roster.included)
		}
	case o == wire.Applied, o == wire.Refused, o == wire.Failed:
		if b.roster.unsure.transaction = nil; o != wire.Applied && !b.scheduler.seams.RepeatsInDoubt {
			b.roster.finishUncertain((*Request).givesBack) // the reply is about this copy, a late one may come
		}
	} // else this attempt says nothing of those before it
	for _, t := range b.targets {
		t.conditionHeld, t.Confirmed = false, t.Confirmed && (o == wire.Refused || o == wire.Conflict)
	}
	switch o {
	case wire.Applied:
		all := b.roster.included
		for i, t := range b.targets {
			t.Update(tx.Plans[i].Predict(b.attempt.op), known.Predicted)
			b.recordApplied(ctx, t, all, &tx.Plans[i])
		}
		b.roster.most = min(b.roster.most+max(b.roster.most/4, 1), maxTargets)
		b.commit(all)
	case wire.Refused:
		b.roster.most = max(b.roster.chains()/2, fewestChains)
		b.refusedTransaction(ctx, tx, err, now)
	case wire.Conflict:
		b.attempt.conflicts++
		if i := firstConflict(err); i >= 0 {
			b.attempt.lostAt = b.targets[i]
			b.attempt.lostAt.Bucket.NoteConflict(now, true)
		}
		b.attempt.err = b.attempt.contendedErr()
	case wire.Unknown, wire.Throttled, wire.NotSent:
		b.attempt.err = b.attempt.unavailable(b.targets.resourceName(), err)
	default:
		b.roster.finishAll(b.roster.pending, err)
	}
}

// fewestChains is the least number of chains in a transaction, if so many are pending. A refused transaction
// halves the number of chains in the next one, and an applied one adds a quarter. In a transaction of a long
// queue some child has changed each time, so it would be refused again while the queue grows.
const fewestChains = 4

// refusedTransaction updates the targets whose conditions failed. Those of the others held: they are planned
// anew too, but not read for it.
func (b *batch) refusedTransaction(ctx context.Context, tx *wire.Transaction, err error, now int64) {
	cancelled, _ := errors.AsType[*types.TransactionCanceledException](err)
	contended, ours := false, (*target)(nil)
	for i, t := range b.targets {
		reason := cancelled.CancellationReasons[i]
		t.conditionHeld = aws.ToString(reason.Code) == "None"
		if aws.ToString(reason.Code) != wire.ConditionFailed {
			continue
		}
		img, err := t.Bucket.At.Decode(reason.Item)
		if err != nil {
			t.Bucket.Invalidate()
			b.roster.finishAll(b.roster.pending, err)
			return
		}
		b.attempt.lostAt = t
		t.Update(img, now)
		if contended = contended || img != nil; t.Wrote(b.attempt.op) {
			ours = t
		}
		t.noteLost(&tx.Plans[i], img, b.scheduler.conn.Now())
	}
	switch {
	case ours != nil: // an earlier copy, under another token, was applied late: to all targets, or none
		_, all := ours.covered(b.roster.included)
		for i, t := range b.targets {
			p := &tx.Plans[i]
			if t.sent != nil {
				p = t.sent.plan.OfUnknownWindows(t.sent.earlier != nil)
			}
			b.recordApplied(ctx, t, all, p)
		}
		b.commit(all)
	case !contended && b.roster.mayRetry(): // nobody to race with
	default:
		b.attempt.races++
		b.attempt.err = b.attempt.contendedErr()
	}
}

// newTransaction builds the targets' plans into one write of table under op.
func (ts targets) newTransaction(table *string, op string) (*wire.Transaction, error) {
	tx := wire.NewTransaction(op)
	for _, t := range ts {
		if err := tx.Add(table, &t.Bucket.At, &t.plan); err != nil {
			return nil, err
		}
	}
	return tx, nil
}

// recordApplied notes for all what p did, which was applied to t.
func (b *batch) recordApplied(ctx context.Context, t *target, all []*Request, p *plan.Plan) {
	t.recordApplied(all, p, b.attempt.op)
	if p.Path == plan.Reshape {
		b.scheduler.onReshape(ctx)
	}
}

// firstConflict returns the index of the first item that met another transaction, -1 if err does not say.
func firstConflict(err error) int {
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		return -1
	}
	return slices.IndexFunc(cancelled.CancellationReasons, func(r types.CancellationReason) bool {
		return aws.ToString(r.Code) == wire.ItemInConflict
	})
}
