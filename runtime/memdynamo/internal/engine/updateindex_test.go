package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/engine"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

// grown is a change that creates a global index on g, of all attributes, in the table "plain".
const grown = `{"TableName":"plain","AttributeDefinitions":[{"AttributeName":"g","AttributeType":"S"}],
	"GlobalSecondaryIndexUpdates":[{"Create":{"IndexName":"byG","KeySchema":[{"AttributeName":"g",
	"KeyType":"HASH"}],
		"Projection":{"ProjectionType":"ALL"}}}]}`

const shrunk = `{"TableName":"plain","GlobalSecondaryIndexUpdates":[{"Delete":{"IndexName":"byG"}}]}`

const byG = `{"TableName":"plain","IndexName":"byG","KeyConditionExpression":"g = :g",
	"ExpressionAttributeValues":{":g":{"S":"x"}},"ReturnConsumedCapacity":"INDEXES"}`

func TestIndexComesAndGoes(t *testing.T) {
	t.Parallel()
	r := newTables(t)
	for i, g := range []string{`{"S":"x"}`, `{"N":"1"}`, `{"S":""}`, `{"NULL":true}`,
		`{"S":"` + strings.Repeat("y", 2048) + `"}`, `{"S":"` + strings.Repeat("y", 2049) + `"}`} {
		r.do("PutItem", fmt.Sprintf(`{"TableName":"plain","Item":{"pk":{"S":"%d"},"g":%s}}`, i, g))
	}
	r.do("PutItem", `{"TableName":"plain","Item":{"pk":{"S":"without"}}}`)
	r.invalid("Query", byG, "The table does not have the specified index: byG")

	output := r.do("UpdateTable", grown)
	for _, want := range []string{
		`"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"g",` +
			`"AttributeType":"S"}]`,
		`"IndexStatus":"ACTIVE"`, `"ItemCount":2,"IndexArn"`,
	} {
		if !strings.Contains(output, want) {
			t.Errorf("no %s in %s", want, output)
		}
	}
	r.gives("Query", byG, `{"Items":[{"pk":{"S":"0"},"g":{"S":"x"}}],"Count":1,"ScannedCount":1,
		"ConsumedCapacity":{"TableName":"plain","CapacityUnits":0.5,"Table":{"CapacityUnits":0},
			"GlobalSecondaryIndexes":{"byG":{"CapacityUnits":0.5}}}}`)
	r.gives("Scan", `{"TableName":"plain","IndexName":"byG","Select":"COUNT"}`, `{"Count":2,"ScannedCount":2}`)

	// Deleting an item that did not fit the index costs the index nothing; an item enters the index once it
	// fits.
	const consumed = `"ReturnConsumedCapacity":"INDEXES"`
	for pk, units := range map[string]string{"1": "1", "2": "1", "3": "1", "5": "3"} {
		r.gives("DeleteItem", `{"TableName":"plain","Key":{"pk":{"S":"`+pk+`"}},`+consumed+`}`,
			`{"ConsumedCapacity":{"TableName":"plain","CapacityUnits":`+units+`,"Table":{"CapacityUnits":`+units+`}}}`)
	}
	r.gives("PutItem", `{"TableName":"plain","Item":{"pk":{"S":"without"},"g":{"S":"z"}},`+consumed+`}`,
		`{"ConsumedCapacity":{"TableName":"plain","CapacityUnits":2,"Table":{"CapacityUnits":1},
			"GlobalSecondaryIndexes":{"byG":{"CapacityUnits":1}}}}`)
	r.invalid("PutItem", `{"TableName":"plain","Item":{"pk":{"S":"1"},"g":{"N":"1"}}}`,
		"One or more parameter values were invalid: Type mismatch for Index Key g Expected: S Actual: N "+
			"IndexName: byG")
	r.gives("Scan", `{"TableName":"plain","IndexName":"byG","Select":"COUNT"}`, `{"Count":3,"ScannedCount":3}`)

	output = r.do("UpdateTable", shrunk)
	if want := `"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}]`; !strings.Contains(output,
		want) {
		t.Errorf("no %s in %s", want, output)
	}
	if strings.Contains(output, "GlobalSecondaryIndexes") {
		t.Errorf("the index is still there: %s", output)
	}
	r.invalid("Query", byG, "The table does not have the specified index: byG")
	r.do("PutItem", `{"TableName":"plain","Item":{"pk":{"S":"1"},"g":{"N":"1"}}}`)
	r.do("UpdateTable", strings.ReplaceAll(grown, `"AttributeType":"S"`, `"AttributeType":"N"`))
	r.gives("Scan", `{"TableName":"plain","IndexName":"byG","Select":"COUNT"}`, `{"Count":1,"ScannedCount":1}`)
}

