package engine

import (
	"fmt"
	"strconv"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/table"
)

// Region is where the engine says that its tables are.
const Region = "us-east-1"

// account is whose it says they are.
const account = "000000000000"

// tableARN returns the ARN of the table of that name.
func tableARN(name string) string {
	return "arn:aws:dynamodb:" + Region + ":" + account + ":table/" + name
}

// epoch is a time as the service writes it: seconds since 1970, to the millisecond.
type epoch time.Time

// MarshalJSON writes the seconds as a number.
func (e epoch) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(time.Time(e).UnixMilli())/1000, 'f', -1, 64), nil
}

// traits are what a table's description says beside its definition and contents.
type traits struct {
	definitions  []attributeDefinition
	id           string
	created      time.Time
	billing      string    // a billing mode
	onDemandFrom time.Time // zero: it was never on demand
	throughput   provisionedThroughput
	indexes      map[string]provisionedThroughput // of global indexes, by name
	protected    bool                             // from deletion
	ttl          string                           // the attribute of expiry; empty: disabled
}

// TableDescription and its parts, as the service returns them.
type (
	tableDescription struct {
		AttributeDefinitions      []attributeDefinition
		TableName                 string
		KeySchema                 []keySchemaElement
		TableStatus               string
		CreationDateTime          epoch
		ProvisionedThroughput     throughputDescription
		TableSizeBytes            int
		ItemCount                 int
		TableArn                  string
		TableID                   string               `json:"TableId"`
		BillingModeSummary        *billingModeSummary  `json:",omitempty"`
		LocalSecondaryIndexes     []indexDescription   `json:",omitempty"`
		GlobalSecondaryIndexes    []indexDescription   `json:",omitempty"`
		StreamSpecification       *streamSpecification `json:",omitempty"`
		LatestStreamLabel         string               `json:",omitempty"`
		LatestStreamArn           string               `json:",omitempty"`
		DeletionProtectionEnabled bool
	}

	throughputDescription struct {
		NumberOfDecreasesToday                int
		ReadCapacityUnits, WriteCapacityUnits int64
	}

	billingModeSummary struct {
		BillingMode                       string
		LastUpdateToPayPerRequestDateTime epoch
	}

	indexDescription struct {
		IndexName             string
		KeySchema             []keySchemaElement
		Projection            projection
		IndexStatus           string                 `json:",omitempty"`
		ProvisionedThroughput *throughputDescription `json:",omitempty"`
		IndexSizeBytes        int
		ItemCount             int
		IndexArn              string
	}
)

// describe returns the table's description as of now: unlike the service's, its counts are exact.
func (t *tableState) describe() tableDescription {
	d := tableDescription{
		AttributeDefinitions:      t.definitions,
		TableName:                 t.Def.Name,
		KeySchema:                 elementsOf(t.Def.Key),
		TableStatus:               "ACTIVE",
		CreationDateTime:          epoch(t.created),
		ProvisionedThroughput:     t.throughput.describe(),
		TableSizeBytes:            t.Bytes(),
		ItemCount:                 t.Len(),
		TableArn:                  tableARN(t.Def.Name),
		TableID:                   t.id,
		DeletionProtectionEnabled: t.protected,
	}
	if !t.onDemandFrom.IsZero() {
		d.BillingModeSummary = &billingModeSummary{t.billing, epoch(t.onDemandFrom)}
	}
	for _, index := range t.Def.Indexes {
		if index.Local {
			d.LocalSecondaryIndexes = append(d.LocalSecondaryIndexes, t.describeIndex(index))
		} else {
			d.GlobalSecondaryIndexes = append(d.GlobalSecondaryIndexes, t.describeIndex(index))
		}
	}
	if s := t.Stream(); s != nil {
		d.LatestStreamLabel = s.Label
		d.LatestStreamArn = streamARN(t.Def.Name, s)
		if s.Enabled {
			d.StreamSpecification = &streamSpecification{StreamEnabled: &s.Enabled, StreamViewType: &s.View}
		}
	}
	return d
}

// describeIndex returns the description of one of the table's indexes.
func (t *tableState) describeIndex(index table.IndexDef) indexDescription {
	view := t.View(index.Name, time.Time{})
	d := indexDescription{
		IndexName:      index.Name,
		KeySchema:      elementsOf(index.Key),
		Projection:     projection{ProjectionType: &index.Projection.Type},
		IndexSizeBytes: view.Bytes(),
		ItemCount:      view.Len(),
		IndexArn:       tableARN(t.Def.Name) + "/index/" + index.Name,
	}
	if index.Projection.NonKey != nil {
		d.Projection.NonKeyAttributes = &index.Projection.NonKey
	}
	if !index.Local {
		throughput := t.indexes[index.Name].describe()
		d.IndexStatus, d.ProvisionedThroughput = "ACTIVE", &throughput
	}
	return d
}

// describe returns the throughput's description. That of a table on demand is of zero units.
func (p provisionedThroughput) describe() throughputDescription {
	var d throughputDescription
	if p.ReadCapacityUnits != nil && p.WriteCapacityUnits != nil {
		d.ReadCapacityUnits, d.WriteCapacityUnits = *p.ReadCapacityUnits, *p.WriteCapacityUnits
	}
	return d
}

// elementsOf returns a key as descriptions have it.
func elementsOf(key table.KeySchema) []keySchemaElement {
	hash, sort := "HASH", "RANGE"
	elements := []keySchemaElement{{&key.Hash.Name, &hash}}
	if key.Sort.Name != "" {
		elements = append(elements, keySchemaElement{&key.Sort.Name, &sort})
	}
	return elements
}

// newID returns a random UUID.
func (db *DB) newID() string {
	bits := func() uint32 { return uint32(db.cfg.Rand() * (1 << 32)) }
	a, b, c, d := bits(), bits(), bits(), bits()
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%04x%08x", a, b>>16, b&0xfff, 0x8000|c>>18, c&0xffff, d)
}
