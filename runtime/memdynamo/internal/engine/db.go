// Package engine is DynamoDB's operations on tables in memory: JSON in, JSON out. A file per family of
// operations.
package engine

import (
	"context"
	"sync"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

// Conditions are what the engine suffers beyond DynamoDB's rules. The zero value is fair weather.
type Conditions struct {
	StaleReads time.Duration // eventually consistent reads of a table see it this much earlier
	IndexLag   time.Duration // reads of an index likewise
	TTLLag     time.Duration // items are deleted this long after their expiry

	Throttle    float64 // probability that a request is refused for throughput
	Conflict    float64 // probability that a write or transaction meets a transaction on its items
	Unprocessed float64 // probability that a batch leaves an element unprocessed

	PartitionWrite, PartitionRead float64 // units a second per partition key; 0 is no bound
	TableWrite, TableRead         float64 // units a second per table; 0 is no bound
}

// Outcome is how a billed request ended.
type Outcome uint8

// Outcomes of a request.
const (
	Applied   Outcome = iota // it read or wrote
	Refused                  // its condition failed
	Cancelled                // its transaction was cancelled
)

// Bill is what one request consumed of one table, or of one of its indexes.
type Bill struct {
	Operation, Table, Index string
	Read, Write             float64
	Outcome                 Outcome
}

// Config is what an engine runs in. All are required.
type Config struct {
	Now  func() time.Time
	Rand func() float64 // in [0, 1); called under the engine's lock
	// asked under the engine's lock, once per request, and again when a transaction was held
	Conditions func() Conditions
	// Hold is called under the engine's lock when a transaction could apply. It returns nil if the transaction
	// applies at once. Otherwise the transaction holds its items, without the lock, until wait returns, and
	// fails if wait does.
	Hold func() (wait func(ctx context.Context) error)
	Bill func(Bill) // called under the engine's lock
}

// DB is one engine. It is safe for concurrent use.
type DB struct {
	cfg Config

	mu           sync.Mutex
	tables       map[string]*tableState
	streams      []*stream     // the oldest first; a deleted table's stay for a while
	past         time.Duration // what tables remember for stale reads
	transactions transactions
}

// New returns an engine without tables.
func New(cfg Config) *DB {
	return &DB{cfg: cfg, tables: map[string]*tableState{}, transactions: newTransactions()}
}

// operation reads input, takes the lock by enter, and returns the output.
type operation func(ctx context.Context, db *DB, input []byte) ([]byte, error)

// operations are what Do knows of DynamoDB_20120810.
var operations = map[string]operation{
	"CreateTable":        createTable,
	"DescribeTable":      describeTable,
	"UpdateTable":        updateTable,
	"DeleteTable":        deleteTable,
	"ListTables":         listTables,
	"UpdateTimeToLive":   updateTimeToLive,
	"DescribeTimeToLive": describeTimeToLive,

	"DescribeContinuousBackups": describeContinuousBackups,

	"PutItem":            putItem,
	"GetItem":            getItem,
	"UpdateItem":         updateItem,
	"DeleteItem":         deleteItem,
	"BatchGetItem":       batchGetItem,
	"BatchWriteItem":     batchWriteItem,
	"TransactWriteItems": transactWriteItems,
	"Query":              query,
	"Scan":               scan,
}

// streamOperations are what Do knows of DynamoDBStreams_20120810.
var streamOperations = map[string]operation{
	"ListStreams":      listStreams,
	"DescribeStream":   describeStream,
	"GetShardIterator": getShardIterator,
	"GetRecords":       getRecords,
}

// Known reports whether Do knows the operation, and whether it is one of DynamoDBStreams_20120810.
func Known(operation string) (known, streams bool) {
	_, known = operations[operation]
	_, streams = streamOperations[operation]
	return known || streams, streams
}

// Do runs one operation of the service DynamoDB_20120810 or DynamoDBStreams_20120810: its name, and its input
// as JSON. It returns the output as JSON, empty for the operations that have none, or an *exception.Error, or
// ctx's error if ctx ended before anything was done.
func (db *DB) Do(ctx context.Context, operation string, input []byte) ([]byte, error) {
	run, ok := operations[operation]
	if !ok {
		run, ok = streamOperations[operation]
	}
	if !ok {
		return nil, exception.New(exception.UnknownOperation, "")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return run(ctx, db, input)
}

// moment is what holds for the whole of a request: its time, and the conditions it found.
type moment struct {
	Conditions
	now time.Time
}

// enter takes the lock for a request, which gives it back by db.mu.Unlock, and brings the tables up to its
// moment.
func (db *DB) enter() moment {
	db.mu.Lock()
	m := moment{db.cfg.Conditions(), db.cfg.Now()}
	db.remember(m)
	db.sweep(m)
	db.trim(m)
	return m
}

// remember makes tables keep as much of the past as stale reads and lagging indexes want to see.
func (db *DB) remember(m moment) {
	past := max(m.StaleReads, m.IndexLag)
	if past == 0 && db.past == 0 {
		return
	}
	db.past = past
	for _, t := range db.tables {
		t.KeepPast(past, m.now)
	}
}

// chance reports whether something of probability p happens.
func (db *DB) chance(p float64) bool {
	return p > 0 && db.cfg.Rand() < p
}