// An index has no past from before it was there, and takes its own with it.
func TestIndexAmongStaleReads(t *testing.T) {
	t.Parallel()
	r := newTables(t)
	const count = `{"TableName":"%s","IndexName":"%s","Select":"COUNT"}`
	holds := func(table, index string, n int) {
		t.Helper()
		r.gives("Scan", fmt.Sprintf(count, table, index), fmt.Sprintf(`{"Count":%d,"ScannedCount":%[1]d}`, n))
	}
	r.under(engine.Conditions{IndexLag: time.Minute, StaleReads: time.Minute})
	r.do("PutItem", `{"TableName":"plain","Item":{"pk":{"S":"a"},"g":{"S":"x"}}}`)
	r.do("PutItem", `{"TableName":"indexed","Item":{"pk":{"S":"a"},"sk":{"N":"1"},"g":{"S":"x"},"l":{"S":"y"}}}`)
	r.pass(time.Hour)
	holds("indexed", "all", 1)
	r.do("UpdateTable", grown)
	holds("plain", "byG", 0)
	r.pass(59 * time.Second)
	holds("plain", "byG", 0)
	r.do("PutItem", `{"TableName":"plain","Item":{"pk":{"S":"b"},"g":{"S":"x"}}}`)
	r.pass(time.Second)
	holds("plain", "byG", 1)
	r.pass(time.Minute)
	holds("plain", "byG", 2)

	r.do("DeleteItem", `{"TableName":"indexed","Key":{"pk":{"S":"a"},"sk":{"N":"1"}}}`)
	r.do("UpdateTable",
		`{"TableName":"indexed","GlobalSecondaryIndexUpdates":[{"Delete":{"IndexName":"keys"}}]}`)
	holds("indexed", "all", 1) // still, a minute late
	holds("indexed", "local", 1)
	r.pass(time.Minute)
	holds("indexed", "all", 0)
	holds("indexed", "local", 0)
}

func TestIndexUpdateRules(t *testing.T) {
	t.Parallel()
	r := newTables(t)
	const invalid = "One or more parameter values were invalid: "
	const g = `,"AttributeDefinitions":[{"AttributeName":"n","AttributeType":"S"}]`
	create := func(name, key, more string) string {
		return `{"Create":{"IndexName":"` + name + `","KeySchema":[{"AttributeName":"` + key +
			`","KeyType":"HASH"}]` + more + `}}`
	}
	const all = `,"Projection":{"ProjectionType":"ALL"}`
	const units = `"ProvisionedThroughput":{"ReadCapacityUnits":5,"WriteCapacityUnits":6}`
	for _, c := range []struct{ updates, more, message string }{
		{`{}`, "", invalid + "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, " +
			"GlobalSecondaryIndexUpdate.Delete must not be null"},
		{`{"Delete":{"IndexName":"all"},"Update":{"IndexName":"keys"}}`, "", invalid +
			"Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object"},
		{`{"Delete":{"IndexName":"all"}},{"Update":{"IndexName":"all"}}`, "", invalid +
			"Only one global secondary index update per index is allowed simultaneously. Index: all"},
		{`{"Delete":{}}`, "",
			"1 validation error detected: Value null at 'globalSecondaryIndexUpdates.1.member.delete.indexName' " +
				"failed to satisfy constraint: Member must not be null"},
		{`{"Update":{"IndexName":"a"}}`, "", "1 validation error detected: " +
			"Value 'a' at 'globalSecondaryIndexUpdates.1.member.update.indexName' " +
			"failed to satisfy constraint: Member must have length greater than or equal to 3"},
		{``, `,"DeletionProtectionEnabled":true`, invalid + "List of GlobalSecondaryIndexUpdates is empty"},
		{`{"Delete":{"IndexName":"all"}}`, `,"DeletionProtectionEnabled":true`, invalid +
			"DeletionProtection modification must be the only operation in the request"},
		{`{"Delete":{"IndexName":"all"}}`,
			`,"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"KEYS_ONLY"}`, invalid +
				"You cannot create or delete index while changing stream status"},
		{`{"Delete":{"IndexName":"all"}}`, `,"BillingMode":"PROVISIONED",` + units, invalid +
			"You cannot create or delete index while updating table IOPS"},
		{`{"Delete":{"IndexName":"local"}}`, "",
			"Cannot delete an index that is not a GlobalSecondaryIndex: local"},
		{`{"Update":{"IndexName":"local"}}`, "",
			"Cannot update an index that is not a GlobalSecondaryIndex: local"},
		{`{"Update":{"IndexName":"all",` + units + `}}`, "", invalid + "The only Updates for index: all " +
			"when TableThroughputMode is PAY_PER_REQUEST can be to OnDemandThroughput, WarmThroughput"},
		{`{"Update":{"IndexName":"all",` + units + `}}`, `,"BillingMode":"PROVISIONED",` + units, invalid +
			"ProvisionedThroughput must be specified for index: keys"},
		{create("all", "n", all), g, "Attempting to create an index which already exists"},
		{create("local", "n", all), g, "Attempting to create an index which already exists"},
		{create("new", "n", all), "", invalid + "AttributeDefinitions is not specified for index: new"},
		{create("new", "o", all), g,
			invalid + "Some index key attributes are not defined in AttributeDefinitions. " +
				"Keys: [o], AttributeDefinitions: [n]"},
		{`{"Create":{"IndexName":"new","KeySchema":[{"AttributeName":"n","KeyType":"HASH"},{"AttributeName":"sk",
		"KeyType":"RANGE"}]` +
			all + `}}`, g, "Invalid KeySchema: Some index key attribute have no definition"},
		{create("new", "sk", all), `,"AttributeDefinitions":[{"AttributeName":"sk","AttributeType":"S"}]`, invalid +
			"Attributes cannot be redefined. Please check that your attribute has the same type as previously " +
			"defined. " +
			"Existing schema: Schema:[SchemaElement: key{pk:S:HASH}, SchemaElement: key{sk:N:RANGE}] " +
			"New schema: Schema:[SchemaElement: key{sk:S:HASH}]"},
		{create("new", "n", `,"Projection":{}`), g, invalid + "Unknown ProjectionType: null"},
		{create("new", "n", `,"Projection":{"ProjectionType":"INCLUDE"}`), g, invalid +
			"ProjectionType is INCLUDE, but NonKeyAttributes is not specified"},
		{create("new", "n", all+`,`+units), g, invalid +
			"Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: new when BillingMode is " +
			"PAY_PER_REQUEST"},
	} {
		r.invalid("UpdateTable", `{"TableName":"indexed","GlobalSecondaryIndexUpdates":[`+c.updates+`]`+c.more+`}`,
			c.message)
	}
	r.fails("UpdateTable",
		`{"TableName":"indexed","GlobalSecondaryIndexUpdates":[{"Delete":{"IndexName":"none"}}]}`,
		exception.ResourceNotFound, "Requested resource not found: Index none for table indexed")
	for _, updates := range []string{
		create("new", "n", all) + `,` + create("newer", "n", all),
		create("new", "n", all) + `,{"Delete":{"IndexName":"all"}}`,
		`{"Delete":{"IndexName":"keys"}},{"Delete":{"IndexName":"all"}}`,
	} {
		r.fails("UpdateTable", `{"TableName":"indexed","GlobalSecondaryIndexUpdates":[`+updates+`]`+g+`}`,
			exception.LimitExceeded,
			"Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table")
	}
	// Nothing of all that was done.
	r.gives("Scan", `{"TableName":"indexed","IndexName":"all","Select":"COUNT"}`, `{"Count":0,"ScannedCount":0}`)
	for i := range 20 {
		r.do("UpdateTable", `{"TableName":"plain","GlobalSecondaryIndexUpdates":[`+
			create(fmt.Sprint("new", i), "n", all)+`]`+g+`}`)
	}
	r.fails("UpdateTable", `{"TableName":"plain","GlobalSecondaryIndexUpdates":[`+create("last", "n", all)+`]`+
		g+`}`,
		exception.LimitExceeded,
		"Subscriber limit exceeded: Number of global secondary indexes exceeds per-table limit of 20")
}

