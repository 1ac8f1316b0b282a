package memdynamo

import (
	"maps"
	"sync"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/engine"
)

// Units are read and write capacity units, as on-demand tables are billed by.
type Units struct{ Read, Write float64 }

// add returns the sum.
func (u Units) add(v Units) Units { return Units{u.Read + v.Read, u.Write + v.Write} }

// Usage is what requests consumed, by how they ended. Those of indexes are counted with their table's.
type Usage struct {
	Applied   Units // they read or wrote
	Refused   Units // their condition failed, which costs a write all the same
	Cancelled Units // their transaction was cancelled, which costs as well
}

// Total returns the units of all ends.
func (u Usage) Total() Units { return u.Applied.add(u.Refused).add(u.Cancelled) }

// add returns the sum.
func (u Usage) add(v Usage) Usage {
	return Usage{u.Applied.add(v.Applied), u.Refused.add(v.Refused), u.Cancelled.add(v.Cancelled)}
}

// Consumption is what AWS would have billed, exceptions included, which do not show what they cost.
type Consumption struct {
	// Requests counts those that arrived, by operation, whatever became of them. A Duplicate counts twice.
	Requests map[string]int
	// Tables has the usage by table, and then by operation: Tables["rate_limits"]["UpdateItem"].Refused.Write.
	Tables map[string]map[string]Usage
}

// Table returns the sum of a table's operations.
func (c Consumption) Table(name string) Usage {
	var sum Usage
	for _, u := range c.Tables[name] {
		sum = sum.add(u)
	}
	return sum
}

// Total returns the sum of all tables.
func (c Consumption) Total() Usage {
	var sum Usage
	for name := range c.Tables {
		sum = sum.add(c.Table(name))
	}
	return sum
}

// meter adds up. The zero meter is at nothing.
type meter struct {
	mu  sync.Mutex
	sum Consumption
}

// arrived counts a request.
func (m *meter) arrived(operation string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sum.Requests == nil {
		m.sum.Requests = map[string]int{}
	}
	m.sum.Requests[operation]++
}

// bill adds what one request consumed of one table or index.
func (m *meter) bill(b engine.Bill) {
	units := Units{Read: b.Read, Write: b.Write}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sum.Tables == nil {
		m.sum.Tables = map[string]map[string]Usage{}
	}
	table := m.sum.Tables[b.Table]
	if table == nil {
		table = map[string]Usage{}
		m.sum.Tables[b.Table] = table
	}
	usage := table[b.Operation]
	switch b.Outcome {
	case engine.Applied:
		usage.Applied = usage.Applied.add(units)
	case engine.Refused:
		usage.Refused = usage.Refused.add(units)
	case engine.Cancelled:
		usage.Cancelled = usage.Cancelled.add(units)
	}
	table[b.Operation] = usage
}

// snapshot returns a copy of the sum.
func (m *meter) snapshot() Consumption {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := Consumption{Requests: maps.Clone(m.sum.Requests), Tables: maps.Clone(m.sum.Tables)}
	for name, table := range c.Tables {
		c.Tables[name] = maps.Clone(table)
	}
	return c
}

func (m *meter) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sum = Consumption{}
}
