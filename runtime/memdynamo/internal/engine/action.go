package engine

import (
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/expr"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/table"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// verb is what an action does to its item.
type verb uint8

const (
	put verb = iota
	update
	remove
	check // its condition, and nothing else
)

// actionInput is an action as requests have it: as a whole request, or as one of a transaction.
type actionInput struct {
	TableName                             *string
	Item                                  map[string]*value.Wire // put
	Key                                   map[string]*value.Wire // all others
	ConditionExpression, UpdateExpression *string
	ReturnValuesOnConditionCheckFailure   *string
	expressionAttributes
}

// action writes one item, or checks one. It is valid as far as can be told without its table.
type action struct {
	verb      verb
	tableName string
	item      value.Map       // put
	key       value.Map       // all others
	condition *expr.Condition // nil: none
	update    *expr.Update    // nil: none
	showItem  bool            // in the exception, if the condition fails
}

// parse returns the action, whose table and item or key are there.
func (in *actionInput) parse(v verb) (action, error) {
	a := action{verb: v, tableName: *in.TableName}
	a.showItem = in.ReturnValuesOnConditionCheckFailure != nil &&
		*in.ReturnValuesOnConditionCheckFailure == allOld

	expressions := []expression{{expr.ConditionExpression, in.ConditionExpression}}
	if v == update {
		expressions = []expression{{expr.UpdateExpression, in.UpdateExpression}, expressions[0]}
	}
	err := in.check(expressions...)
	if err != nil {
		return a, err
	}
	if v == put {
		a.item, err = value.DecodeMap(in.Item)
	} else {
		a.key, err = value.DecodeMap(in.Key)
	}
	if err != nil {
		return a, err
	}
	if value.ItemSize(a.item) > value.MaxItemSize {
		return a, tooLarge()
	}
	scope, err := in.scope(expressions...)
	if err != nil {
		return a, err
	}
	if v == update && in.UpdateExpression != nil {
		if a.update, err = scope.Update(*in.UpdateExpression); err != nil {
			return a, err
		}
	}
	if in.ConditionExpression != nil {
		if a.condition, err = scope.Condition(expr.ConditionExpression, *in.ConditionExpression); err != nil {
			return a, err
		}
	}
	return a, scope.Unused()
}

// size returns the bytes of the item or key that the action brings.
func (a *action) size() int { return value.ItemSize(a.item) + value.ItemSize(a.key) }

// target is an action and the item that it is about.
type target struct {
	action
	id itemID
}

// itemID is an item of the engine, which need not exist.
type itemID struct {
	table *tableState
	key   table.Key
}

// aim finds the action's item in its table. It errs where item or key are not as the table wants them.
func (a action) aim(t *tableState) (target, error) {
	x := target{action: a, id: itemID{table: t}}
	if a.verb == put {
		if err := t.checkItem(a.item); err != nil {
			return x, err
		}
		if !t.fits(a.item) {
			return x, tooLarge()
		}
		x.id.key = t.KeyOf(a.item)
	} else {
		if err := t.checkKey(a.key); err != nil {
			return x, err
		}
		x.id.key = t.KeyOf(a.key)
	}
	if a.condition != nil {
		if err := t.checkScalars(a.condition); err != nil {
			return x, err
		}
	}
	if a.update == nil {
		return x, nil
	}
	for _, name := range a.update.Attributes() {
		if isKeyOf(t.Def.Key, name) {
			return x, exception.Invalid("One or more parameter values were invalid: "+
				"Cannot update attribute %s. This attribute is part of the key", name)
		}
	}
	return x, t.checkScalars(a.update)
}

// result is what an action comes to.
type result struct {
	old, new value.Map // nil: not there
	// why it is not to be done, and new only what it would have been: a conditionFailed, or what else is wrong
	err error
}

// evaluate returns what the action would do. It changes nothing.
func (x *target) evaluate() result {
	r := result{old: x.id.table.Get(x.id.key)}
	switch x.verb {
	case put:
		r.new = x.item
	case update:
		r.new, r.err = x.updated(r.old)
	case check:
		r.new = r.old
	}
	if x.condition != nil && !x.condition.Holds(r.old) { // told ahead of what is wrong with the update
		r.err = x.conditionFailed(r.old)
	}
	return r
}

// updated returns what an update makes of its item, or of nothing but the key if there is no item.
func (x *target) updated(old value.Map) (value.Map, error) {
	before := old
	if before == nil {
		before = x.key
	}
	if x.update == nil {
		return before, nil
	}
	after, err := x.update.Apply(before)
	if err != nil {
		return nil, err
	}
	if !x.id.table.fits(after) {
		return nil, exception.Invalid("Item size to update has exceeded the maximum allowed size")
	}
	for _, name := range x.update.Attributes() {
		if v, ok := after[name]; ok && value.Depth(v)+1 > value.MaxDepth { // the item is a level too
			return nil, exception.Invalid("Nesting Levels have exceeded supported limits")
		}
	}
	return after, x.id.table.checkIndexKeys(after, true)
}

func tooLarge() error { return exception.Invalid("Item size has exceeded the maximum allowed size") }

// do makes the change that evaluate found.
func (x *target) do(m moment, r result) {
	if x.verb != check {
		x.id.table.Set(table.Change{At: m.now, Key: x.id.key, Item: r.new})
	}
}

// hash returns the value of the item's hash key.
func (x *target) hash() value.Value {
	name := x.id.table.Def.Key.Hash.Name
	if x.verb == put {
		return x.item[name]
	}
	return x.key[name]
}

// conditionFailed is the exception for an action whose condition is not true of item.
func (x *target) conditionFailed(item value.Map) error {
	e := exception.New(exception.ConditionalCheckFailed, "The conditional request failed")
	if x.showItem && item != nil {
		e.Fields = itemField{item}
	}
	return e
}

// itemField is the item in an exception.
type itemField struct{ item value.Map }

// AppendFields appends the item.
func (f itemField) AppendFields(b []byte) []byte {
	return value.AppendMap(append(b, `,"Item":`...), f.item)
}
