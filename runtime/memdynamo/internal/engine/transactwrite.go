package engine

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// transactWriteItem is one action of a TransactWriteItems: one of these.
type transactWriteItem struct{ ConditionCheck, Put, Update, Delete *actionInput }

// only returns the one action; at is its name in paths.
func (w *transactWriteItem) only() (in *actionInput, v verb, at string, err error) {
	given := 0
	for _, a := range [...]struct {
		in *actionInput
		v  verb
		at string
	}{
		{w.ConditionCheck, check, "conditionCheck"}, {w.Put, put, "put"}, {w.Update, update, "update"},
		{w.Delete, remove, "delete"},
	} {
		if a.in != nil {
			given++
			in, v, at = a.in, a.v, a.at
		}
	}
	switch given {
	case 0:
		err = exception.Invalid("Invalid Request: TransactWriteRequest should contain Delete or Put or Update " +
			"request")
	case 1:
	default:
		err = exception.Invalid("TransactItems can only contain one of Check, Put, Update or Delete")
	}
	return in, v, at, err
}

// transactWriteInput is the input of TransactWriteItems.
type transactWriteInput struct {
	TransactItems                                                           []*transactWriteItem
	ClientRequestToken, ReturnConsumedCapacity, ReturnItemCollectionMetrics *string
}

func transactWriteItems(ctx context.Context, db *DB, input []byte) ([]byte, error) {
	in, err := decode[transactWriteInput](input)
	if err != nil {
		return nil, err
	}
	if err := in.validate(); err != nil {
		return nil, err
	}
	actions, err := in.parse()
	if err != nil {
		return nil, err
	}
	w := transactWrite{db: db, actions: actions, mode: in.ReturnConsumedCapacity,
		metrics: in.ReturnItemCollectionMetrics}
	if in.ClientRequestToken != nil {
		w.token = *in.ClientRequestToken
		if w.parameters, err = digestOf(in.TransactItems); err != nil {
			return nil, exception.New(exception.Serialization, "%s", err)
		}
	}
	return w.run(ctx)
}

// validate holds the parameters to the rules of each one alone.
func (in *transactWriteInput) validate() error {
	var c constraints
	c.consumed(in.ReturnConsumedCapacity)
	c.enum("returnItemCollectionMetrics", in.ReturnItemCollectionMetrics, "SIZE", "NONE")
	if in.ClientRequestToken != nil {
		c.length("clientRequestToken", *in.ClientRequestToken, len(*in.ClientRequestToken), 1, 36)
	}
	c.transactItems(len(in.TransactItems), in.TransactItems != nil)
	for i, w := range in.TransactItems {
		if w == nil {
			c.required(fmt.Sprintf("transactItems.%d.member", i+1), false)
			continue
		}
		a, v, name, err := w.only()
		if err != nil {
			continue // parse says so, where nothing else is wrong
		}
		at := fmt.Sprintf("transactItems.%d.member.%s.", i+1, name)
		c.required(at+"tableName", a.TableName != nil)
		if a.TableName != nil {
			c.name(at+"tableName", tableName(*a.TableName))
		}
		if v == put {
			c.required(at+"item", a.Item != nil)
		} else {
			c.required(at+"key", a.Key != nil)
		}
		c.enum(at+"returnValuesOnConditionCheckFailure", a.ReturnValuesOnConditionCheckFailure, allOld, none)
		switch v {
		case check:
			c.required(at+"conditionExpression", a.ConditionExpression != nil)
		case update:
			c.required(at+"updateExpression", a.UpdateExpression != nil)
		}
	}
	return c.err()
}

// parse returns the actions, in their order.
func (in *transactWriteInput) parse() ([]action, error) {
	actions := make([]action, len(in.TransactItems))
	bytes := 0
	for i, w := range in.TransactItems {
		a, v, _, err := w.only()
		if err != nil {
			return nil, err
		}
		if actions[i], err = a.parse(v); err != nil {
			return nil, err
		}
		bytes += actions[i].size()
	}
	if bytes > maxTransactionBytes {
		return nil, exception.Invalid("Transaction payload size cannot exceed 4MB. Payload Size: %d", bytes)
	}
	return actions, nil
}

// transactWrite is one TransactWriteItems whose parameters are valid.
type transactWrite struct {
	db         *DB
	actions    []action
	mode       *string // ReturnConsumedCapacity
	metrics    *string // ReturnItemCollectionMetrics
	token      string  // empty: none
	parameters digest
	targets    []target
}

const transactWriteName = "TransactWriteItems"

// run does the transaction, as a whole or not at all.
func (w *transactWrite) run(ctx context.Context) (output []byte, err error) {
	db := w.db
	m := db.enter()
	defer func() { db.mu.Unlock() }()
	if w.token != "" {
		use, replay, refused := db.transactions.tokens.begin(m.now, w.token, w.parameters)
		if refused != nil {
			return nil, refused
		}
		if replay {
			return w.replay()
		}
		defer func() { db.transactions.tokens.end(m.now, use, err == nil) }()
	}
	if err := w.aim(); err != nil {
		return nil, err
	}
	if err := w.meet(m); err != nil {
		return nil, err
	}
	if wait := db.cfg.Hold(); wait != nil {
		db.transactions.hold(w.targets)
		db.mu.Unlock()
		err := wait(ctx)
		m = db.enter() // what holds now: the lags, too, by which the tables are kept
		db.transactions.release(w.targets)
		if err != nil {
			return nil, err
		}
		if err := w.stillThere(); err != nil {
			return nil, err
		}
	}
	return w.apply(m)
}

