package engine

import (
	"context"
	"maps"
	"slices"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/expr"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// Bounds of a BatchGetItem.
const (
	maxBatchGets     = 100
	maxBatchGetBytes = 16 << 20
)

// keysAndAttributes is what a BatchGetItem wants of one table.
type keysAndAttributes struct {
	legacy
	Keys                     []map[string]*value.Wire
	ProjectionExpression     *string
	ExpressionAttributeNames map[string]string
	ConsistentRead           bool
}

// tableGets are the reads of one table of a batch.
type tableGets struct {
	name       string // as the request has it
	in         *keysAndAttributes
	projection *expr.Projection
	keys       []value.Map
}

// parse returns the reads of a table, whose keys are there.
func (in *keysAndAttributes) parse(name string) (tableGets, error) {
	g := tableGets{name: name, in: in}
	if err := in.refuse(); err != nil {
		return g, err
	}
	projection, err := parseProjection(in.ProjectionExpression, in.ExpressionAttributeNames, func() error {
		for _, w := range in.Keys {
			key, err := value.DecodeMap(w)
			if err != nil {
				return err
			}
			g.keys = append(g.keys, key)
		}
		return nil
	})
	g.projection = projection
	return g, err
}

func batchGetItem(_ context.Context, db *DB, input []byte) ([]byte, error) {
	in, err := decode[struct {
		RequestItems           map[string]*keysAndAttributes
		ReturnConsumedCapacity *string
	}](input)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(in.RequestItems))
	var c constraints
	c.consumed(in.ReturnConsumedCapacity)
	if err := c.requestItems("BatchGetItem", names, in.RequestItems != nil); err != nil {
		return nil, err
	}
	for _, name := range names {
		at := "requestItems." + name + ".member.keys"
		of := in.RequestItems[name]
		c.required(at, of != nil && of.Keys != nil)
		if of != nil && of.Keys != nil {
			c.length(at, "[]", len(of.Keys), 1, 0)
		}
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	count := 0
	gets := make([]tableGets, len(names))
	for i, name := range names {
		if gets[i], err = in.RequestItems[name].parse(name); err != nil {
			return nil, err
		}
		if count += len(gets[i].keys); count > maxBatchGets {
			return nil, exception.Invalid("Too many items requested for the BatchGetItem call")
		}
	}

	m := db.enter()
	defer db.mu.Unlock()
	return db.batchGet(m, gets, in.ReturnConsumedCapacity)
}

// requestItems holds that a batch is there, and that its tables have names of tables. It errs if there are no
// tables, of which the service speaks alone.
func (c *constraints) requestItems(operation string, names []string, there bool) error {
	if there && len(names) == 0 {
		return exception.Invalid("The requestItems parameter is required for %s", operation)
	}
	c.required("requestItems", there)
	for _, name := range names {
		c.name("requestItems", tableName(name))
	}
	return nil
}

// batchGet reads the items of a batch whose parameters are valid.
func (db *DB) batchGet(m moment, gets []tableGets, mode *string) ([]byte, error) {
	tables := make([]*tableState, len(gets))
	seen := map[itemID]bool{}
	for i, g := range gets {
		t, err := db.lookup(g.name)
		if err != nil {
			return nil, err
		}
		tables[i] = t
		for _, key := range g.keys {
			if err := t.checkKey(key); err != nil {
				return nil, err
			}
			id := itemID{t, t.KeyOf(key)}
			if seen[id] {
				return nil, exception.Invalid("Provided list of item keys contains duplicates")
			}
			seen[id] = true
		}
		if g.projection != nil {
			if err := t.checkScalars(g.projection); err != nil {
				return nil, err
			}
		}
	}
	if db.chance(m.Throttle) {
		return nil, ThroughputExceeded()
	}
	var used usages
	throttled, bytes := 0, 0
	unprocessed := []byte{'{'}
	out := append(appendMember([]byte{'{'}, "Responses"), '{')
	for i, g := range gets {
		t := tables[i]
		u := usage{table: t}
		var left []value.Map
		out = append(appendMember(out, t.Def.Name), '[')
		for _, key := range g.keys {
			if db.chance(m.Unprocessed) || bytes > maxBatchGetBytes {
				left = append(left, key)
				continue
			}
			item := t.read(m, key, g.in.ConsistentRead)
			size := value.ItemSize(item)
			if bytes += size; bytes > maxBatchGetBytes {
				left = append(left, key)
				continue
			}
			units := readUnits(size, g.in.ConsistentRead)
			if !t.admit(m, demand{of: partition{hash: key[t.Def.Key.Hash.Name]}, read: units}) {
				throttled++
				left = append(left, key)
				continue
			}
			u.base += units
			if item != nil {
				out = value.AppendMap(appendElement(out), project(g.projection, item))
			}
		}
		out = append(out, ']')
		used.add(u)
		if left != nil {
			unprocessed = g.appendUnprocessed(unprocessed, left)
		}
	}
	if throttled == len(seen) {
		return nil, ThroughputExceeded()
	}
	db.billAll("BatchGetItem", used, Applied)
	out = append(appendMember(append(out, '}'), "UnprocessedKeys"), unprocessed...)
	out = append(out, '}')
	out = used.appendTo(out, mode, false)
	return append(out, '}'), nil
}

// appendUnprocessed appends a table's part of UnprocessedKeys: the request for the keys that are left.
func (g *tableGets) appendUnprocessed(b []byte, left []value.Map) []byte {
	b = append(appendMember(b, g.name), `{"Keys":[`...)
	for _, key := range left {
		b = value.AppendMap(appendElement(b), key)
	}
	b = append(b, ']')
	if g.in.ProjectionExpression != nil {
		b = value.AppendString(appendMember(b, expr.ProjectionExpression), *g.in.ProjectionExpression)
	}
	if g.in.ExpressionAttributeNames != nil {
		b = append(appendMember(b, "ExpressionAttributeNames"), '{')
		for _, name := range slices.Sorted(maps.Keys(g.in.ExpressionAttributeNames)) {
			b = value.AppendString(appendMember(b, name), g.in.ExpressionAttributeNames[name])
		}
		b = append(b, '}')
	}
	if g.in.ConsistentRead {
		b = append(b, `,"ConsistentRead":true`...)
	}
	return append(b, '}')
}
