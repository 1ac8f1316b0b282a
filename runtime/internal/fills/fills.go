// Package fills writes what people add to a bucket beside calls: fills, resets and grants. Its expressions
// are built from the bucket as it was read, without a schema.
package fills

import (
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/item"
)

// Update is the update of a bucket.
type Update struct {
	table string
	key   item.Item
	text  expression.Expression
}

// Input returns u as a call of its own.
func (u *Update) Input() *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName: &u.table, Key: u.key,
		UpdateExpression: u.text.Update(), ConditionExpression: u.text.Condition(),
		ExpressionAttributeNames: u.text.Names(), ExpressionAttributeValues: u.text.Values(),
	}
}

// part returns u as part of a transaction.
func (u *Update) part() *types.Update {
	return &types.Update{
		TableName: &u.table, Key: u.key,
		UpdateExpression: u.text.Update(), ConditionExpression: u.text.Condition(),
		ExpressionAttributeNames: u.text.Names(), ExpressionAttributeValues: u.text.Values(),
	}
}

// Bucket is a bucket as it was read: its limits are the Extra of its image.
type Bucket struct {
	Table, Entity, Resource string
	*bucket.Image
}

// writer collects what an update of a bucket does.
type writer struct {
	Bucket

	update    expression.UpdateBuilder
	condition expression.ConditionBuilder
}

// write begins an update under op, on a condition.
func (b Bucket) write(op string, on expression.ConditionBuilder) *writer {
	return &writer{b, expression.Set(expression.Name("op"), expression.Value(op)), on}
}

// at returns the name of a limit's attribute.
func at(limit, field string) expression.NameBuilder {
	return expression.Name(item.LimitAttribute(limit, field))
}

// set sets an attribute of a limit to a number, or to another operand.
func (w *writer) set(limit, field string, value any) {
	operand, ok := value.(expression.OperandBuilder)
	if !ok {
		operand = expression.Value(value)
	}
	w.update = w.update.Set(at(limit, field), operand)
}

// when adds a condition.
func (w *writer) when(c expression.ConditionBuilder) { w.condition = w.condition.And(c) }

// whenIs adds the condition that an attribute of a limit has a value.
func (w *writer) whenIs(limit, field string, value int64) {
	w.when(at(limit, field).Equal(expression.Value(value)))
}

// done returns the update. what is for its error.
func (w *writer) done(what string) (*Update, error) {
	built, err := expression.NewBuilder().WithUpdate(w.update).WithCondition(w.condition).Build()
	if err != nil {
		return nil, fmt.Errorf("expression for the %s of %s: %w", what, w.Resource, err)
	}
	return &Update{w.Table, item.BucketKey(w.Entity, w.Resource), built}, nil
}

// Reset returns the write that fills limits, of which none is prepaid. It depends on no balance, and has the
// same effect however often it arrives. At the write each balance is its burst, and the refill since rf adds
// nothing to a full bucket.
//
// A charge that was planned before either fails or has bounds that a full bucket meets. op is new, so that no
// charge takes the bucket's last write for its own. ttl stays: it suffices for the balances before, and
// fuller ones need less.
//
// An open window ends a millisecond later, so that what was charged in it before does not come back. Cells
// are cleared, and count from an epoch in which no lease holds anything.
func (b Bucket) Reset(limits []string, op string) (*Update, error) {
	w := b.write(op, expression.AttributeExists(expression.Name(item.PK)))
	for _, name := range limits {
		w.set(name, "tk", at(name, "bx"))
		w.when(at(name, "tk").AttributeExists())
		one, _ := b.Find(name)
		if one.Windowed() {
			w.set(name, item.WindowField, one.Filled(one.Limit, one.Ends))
			w.whenIs(name, item.WindowField, one.Ends)
		}
		if one.Holds() {
			w.emptyCells(name, one, 0)
		}
	}
	return w.done("reset")
}

