package engine

import (
	"strconv"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// Bytes of an item that a unit pays for.
const (
	readUnit  = 4 << 10
	writeUnit = 1 << 10
)

// readUnits returns what reading that many bytes costs: a whole unit per 4 KB, at least one, and half of it
// where eventual consistency will do.
func readUnits(size int, consistent bool) float64 {
	units := float64(max(1, (size+readUnit-1)/readUnit))
	if !consistent {
		units /= 2
	}
	return units
}

// writeUnits returns what writing an item of that many bytes costs.
func writeUnits(size int) float64 {
	return float64(max(1, (size+writeUnit-1)/writeUnit))
}

// usage is what a request consumes of one table: of read units, or of write units.
type usage struct {
	table   *tableState
	write   bool
	base    float64
	indexes map[string]float64 // what of indexes; nil, or by name
}

// add adds what v, of the same table, consumed.
func (u *usage) add(v usage) {
	u.base += v.base
	for name, units := range v.indexes {
		u.addIndex(name, units)
	}
}

// addIndex adds units of an index. One of zero units is shown in the output too.
func (u *usage) addIndex(name string, units float64) {
	if u.indexes == nil {
		u.indexes = map[string]float64{}
	}
	u.indexes[name] += units
}

// total returns the units of the table and its indexes.
func (u *usage) total() float64 {
	total := u.base
	for _, units := range u.indexes {
		total += units
	}
	return total
}

// times returns u, multiplied: a transaction pays double.
func (u *usage) times(factor float64) usage {
	product := usage{table: u.table, write: u.write, base: u.base * factor}
	for name, units := range u.indexes {
		product.addIndex(name, units*factor)
	}
	return product
}

// bill tells the meter what an operation consumed: a bill for the table, one for each index.
func (db *DB) bill(operation string, u usage, outcome Outcome) {
	bill := func(index string, units float64) {
		if units == 0 {
			return
		}
		b := Bill{Operation: operation, Table: u.table.Def.Name, Index: index, Outcome: outcome}
		if u.write {
			b.Write = units
		} else {
			b.Read = units
		}
		db.cfg.Bill(b)
	}
	bill("", u.base)
	for _, index := range u.table.Def.Indexes {
		bill(index.Name, u.indexes[index.Name])
	}
}

// usages is what a request consumes of several tables, in the order in which it comes to them.
type usages []usage

// add adds what was consumed of a table.
func (us *usages) add(u usage) {
	for i := range *us {
		if (*us)[i].table == u.table {
			(*us)[i].add(u)
			return
		}
	}
	*us = append(*us, u.times(1)) // its own map
}

// appendTo appends the member ConsumedCapacity of an operation on several tables, if it is wanted.
func (us usages) appendTo(b []byte, mode *string, transactional bool) []byte {
	if !wantsConsumed(mode) {
		return b
	}
	b = append(appendMember(b, "ConsumedCapacity"), '[')
	for _, u := range us {
		b = appendConsumed(appendElement(b), *mode, transactional, u)
	}
	return append(b, ']')
}

// billAll bills each table.
func (db *DB) billAll(operation string, us usages, outcome Outcome) {
	for _, u := range us {
		db.bill(operation, u, outcome)
	}
}

// Values of ReturnConsumedCapacity. Another one, or none, is as NONE.
const (
	consumedTotal   = "TOTAL"
	consumedIndexes = "INDEXES"
)

// wantsConsumed reports whether ReturnConsumedCapacity asks for anything.
func wantsConsumed(mode *string) bool {
	return mode != nil && (*mode == consumedTotal || *mode == consumedIndexes)
}

// appendConsumed appends the object ConsumedCapacity of one table. Transactions also say which kind of unit
// it is.
func appendConsumed(b []byte, mode string, transactional bool, u usage) []byte {
	kind := ""
	if transactional {
		kind = "ReadCapacityUnits"
		if u.write {
			kind = "WriteCapacityUnits"
		}
	}
	b = append(b, `{"TableName":`...)
	b = value.AppendString(b, u.table.Def.Name)
	b = append(b, ',')
	b = appendUnits(b, kind, u.total())
	if mode == consumedIndexes {
		b = append(b, `,"Table":{`...)
		b = append(appendUnits(b, kind, u.base), '}')
		b = appendIndexUnits(b, "LocalSecondaryIndexes", kind, u, true)
		b = appendIndexUnits(b, "GlobalSecondaryIndexes", kind, u, false)
	}
	return append(b, '}')
}

// appendIndexUnits appends what was consumed of the local indexes, or of the global ones, if of any.
func appendIndexUnits(b []byte, member, kind string, u usage, local bool) []byte {
	shown := false
	for _, index := range u.table.Def.Indexes {
		units, ok := u.indexes[index.Name]
		if !ok || index.Local != local {
			continue
		}
		if !shown {
			b = append(b, `,"`+member+`":{`...)
			shown = true
		} else {
			b = append(b, ',')
		}
		b = value.AppendString(b, index.Name)
		b = append(b, `:{`...)
		b = append(appendUnits(b, kind, units), '}')
	}
	if shown {
		b = append(b, '}')
	}
	return b
}

// appendUnits appends the member CapacityUnits, and that of the kind unless it is empty.
func appendUnits(b []byte, kind string, units float64) []byte {
	b = append(b, `"CapacityUnits":`...)
	b = strconv.AppendFloat(b, units, 'f', -1, 64)
	if kind != "" {
		b = append(b, `,"`+kind+`":`...)
		b = strconv.AppendFloat(b, units, 'f', -1, 64)
	}
	return b
}
