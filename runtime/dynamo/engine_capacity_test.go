package dynamo

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
)

// usage is what DynamoDB says that calls cost.
type usage struct {
	Calls, Reads, Writes int
	Units                float64 // of the table
	Indexes              float64 // units of all indexes
}

// meter is an API that asks for the capacity of table and indexes, and adds it up.
type meter struct {
	wire.API
	// DynamoDB Local bills nothing for keys of a batch that have no item, nor for the third item of a
	// transaction; AWS does
	local bool
	mu    sync.Mutex
	sum   usage
}

func newMeter(tb testing.TB, api wire.API) *meter {
	tb.Helper()
	return &meter{API: api, local: dynamotest.OnLocal(tb)}
}

// billed returns what AWS bills for a write of so many units whose condition failed, which no engine tells
// with the error.
func billed(err error, units float64) *types.ConsumedCapacity {
	if o, _ := wire.Classify(err); o != wire.Refused && !isA[*types.TransactionCanceledException](err) {
		units = 0
	}
	return &types.ConsumedCapacity{Table: &types.Capacity{CapacityUnits: &units}}
}

func (m *meter) note(c *types.ConsumedCapacity, write bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sum.Calls++
	if write {
		m.sum.Writes++
	} else {
		m.sum.Reads++
	}
	if c.Table != nil {
		m.sum.Units += aws.ToFloat64(c.Table.CapacityUnits)
	}
	for _, index := range c.GlobalSecondaryIndexes {
		m.sum.Indexes += aws.ToFloat64(index.CapacityUnits)
	}
}

func (m *meter) take() usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() { m.sum = usage{} }()
	return m.sum
}

func (m *meter) GetItem(
	ctx context.Context,
	in *dynamodb.GetItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.GetItemOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityIndexes
	out, err := m.API.GetItem(ctx, in, opts...)
	if err != nil {
		return nil, err
	}
	m.note(out.ConsumedCapacity, false)
	return out, nil
}

func (m *meter) BatchGetItem(
	ctx context.Context,
	in *dynamodb.BatchGetItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityIndexes
	out, err := m.API.BatchGetItem(ctx, in, opts...)
	if err != nil {
		return nil, err
	}
	used := &out.ConsumedCapacity[0]
	if m.local {
		for table, wanted := range in.RequestItems {
			missing := float64(len(wanted.Keys) - len(out.Responses[table]))
			if !aws.ToBool(wanted.ConsistentRead) {
				missing /= 2
			}
			used.Table.CapacityUnits = new(aws.ToFloat64(used.Table.CapacityUnits) + missing)
		}
	}
	m.note(used, false)
	return out, nil
}

func (m *meter) TransactWriteItems(
	ctx context.Context,
	in *dynamodb.TransactWriteItemsInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityIndexes
	out, err := m.API.TransactWriteItems(ctx, in, opts...)
	if err != nil {
		m.note(billed(err, 2*float64(len(in.TransactItems))), true)
		return nil, err
	}
	used := &out.ConsumedCapacity[0]
	if n := len(in.TransactItems); m.local && n > 2 {
		used.Table.CapacityUnits = new(2 * float64(n))
	}
	m.note(used, true)
	return out, nil
}

func (m *meter) PutItem(
	ctx context.Context,
	in *dynamodb.PutItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityIndexes
	out, err := m.API.PutItem(ctx, in, opts...)
	if err != nil {
		m.note(billed(err, 1), true)
		return nil, err
	}
	m.note(out.ConsumedCapacity, true)
	return out, nil
}

func (m *meter) UpdateItem(
	ctx context.Context,
	in *dynamodb.UpdateItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityIndexes
	out, err := m.API.UpdateItem(ctx, in, opts...)
	if err != nil {
		m.note(billed(err, 1), true)
		return nil, err
	}
	m.note(out.ConsumedCapacity, true)
	return out, nil
}

// TestCapacity holds what each call costs, read off ReturnConsumedCapacity with INDEXES.
func TestCapacity(t *testing.T) {
	e := newEngine(t)
	e.ttl = time.Minute
	m := newMeter(t, e.client)
	process := e.demo(t, m)
	costs := func(what string, want usage) {
		t.Helper()
		if got := m.take(); got != want {
			t.Errorf("%s cost %+v, want %+v", what, got, want)
		}
	}
	acquire := func(rpm, tpm int64) {
		t.Helper()
		if _, err := process.GPT4.Acquire(t.Context(), alice, limits.GPT4Cost{RPM: rpm, TPM: tpm}); err != nil {
			t.Fatal(err)
		}
	}

	acquire(1, 0)
	// One read, of the bucket and of what overrides its limits for the user and for all users: whatever is read
	// together is read consistently. GSI2 gets the new bucket's key, this once.
	costs("the first acquire", usage{Calls: 2, Reads: 1, Writes: 1, Units: 3 + 1, Indexes: 1})

	// The steady state on every path is 0 reads, 1 write unit and 1 round trip. Once a minute each override
	// costs half a unit, here of the user and of all users.
	const steady = 60
	for n := range int64(steady) {
		e.clock.set(1000 * n)
		acquire(1+n%2, 100)
	}
	costs("the steady state", usage{Calls: steady, Writes: steady, Units: steady})
	for _, path := range []string{"normal applied", "retry applied"} {
		if process.count(path) == 0 {
			t.Errorf("the steady state had no %s", path)
		}
	}

	e.clock.set(1000 * steady)
	acquire(1, 100)
	costs("an acquire a minute later", usage{Calls: 2, Reads: 1, Writes: 1, Units: 2*0.5 + 1})
}

// TestCapacitySeesIndexes shows that the meter sees an index that an acquire touches: one that projects ALL.
func TestCapacitySeesIndexes(t *testing.T) {
	e := newEngine(t)
	e.table = tableWith(t, e.client, func(in *dynamodb.CreateTableInput) {
		in.GlobalSecondaryIndexes[1].Projection.ProjectionType = types.ProjectionTypeAll
	})
	m := newMeter(t, e.client)
	process := e.demo(t, m)
	for range 2 {
		m.take()
		if _, err := process.GPT4.Acquire(t.Context(), alice, limits.GPT4Cost{RPM: 50}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := m.take(), (usage{Calls: 1, Writes: 1, Units: 1, Indexes: 1}); got != want {
		t.Errorf("cost %+v, want %+v", got, want)
	}
}
