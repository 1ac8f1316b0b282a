package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// maxBatchWrites is how many writes a BatchWriteItem may have.
const maxBatchWrites = 25

// writeRequest is one write of a BatchWriteItem.
type writeRequest struct {
	PutRequest    *putRequest
	DeleteRequest *deleteRequest
}

type putRequest struct{ Item map[string]*value.Wire }

type deleteRequest struct{ Key map[string]*value.Wire }

func batchWriteItem(_ context.Context, db *DB, input []byte) ([]byte, error) {
	in, err := decode[struct {
		RequestItems                                        map[string][]*writeRequest
		ReturnConsumedCapacity, ReturnItemCollectionMetrics *string
	}](input)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(in.RequestItems))
	var c constraints
	c.consumed(in.ReturnConsumedCapacity)
	c.enum("returnItemCollectionMetrics", in.ReturnItemCollectionMetrics, "SIZE", "NONE")
	if err := c.requestItems("BatchWriteItem", names, in.RequestItems != nil); err != nil {
		return nil, err
	}
	for _, name := range names {
		c.writeRequests("requestItems."+name, in.RequestItems[name])
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	var actions []action
	for _, name := range names {
		for _, w := range in.RequestItems[name] {
			a, err := w.parse(name)
			if err != nil {
				return nil, err
			}
			if actions = append(actions, a); len(actions) > maxBatchWrites {
				return nil, exception.Invalid("Too many items requested for the BatchWriteItem call")
			}
		}
	}

	m := db.enter()
	defer db.mu.Unlock()
	return db.batchWrite(m, actions, in.ReturnConsumedCapacity, in.ReturnItemCollectionMetrics)
}

// writeRequests holds that a table has writes, and that each has its item or its key.
func (c *constraints) writeRequests(at string, writes []*writeRequest) {
	c.length(at, "[]", len(writes), 1, 0)
	for i, w := range writes {
		at := fmt.Sprintf("%s.member.%d.member", at, i+1)
		switch {
		case w == nil:
			c.required(at, false)
		case w.PutRequest != nil:
			c.required(at+".putRequest.item", w.PutRequest.Item != nil)
		case w.DeleteRequest != nil:
			c.required(at+".deleteRequest.key", w.DeleteRequest.Key != nil)
		}
	}
}

// parse returns the write, whose item or key is there.
func (w *writeRequest) parse(name string) (action, error) {
	in := actionInput{TableName: &name}
	switch {
	case (w.PutRequest == nil) == (w.DeleteRequest == nil): // none or both: the service's words for it are these
		return action{}, exception.Invalid("Supplied AttributeValue has more than one datatypes set, " +
			"must contain exactly one of the supported datatypes")
	case w.PutRequest != nil:
		in.Item = w.PutRequest.Item
		return in.parse(put)
	default:
		in.Key = w.DeleteRequest.Key
		return in.parse(remove)
	}
}

// batchWrite does the writes of a batch whose parameters are valid. Each stands for itself: one that meets a
// transaction or a bound of throughput is left unprocessed.
func (db *DB) batchWrite(m moment, actions []action, consumed, metrics *string) ([]byte, error) {
	targets := make([]target, len(actions))
	seen := map[itemID]bool{}
	for i, a := range actions {
		t, err := db.lookup(a.tableName)
		if err != nil {
			return nil, err
		}
		if a.verb == put && !hasKey(t.Def.Key, a.item) {
			return nil, badKey()
		}
		if targets[i], err = a.aim(t); err != nil {
			return nil, err
		}
		if seen[targets[i].id] {
			return nil, exception.Invalid("Provided list of item keys contains duplicates")
		}
		seen[targets[i].id] = true
	}
	if db.chance(m.Throttle) {
		return nil, ThroughputExceeded()
	}
	m.Throttle = 0 // it was decided for the whole
	var used usages
	var done, left []*target
	throttled := 0
	for i := range targets {
		x := &targets[i]
		if db.chance(m.Unprocessed) {
			left = append(left, x)
			continue
		}
		u, _, err := db.writeOne("BatchWriteItem", m, x)
		switch {
		case err == nil:
			used.add(u)
			done = append(done, x)
		case exception.Is(err, exception.ProvisionedExceeded):
			throttled++
			left = append(left, x)
		case exception.Is(err, exception.TransactionConflict):
			left = append(left, x)
		default:
			return nil, err
		}
	}
	if throttled == len(targets) {
		return nil, ThroughputExceeded()
	}
	out := append(appendMember([]byte{'{'}, "UnprocessedItems"), '{')
	for i, x := range left {
		if i == 0 || left[i-1].tableName != x.tableName {
			if i > 0 {
				out = append(out, ']')
			}
			out = append(appendMember(out, x.tableName), '[')
		}
		out = x.appendRequest(appendElement(out))
	}
	if left != nil {
		out = append(out, ']')
	}
	out = used.appendTo(append(out, '}'), consumed, false)
	out = appendCollections(out, metrics, done)
	return append(out, '}'), nil
}

// appendRequest appends the action as a WriteRequest.
func (a *action) appendRequest(b []byte) []byte {
	if a.verb == put {
		b = value.AppendMap(append(b, `{"PutRequest":{"Item":`...), a.item)
	} else {
		b = value.AppendMap(append(b, `{"DeleteRequest":{"Key":`...), a.key)
	}
	return append(b, "}}"...)
}
