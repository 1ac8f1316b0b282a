package engine

import (
	"context"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/expr"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// writeInput is the input of PutItem, UpdateItem and DeleteItem.
type writeInput struct {
	actionInput
	legacy
	ReturnValues, ReturnConsumedCapacity, ReturnItemCollectionMetrics *string
}

func putItem(_ context.Context, db *DB, input []byte) ([]byte, error) {
	return db.write("PutItem", put, input)
}

func updateItem(_ context.Context, db *DB, input []byte) ([]byte, error) {
	return db.write("UpdateItem", update, input)
}

func deleteItem(_ context.Context, db *DB, input []byte) ([]byte, error) {
	return db.write("DeleteItem", remove, input)
}

// write does a request that is one action.
func (db *DB) write(operation string, v verb, input []byte) ([]byte, error) {
	in, err := decode[writeInput](input)
	if err != nil {
		return nil, err
	}
	if err := in.validate(v); err != nil {
		return nil, err
	}
	a, err := in.parse(v)
	if err != nil {
		return nil, err
	}

	m := db.enter()
	defer db.mu.Unlock()
	t, err := db.lookup(a.tableName)
	if err != nil {
		return nil, err
	}
	x, err := a.aim(t)
	if err != nil {
		return nil, err
	}
	u, r, err := db.writeOne(operation, m, &x)
	if err != nil {
		return nil, err
	}
	out := []byte{'{'}
	if attributes := x.returned(in.ReturnValues, r); len(attributes) > 0 {
		out = value.AppendMap(appendMember(out, "Attributes"), attributes)
	}
	if wantsConsumed(in.ReturnConsumedCapacity) {
		out = appendConsumed(appendMember(out, "ConsumedCapacity"), *in.ReturnConsumedCapacity, false, u)
	}
	if wantsMetrics(in.ReturnItemCollectionMetrics) && x.collects() {
		out = x.appendCollection(appendMember(out, "ItemCollectionMetrics"))
	}
	return append(out, '}'), nil
}

// validate holds the parameters to the rules of each one alone.
func (in *writeInput) validate(v verb) error {
	var c constraints
	c.consumed(in.ReturnConsumedCapacity)
	c.table(in.TableName)
	if v == put {
		c.required("item", in.Item != nil)
	} else {
		c.required("key", in.Key != nil)
	}
	c.enum("returnValues", in.ReturnValues, allNew, updatedOld, allOld, none, updatedNew)
	c.enum("returnItemCollectionMetrics", in.ReturnItemCollectionMetrics, "SIZE", "NONE")
	c.enum("returnValuesOnConditionCheckFailure", in.ReturnValuesOnConditionCheckFailure, allOld, none)
	if err := c.err(); err != nil {
		return err
	}
	if v != update && in.ReturnValues != nil && *in.ReturnValues != allOld && *in.ReturnValues != none {
		return exception.Invalid("ReturnValues can only be ALL_OLD or NONE")
	}
	return in.refuse()
}

// writeOne does an action that stands for itself, and bills it. It errs, and nothing is done, if the action
// meets a transaction or a bound of throughput, if its condition fails, or if it makes no sense for its item.
func (db *DB) writeOne(operation string, m moment, x *target) (usage, result, error) {
	if db.transactions.held[x.id] || db.chance(m.Conflict) {
		return usage{}, result{}, exception.New(exception.TransactionConflict, conflictText)
	}
	r := x.evaluate()
	if r.err != nil && !exception.Is(r.err, exception.ConditionalCheckFailed) {
		return usage{}, r, r.err
	}
	u := x.cost(r)
	d := demand{of: partition{hash: x.hash()}, write: u.base}
	if db.chance(m.Throttle) || !x.id.table.admit(m, d) {
		return u, r, ThroughputExceeded()
	}
	if r.err != nil {
		db.bill(operation, u, Refused)
		return u, r, r.err
	}
	x.do(m, r)
	db.bill(operation, u, Applied)
	return u, r, nil
}

// getInput is the input of GetItem.
type getInput struct {
	TableName                *string
	Key                      map[string]*value.Wire
	ProjectionExpression     *string
	ExpressionAttributeNames map[string]string
}

// get is a read of one item. It is valid as far as can be told without its table.
type get struct {
	tableName  string
	key        value.Map
	projection *expr.Projection // nil: all
}

// parse returns the read, whose table and key are there.
func (in *getInput) parse() (get, error) {
	g := get{tableName: *in.TableName}
	projection, err := parseProjection(in.ProjectionExpression, in.ExpressionAttributeNames, func() (err error) {
		g.key, err = value.DecodeMap(in.Key)
		return err
	})
	g.projection = projection
	return g, err
}

// aim errs where the key or the projection is not as the table wants them.
func (g *get) aim(t *tableState) error {
	if g.projection != nil {
		if err := t.checkScalars(g.projection); err != nil {
			return err
		}
	}
	return t.checkKey(g.key)
}

// parseProjection returns what a projection expression chooses, or nil if there is none. between is done when
// it is known that there is an expression if there are names: the service looks at keys then.
func parseProjection(text *string, names map[string]string, between func() error) (*expr.Projection, error) {
	attributes := expressionAttributes{ExpressionAttributeNames: names}
	e := expression{expr.ProjectionExpression, text}
	if err := attributes.check(e); err != nil {
		return nil, err
	}
	if err := between(); err != nil {
		return nil, err
	}
	if text == nil {
		return nil, nil
	}
	scope, err := attributes.scope(e)
	if err != nil {
		return nil, err
	}
	projection, err := scope.Projection(*text)
	if err != nil {
		return nil, err
	}
	return projection, scope.Unused()
}

// project returns the part of item that a projection chooses: all of it if there is none.
func project(projection *expr.Projection, item value.Map) value.Map {
	if projection == nil {
		return item
	}
	return projection.Of(item)
}

// read returns the item of that key, or nil: as it is, or, where eventual consistency will do, as it was.
func (t *tableState) read(m moment, key value.Map, consistent bool) value.Map {
	if consistent || m.StaleReads == 0 {
		return t.Get(t.KeyOf(key))
	}
	view := t.View("", m.now.Add(-m.StaleReads))
	return view.Get(t.KeyOf(key))
}

func getItem(_ context.Context, db *DB, input []byte) ([]byte, error) {
	in, err := decode[struct {
		getInput
		legacy
		ConsistentRead         bool
		ReturnConsumedCapacity *string
	}](input)
	if err != nil {
		return nil, err
	}
	var c constraints
	c.consumed(in.ReturnConsumedCapacity)
	c.table(in.TableName)
	c.required("key", in.Key != nil)
	if err := c.err(); err != nil {
		return nil, err
	}
	if err := in.refuse(); err != nil {
		return nil, err
	}
	g, err := in.parse()
	if err != nil {
		return nil, err
	}

	m := db.enter()
	defer db.mu.Unlock()
	t, err := db.lookup(g.tableName)
	if err != nil {
		return nil, err
	}
	if err := g.aim(t); err != nil {
		return nil, err
	}
	item := t.read(m, g.key, in.ConsistentRead)
	u := usage{table: t, base: readUnits(value.ItemSize(item), in.ConsistentRead)}
	if db.chance(m.Throttle) ||
		!t.admit(m, demand{of: partition{hash: g.key[t.Def.Key.Hash.Name]}, read: u.base}) {
		return nil, ThroughputExceeded()
	}
	db.bill("GetItem", u, Applied)
	out := []byte{'{'}
	if item != nil {
		out = value.AppendMap(appendMember(out, "Item"), project(g.projection, item))
	}
	if wantsConsumed(in.ReturnConsumedCapacity) {
		out = appendConsumed(appendMember(out, "ConsumedCapacity"), *in.ReturnConsumedCapacity, false, u)
	}
	return append(out, '}'), nil
}
