package engine

import (
	"context"
	"maps"
	"slices"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/table"
)

// createTableInput is CreateTable's input. Its other members, such as encryption and tags, have no effect
// here.
type createTableInput struct {
	TableName                 *string
	AttributeDefinitions      *[]attributeDefinition
	KeySchema                 *[]keySchemaElement
	LocalSecondaryIndexes     *[]secondaryIndex
	GlobalSecondaryIndexes    *[]secondaryIndex
	BillingMode               *string
	ProvisionedThroughput     *provisionedThroughput
	StreamSpecification       *streamSpecification
	DeletionProtectionEnabled bool
}

// describedTable is the output of operations that change a table.
type describedTable struct{ TableDescription tableDescription }

// createTable makes a table, which is active at once.
func createTable(_ context.Context, db *DB, input []byte) ([]byte, error) {
	r, err := decode[createTableInput](input)
	if err != nil {
		return nil, err
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	if err := r.checkBilling(); err != nil {
		return nil, err
	}
	def, err := r.schema()
	if err != nil {
		return nil, err
	}
	stream := r.StreamSpecification
	if err := checkNewStream(stream); err != nil {
		return nil, err
	}
	m := db.enter()
	defer db.mu.Unlock()
	if db.tables[def.Name] != nil {
		return nil, exception.New(exception.ResourceInUse, "Table already exists: %s", def.Name)
	}
	t := &tableState{Table: table.New(def)}
	t.traits = traits{
		definitions: *r.AttributeDefinitions, id: db.newID(), created: m.now,
		indexes: map[string]provisionedThroughput{},
		billing: provisioned, protected: r.DeletionProtectionEnabled,
	}
	if r.BillingMode != nil && *r.BillingMode == onDemand {
		t.billing, t.onDemandFrom = onDemand, m.now
	} else {
		t.throughput = *r.ProvisionedThroughput
		for _, index := range orNone(r.GlobalSecondaryIndexes) {
			t.indexes[*index.IndexName] = *index.ProvisionedThroughput
		}
	}
	if stream != nil && *stream.StreamEnabled {
		db.enableStream(t, *stream.StreamViewType, m.now)
	}
	db.tables[def.Name] = t
	return reply(describedTable{t.describe()})
}

// maxThroughput is where the service's check of a throughput ends.
const maxThroughput = 1_000_000_000_000

// checkBilling errs where the billing mode and the throughputs do not fit.
func (r createTableInput) checkBilling() error {
	p := r.ProvisionedThroughput
	if r.BillingMode != nil && *r.BillingMode == onDemand {
		if p != nil {
			return invalidParameters("Neither ReadCapacityUnits nor WriteCapacityUnits can be specified " +
				"when BillingMode is PAY_PER_REQUEST")
		}
		for _, index := range orNone(r.GlobalSecondaryIndexes) {
			if index.ProvisionedThroughput != nil {
				return invalidParameters("ProvisionedThroughput should not be specified for index: %s "+
					"when BillingMode is PAY_PER_REQUEST", *index.IndexName)
			}
		}
		return nil
	}
	if p == nil {
		return invalidParameters("ReadCapacityUnits and WriteCapacityUnits must both be specified when " +
			"BillingMode is PROVISIONED")
	}
	if err := p.check(); err != nil {
		return err
	}
	for _, index := range orNone(r.GlobalSecondaryIndexes) {
		if index.ProvisionedThroughput == nil {
			return invalidParameters("ProvisionedThroughput is not specified for index: %s", *index.IndexName)
		}
		if err := index.ProvisionedThroughput.check(); err != nil {
			return err
		}
	}
	return nil
}

// check errs where the throughput is too high.
func (p *provisionedThroughput) check() error {
	if *p.ReadCapacityUnits > maxThroughput {
		return exception.Invalid("Given value %d for ReadCapacityUnits is out of bounds", *p.ReadCapacityUnits)
	}
	if *p.WriteCapacityUnits > maxThroughput {
		return exception.Invalid("Given value %d for WriteCapacityUnits is out of bounds", *p.WriteCapacityUnits)
	}
	return nil
}

// checkNewStream errs if the stream of a new table has no view, or has one and is none.
func checkNewStream(s *streamSpecification) error {
	switch {
	case s == nil || *s.StreamEnabled == (s.StreamViewType != nil):
		return nil
	case *s.StreamEnabled:
		return invalidParameters("Table is being created with a stream enabled, UpdateViewType is required")
	default:
		return invalidParameters("Table is being created with a stream disabled, UpdateViewType should not be " +
			"specified")
	}
}

// namedTable is the input of operations that only name a table.
type namedTable struct{ TableName *string }

// onTable runs an operation whose input only names a table, under the lock, and returns its output.
func (db *DB) onTable(input []byte, run func(*tableState, moment) (output any, err error)) ([]byte, error) {
	r, err := decode[namedTable](input)
	if err != nil {
		return nil, err
	}
	if err := checkNamed(r.TableName); err != nil {
		return nil, err
	}
	m := db.enter()
	defer db.mu.Unlock()
	t, err := db.lookupNamed(*r.TableName)
	if err != nil {
		return nil, err
	}
	output, err := run(t, m)
	if err != nil {
		return nil, err
	}
	return reply(output)
}

// checkNamed errs if the name that an operation on tables must have is missing or is none.
func checkNamed(name *string) error {
	if name == nil {
		return missingParameter("TableName")
	}
	var c constraints
	c.table(name)
	return c.err()
}

// lookupNamed returns the table of that name or ARN. Unlike operations on items, those on tables tell its
// name in their error.
func (db *DB) lookupNamed(name string) (*tableState, error) {
	if t := db.tables[tableName(name)]; t != nil {
		return t, nil
	}
	return nil, exception.New(exception.ResourceNotFound, "Requested resource not found: Table: %s not found",
		tableName(name))
}

func describeTable(_ context.Context, db *DB, input []byte) ([]byte, error) {
	return db.onTable(input, func(t *tableState, _ moment) (any, error) {
		return struct{ Table tableDescription }{t.describe()}, nil
	})
}

// deleteTable removes a table at once. Its stream stays readable for as long as streams keep records.
func deleteTable(_ context.Context, db *DB, input []byte) ([]byte, error) {
	return db.onTable(input, func(t *tableState, m moment) (any, error) {
		if t.protected {
			return nil, exception.Invalid(
				"Resource cannot be deleted as it is currently protected against deletion. " +
					"Disable deletion protection first.")
		}
		if s := t.Stream(); s != nil && s.Enabled {
			s.Disable(m.now)
		}
		delete(db.tables, t.Def.Name)
		d := t.describe()
		d.TableStatus = "DELETING"
		return describedTable{d}, nil
	})
}

// maxTables is how many names ListTables returns at most.
const maxTables = 100

func listTables(_ context.Context, db *DB, input []byte) ([]byte, error) {
	r, err := decode[struct {
		ExclusiveStartTableName *string
		Limit                   *int
	}](input)
	if err != nil {
		return nil, err
	}
	var c constraints
	if r.ExclusiveStartTableName != nil {
		c.name("exclusiveStartTableName", *r.ExclusiveStartTableName)
	}
	c.between("limit", r.Limit, 1, maxTables)
	if err := c.err(); err != nil {
		return nil, err
	}
	limit := maxTables
	if r.Limit != nil {
		limit = *r.Limit
	}
	db.enter()
	defer db.mu.Unlock()
	names := slices.Sorted(maps.Keys(db.tables))
	if after := r.ExclusiveStartTableName; after != nil {
		i, found := slices.BinarySearch(names, *after)
		if found {
			i++
		}
		names = names[i:]
	}
	var output struct {
		TableNames             []string
		LastEvaluatedTableName string `json:",omitempty"`
	}
	if len(names) > limit {
		names = names[:limit]
		output.LastEvaluatedTableName = names[limit-1]
	}
	output.TableNames = append([]string{}, names...) // never null
	return reply(output)
}

// orNone returns the list, or an empty one where there is none.
func orNone[T any](list *[]T) []T {
	if list == nil {
		return nil
	}
	return *list
}
