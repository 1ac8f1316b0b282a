package dynamo

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/dynamotest"
	"github.com/sluice-go/sluice/runtime"
)

// usage is what DynamoDB says that calls cost.
type usage struct {
	Calls, Reads, Writes int
	Units                float64 // of the table
	Indexes              float64 // units of all indexes
}

// meter is an API that asks for the capacity of table and indexes, and adds it up.
type meter struct {
	API
	local bool // DynamoDB Local bills nothing for keys of a batch that have no item; AWS does, as for any read
	mu    sync.Mutex
	sum   usage
}

func newMeter(tb testing.TB, api API) *meter {
	tb.Helper()
	return &meter{API: api, local: dynamotest.OnLocal(tb)}
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
	if c == nil { // a refused write: the engine does not say
		return
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

func (m *meter) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityIndexes
	out, err := m.API.GetItem(ctx, in, opts...)
	if err != nil {
		return nil, err
	}
	m.note(out.ConsumedCapacity, false)
	return out, nil
}

func (m *meter) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
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

func (m *meter) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityIndexes
	out, err := m.API.TransactWriteItems(ctx, in, opts...)
	if err != nil {
		m.note(nil, true)
		return nil, err
	}
	m.note(&out.ConsumedCapacity[0], true)
	return out, nil
}

func (m *meter) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityIndexes
	out, err := m.API.PutItem(ctx, in, opts...)
	if err != nil {
		m.note(nil, true)
		return nil, err
	}
	m.note(out.ConsumedCapacity, true)
	return out, nil
}

func (m *meter) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityIndexes
	out, err := m.API.UpdateItem(ctx, in, opts...)
	if err != nil {
		m.note(nil, true)
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
	acquire := func(who demo, rpm, tpm int64) *limits.GPT4Lease {
		t.Helper()
		lease, err := who.GPT4.Acquire(t.Context(), alice, limits.GPT4Cost{RPM: rpm, TPM: tpm})
		if err != nil {
			t.Fatal(err)
		}
		return lease
	}
	one := usage{Calls: 1, Writes: 1, Units: 1}

	acquire(process, 1, 0)
	// One read, of the bucket and of what overrides its limits for the user and for all users: whatever is read together
	// is read consistently. GSI2 gets the new bucket's key, this once.
	costs("the first acquire", usage{Calls: 2, Reads: 1, Writes: 1, Units: 3 + 1, Indexes: 1})

	// The steady state, on every path: 0 reads, 1 write unit, 1 round trip; and once a minute half a unit for each level of
	// overrides, here of the user and of all users.
	const steady = 60
	for n := range int64(steady) {
		e.clock.set(1000 * n)
		acquire(process, 1+n%2, 100)
	}
	costs("the steady state", usage{Calls: steady, Writes: steady, Units: steady})
	for _, path := range []string{"normal applied", "retry applied"} {
		if process.count(path) == 0 {
			t.Errorf("the steady state had no %s", path)
		}
	}

	e.clock.set(1000 * steady)
	lease := acquire(process, 1, 100)
	costs("an acquire a minute later", usage{Calls: 2, Reads: 1, Writes: 1, Units: 2*0.5 + 1})
	if err := lease.Settle(t.Context(), limits.GPT4Cost{RPM: 1, TPM: 100}); err != nil {
		t.Fatal(err)
	}
	costs("a settle to what it had cost", usage{})

	for actual, what := range map[int64]string{50: "a settle down", 150: "a settle up"} {
		lease = acquire(process, 1, 100)
		m.take()
		if err := lease.Settle(t.Context(), limits.GPT4Cost{RPM: 1, TPM: actual}); err != nil {
			t.Fatal(err)
		}
		costs(what, one)
	}
	lease = acquire(process, 1, 100)
	m.take()
	lease.Release(t.Context())
	costs("a release", one)

	// Denials. There is no cache of them yet: each is one consistent read, whatever the process knew.
	deny := func(who demo) {
		t.Helper()
		_, err := who.GPT4.Acquire(t.Context(), alice, limits.GPT4Cost{TPM: 15_000})
		if _, denied := errors.AsType[*runtime.DeniedError](err); !denied {
			t.Fatalf("got %v, want a denial", err)
		}
	}
	acquire(process, 1, 5000)
	m.take()
	read := usage{Calls: 1, Reads: 1, Units: 1}
	deny(process)
	costs("a denial", read)
	deny(process)
	costs("a second denial", read)
	deny(e.demo(t, m))
	cold := usage{Calls: 1, Reads: 1, Units: 3}
	costs("a denial by a fresh process", cold)

	other := e.demo(t, m)
	acquire(other, 1, 0)
	costs("a fresh process's first acquire", usage{Calls: 2, Reads: 1, Writes: 1, Units: 3 + 1})
	if _, err := other.GPT4.Peek(t.Context(), alice); err != nil {
		t.Fatal(err)
	}
	costs("a peek", read)
}

// TestCapacityStale holds what a stale image costs: one refused write, whose reply says all, and one that is applied.
func TestCapacityStale(t *testing.T) {
	e := newEngine(t)
	m := newMeter(t, e.client)
	stale, other := e.demo(t, m), e.demo(t, m)
	for _, process := range []demo{stale, other} {
		if _, err := process.GPT4.Acquire(t.Context(), alice, limits.GPT4Cost{RPM: 1}); err != nil {
			t.Fatal(err)
		}
	}
	e.clock.set(1000)
	m.take()
	for _, process := range []demo{other, stale} { // nearly full, so both by Normal
		if _, err := process.GPT4.Acquire(t.Context(), alice, limits.GPT4Cost{RPM: 1}); err != nil {
			t.Fatal(err)
		}
	}
	want := usage{Calls: 3, Writes: 3, Units: 2} // and one for the refusal, of which the engine does not tell
	if got := m.take(); got != want {
		t.Errorf("cost %+v, want %+v", got, want)
	}
	if stale.count("normal refused") != 1 {
		t.Error("no write was refused")
	}
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
