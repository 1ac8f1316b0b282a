package engine

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// transactGetInput is the input of TransactGetItems.
type transactGetInput struct {
	TransactItems          []*transactGetItem
	ReturnConsumedCapacity *string
}

// transactGetItem is one read of a TransactGetItems.
type transactGetItem struct{ Get *getInput }

func transactGetItems(_ context.Context, db *DB, input []byte) ([]byte, error) {
	in, err := decode[transactGetInput](input)
	if err != nil {
		return nil, err
	}
	if err := in.validate(); err != nil {
		return nil, err
	}
	gets := make([]get, len(in.TransactItems))
	for i, item := range in.TransactItems {
		if gets[i], err = item.Get.parse(); err != nil {
			return nil, err
		}
	}

	m := db.enter()
	defer db.mu.Unlock()
	return db.transactGet(m, gets, in.ReturnConsumedCapacity)
}

// validate holds the parameters to the rules of each one alone.
func (in *transactGetInput) validate() error {
	var c constraints
	c.consumed(in.ReturnConsumedCapacity)
	c.transactItems(len(in.TransactItems), in.TransactItems != nil)
	for i, item := range in.TransactItems {
		at := fmt.Sprintf("transactItems.%d.member.get", i+1)
		if item == nil || item.Get == nil {
			c.required(at, false)
			continue
		}
		c.required(at+".tableName", item.Get.TableName != nil)
		if item.Get.TableName != nil {
			c.name(at+".tableName", tableName(*item.Get.TableName))
		}
		c.required(at+".key", item.Get.Key != nil)
	}
	return c.err()
}

// transactGet reads items of one moment.
func (db *DB) transactGet(m moment, gets []get, mode *string) ([]byte, error) {
	ids, err := db.aimGets(gets)
	if err != nil {
		return nil, err
	}
	which, collided := db.collides(m, len(ids), func(i int) itemID { return ids[i] })
	throttled := db.chance(m.Throttle)
	rs := make(reasons, len(gets))
	items := make([]value.Map, len(gets))
	var used usages
	var all admission
	for i, id := range ids {
		items[i] = id.table.Get(id.key)
		u := usage{table: id.table, base: transactional * readUnits(value.ItemSize(items[i]), true)}
		used.add(u)
		hash := gets[i].key[id.table.Def.Key.Hash.Name]
		switch {
		case which[i]:
			rs[i] = conflictReason()
		case throttled || !collided && !all.add(id.table, m, demand{of: partition{hash: hash}, read: u.base}):
			rs[i] = throughputReason(id.table)
		}
	}
	if rs.any() {
		if collided && !throttled {
			db.billAll("TransactGetItems", used, Cancelled)
		}
		return nil, rs.cancelled()
	}
	all.take()
	db.billAll("TransactGetItems", used, Applied)
	out := used.appendTo([]byte{'{'}, mode, true)
	out = append(appendMember(out, "Responses"), '[')
	for i, item := range items {
		out = append(appendElement(out), '{')
		if item != nil {
			out = value.AppendMap(appendMember(out, "Item"), project(gets[i].projection, item))
		}
		out = append(out, '}')
	}
	return append(out, "]}"...), nil
}

// aimGets finds the items of all reads.
func (db *DB) aimGets(gets []get) ([]itemID, error) {
	ids := make([]itemID, len(gets))
	err := db.aimAll(len(gets), func(i int) string { return gets[i].tableName }, func(i int,
		t *tableState) (itemID, error) {
		if err := gets[i].aim(t); err != nil {
			return itemID{}, err
		}
		ids[i] = itemID{t, t.KeyOf(gets[i].key)}
		return ids[i], nil
	})
	return ids, err
}