func TestIndexThroughput(t *testing.T) {
	t.Parallel()
	r := newTables(t)
	r.do("UpdateTable", grown)
	update := func(units string) string {
		return `{"TableName":"plain","GlobalSecondaryIndexUpdates":[{"Update":{"IndexName":"byG"` + units + `}}]}`
	}
	const five = `,"ProvisionedThroughput":{"ReadCapacityUnits":5,"WriteCapacityUnits":5}`
	const six = `,"ProvisionedThroughput":{"ReadCapacityUnits":5,"WriteCapacityUnits":6}`
	has := func(output, units string) {
		t.Helper()
		want := `"ProvisionedThroughput":{"NumberOfDecreasesToday":0,` + units + `},"IndexSizeBytes"`
		if !strings.Contains(output, want) {
			t.Errorf("no %s in %s", want, output)
		}
	}
	has(r.do("UpdateTable", strings.TrimSuffix(update(five), "}")+`,"BillingMode":"PROVISIONED"`+six+`}`),
		`"ReadCapacityUnits":5,"WriteCapacityUnits":5`)
	r.invalid("UpdateTable", update(five), "The provisioned throughput for the index byG will not change. "+
		"The requested value equals the current value. Current ReadCapacityUnits provisioned for index byG: 5. "+
		"Requested ReadCapacityUnits: 5. Current WriteCapacityUnits provisioned for index byG: 5. "+
		"Requested WriteCapacityUnits: 5. "+
		"Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits.")
	r.invalid("UpdateTable", update(""),
		"One or more parameter values were invalid: Both ReadCapacityUnits and WriteCapacityUnits must be "+
			"specified for index: byG")
	has(r.do("UpdateTable", update(six)), `"ReadCapacityUnits":5,"WriteCapacityUnits":6`)
	r.do("UpdateTable", shrunk)
	r.invalid("UpdateTable", grown,
		"One or more parameter values were invalid: Both ReadCapacityUnits and WriteCapacityUnits must be "+
			"specified for index: byG")
	has(r.do("UpdateTable", strings.Replace(grown, `"ProjectionType":"ALL"}`, `"ProjectionType":"ALL"}`+
		five, 1)),
		`"ReadCapacityUnits":5,"WriteCapacityUnits":5`)
}