// emptyCells has no lease hold anything of a limit whose balance is b. A cell is of the epoch e or e+1, if e
// is the lowest that is counted. So nothing is held in e+bucket.NewRing, from which cells count then. Cells
// that are new at an instant, in ms, count from later on. It has the write apply once.
func (w *writer) emptyCells(limit string, b bucket.Balance, instant int64) {
	lowest := b.Epoch + bucket.NewRing
	if b.Holds() {
		w.whenIs(limit, item.EpochField, b.Epoch)
	} else {
		w.when(at(limit, item.EpochField).AttributeNotExists())
		lowest = bucket.NewHold(0, bucket.NewRing, instant).Epoch
	}
	w.cells(limit, [2]int64{}, lowest)
}

// cells sets the cells of a limit.
func (w *writer) cells(limit string, cells [2]int64, lowest int64) {
	for i, n := range [...]int64{cells[0], cells[1], lowest} {
		w.set(limit, item.HoldFields[i], n)
	}
}

// Shape is what a fill makes of a bucket.
type Shape struct {
	Limits    map[string]bucket.Limit
	Dropped   []string // limits that the bucket loses
	Version   int64
	PlanOf    string                  // whose plan the bucket gets
	AddsHolds func(limit string) bool // the limit counts holds, and did not
}

// Fill returns the write that fills the bucket and gives it a shape, at an instant in ms. It depends on no
// balance but those of prepaid limits, which only a grant fills: they change by the difference of capacities.
// A charge that was planned before either fails or has bounds that a full bucket meets, as with Reset. A
// window is filled once.
func (b Bucket) Fill(to *Shape, op string, now int64) (*Update, error) {
	w := b.write(op, expression.Name("cv").Equal(expression.Value(b.Version)))
	ttl, instant := b.TTL, max(b.Refilled, now)
	for _, name := range slices.Sorted(maps.Keys(to.Limits)) {
		l := to.Limits[name]
		one, _ := b.Find(name)
		ends := one.Filled(l, instant)
		ttl = max(ttl, bucket.Expiry(bucket.Balance{Limit: l, Tokens: l.Burst}, instant))
		switch grown := bucket.Sub(l.Burst, one.Burst); {
		case !l.Prepaid() || !one.Prepaid():
			w.set(name, "tk", l.Burst)
		case grown != 0: // cv changes with it, so the write applies once
			w.set(name, "tk", expression.Plus(at(name, "tk"), expression.Value(grown)))
		}
		for k, n := range [...]int64{l.Capacity, l.Burst, l.Refill, l.Period} {
			w.set(name, item.LimitFields[1+k], n)
		}
		w.set(name, "tc", expression.IfNotExists(at(name, "tc"), expression.Value(0)))
		if l.Windowed() { // as with Reset
			w.set(name, item.WindowField, ends)
		}
		if l.Prepaid() {
			ttl = bucket.LastExpiry
		}
		if adds := to.AddsHolds(name); adds || one.Holds() && !l.Prepaid() {
			w.emptyCells(name, one, instant)
		}
	}
	for _, name := range to.Dropped {
		for _, field := range slices.Concat(item.LimitFields[:], item.HoldFields[:]) {
			w.update = w.update.Remove(at(name, field))
		}
	}
	for _, extra := range b.Extra {
		if !extra.Windowed() {
			continue
		}
		w.whenIs(extra.Name, item.WindowField, extra.Ends)
		if slices.Contains(to.Dropped, extra.Name) {
			w.update = w.update.Remove(at(extra.Name, item.WindowField))
		}
	}
	w.update = w.update.Set(expression.Name(item.TTL), expression.Value(ttl)).
		Set(expression.Name("cv"), expression.Value(to.Version))
	if po := expression.Name(item.PlanOf); to.PlanOf != b.PlanOf { // two entities' plans may have one version
		w.update = w.update.Set(po, expression.Value(to.PlanOf))
		w.when(expression.Or(po.AttributeNotExists(), po.Equal(expression.Value(b.PlanOf))))
	}
	return w.done("fill")
}
