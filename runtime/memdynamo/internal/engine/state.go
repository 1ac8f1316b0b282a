package engine

import (
	"strings"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/table"
)

// tableState is a table and what describes it.
type tableState struct {
	*table.Table
	traits

	buckets    map[gate]*bucket
	bucketsMax int // how many there may be before the full ones are forgotten
}

// lookup returns the table of that name or ARN.
func (db *DB) lookup(name string) (*tableState, error) {
	if t := db.tables[tableName(name)]; t != nil {
		return t, nil
	}
	return nil, noTable()
}

func noTable() error {
	return exception.New(exception.ResourceNotFound, "Requested resource not found")
}

// tableName returns the name that a TableName parameter gives: itself, or the end of an ARN.
func tableName(parameter string) string {
	if strings.HasPrefix(parameter, "arn:") {
		if _, name, ok := strings.Cut(parameter, ":table/"); ok {
			return name
		}
	}
	return parameter
}

// sweep deletes, as the service, what expired longer ago than the time that the service takes.
func (db *DB) sweep(m moment) {
	for _, t := range db.tables {
		for _, key := range t.Expired(m.now.Add(-m.TTLLag)) {
			t.Set(table.Change{At: m.now, Key: key, Service: true})
		}
	}
}