// aim finds the items of all actions, in their order. Of several faults it returns the first of this list:
//   - a table does not exist;
//   - a fault of the input, such as an empty key;
//   - an action does not fit its table, such as a key of another type: this cancels the transaction;
//   - two actions are about one item.
//
// AWS checks all keys before it reads an item, and the first action that does not fit is the only reason.
// This was measured in eu-west-2: github.com/floci-io/floci, pull request 3674. DynamoDB Local reports such a
// fault beside the reasons of the other actions, and looks for duplicates first.
func (w *transactWrite) aim() error {
	tables := make([]*tableState, len(w.actions))
	for i := range tables {
		t, err := w.db.lookup(w.actions[i].tableName)
		if err != nil {
			return err
		}
		tables[i] = t
	}
	w.targets = make([]target, len(w.actions))
	var misfit reasons // nil: all actions fit their tables
	for i, t := range tables {
		x, err := w.actions[i].aim(t)
		if ofInput(err) {
			return err
		}
		if err != nil && misfit == nil {
			misfit = make(reasons, len(w.actions))
			misfit[i] = reasonOf(err)
		}
		w.targets[i] = x
	}
	if misfit != nil {
		return misfit.cancelled()
	}
	return w.distinct()
}

// distinct errs if two actions are about one item.
func (w *transactWrite) distinct() error {
	seen := make(map[itemID]bool, len(w.targets))
	for i := range w.targets {
		id := w.targets[i].id
		if seen[id] {
			return sameItemTwice()
		}
		seen[id] = true
	}
	return nil
}

// meet errs if items are another transaction's.
func (w *transactWrite) meet(m moment) error {
	which, collided := w.db.collides(m, len(w.targets), func(i int) itemID { return w.targets[i].id })
	if !collided {
		return nil
	}
	rs := make(reasons, len(which))
	for i, collides := range which {
		if collides {
			rs[i] = conflictReason()
		}
	}
	_, costs := w.evaluate()
	return w.cancel(rs, costs)
}

// evaluate returns what all actions would do, and what each costs, outside of a transaction.
func (w *transactWrite) evaluate() (results []result, costs []usage) {
	results, costs = make([]result, len(w.targets)), make([]usage, len(w.targets))
	for i := range w.targets {
		results[i] = w.targets[i].evaluate()
		costs[i] = w.targets[i].cost(results[i])
	}
	return results, costs
}

// stillThere errs if a table was deleted while the transaction held its items.
func (w *transactWrite) stillThere() error {
	for i := range w.targets {
		t, err := w.db.lookup(w.targets[i].tableName)
		if err == nil && t != w.targets[i].id.table {
			err = noTable()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// apply does all actions, or none if something speaks against one of them.
func (w *transactWrite) apply(m moment) ([]byte, error) {
	results, costs := w.evaluate()
	for _, r := range results {
		if ofInput(r.err) {
			return nil, r.err
		}
	}
	if err := w.admit(m, costs); err != nil {
		return nil, err
	}
	rs := make(reasons, len(results))
	for i, r := range results {
		rs[i] = reasonOf(r.err)
	}
	if rs.any() {
		return nil, w.cancel(rs, costs)
	}
	var used usages
	var done []*target
	for i, r := range results {
		w.targets[i].do(m, r)
		used.add(costs[i].times(transactional))
		done = append(done, &w.targets[i])
	}
	w.db.billAll(transactWriteName, used, Applied)
	out := used.appendTo([]byte{'{'}, w.mode, true)
	return append(appendCollections(out, w.metrics, done), '}'), nil
}

// admit errs if tables or partitions have too few units left.
func (w *transactWrite) admit(m moment, costs []usage) error {
	rs := make(reasons, len(w.targets))
	throttled := w.db.chance(m.Throttle)
	var all admission
	for i := range w.targets {
		x := &w.targets[i]
		units := transactional * costs[i].base
		if throttled || !all.add(x.id.table, m, demand{of: partition{hash: x.hash()}, write: units}) {
			rs[i] = throughputReason(x.id.table)
			return rs.cancelled()
		}
	}
	all.take()
	return nil
}

// cancel bills the transaction, which is not done for those reasons, and returns the exception. Nothing of an
// index is written, and so none is billed; and what is not valid costs nothing.
func (w *transactWrite) cancel(rs reasons, costs []usage) error {
	if rs.has(codeValidation) {
		return rs.cancelled()
	}
	var used usages
	for _, u := range costs {
		used.add(usage{table: u.table, write: true, base: u.base * transactional})
	}
	w.db.billAll(transactWriteName, used, Cancelled)
	return rs.cancelled()
}

// replay answers a transaction that has been applied already. It costs what reading its items does.
func (w *transactWrite) replay() ([]byte, error) {
	if err := w.aim(); err != nil {
		return nil, err
	}
	var used usages
	for i := range w.targets {
		id := w.targets[i].id
		size := value.ItemSize(id.table.Get(id.key))
		used.add(usage{table: id.table, base: transactional * readUnits(size, true)})
	}
	w.db.billAll(transactWriteName, used, Applied)
	return append(used.appendTo([]byte{'{'}, w.mode, true), '}'), nil
}
