package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/engine"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

// indexedItem is an item of the table indexed: pk a, sk 1, and these.
func indexedItem(attributes string) string {
	return `{"TableName":"indexed","Item":{"pk":{"S":"a"},"sk":{"N":"1"}` + attributes +
		`},"ReturnConsumedCapacity":"INDEXES"}`
}

func TestWriteCapacity(t *testing.T) {
	r := newTables(t)
	big := strings.Repeat("q", 3000)
	const key = `{"TableName":"indexed","Key":{"pk":{"S":"a"},"sk":{"N":"1"}},"ReturnConsumedCapacity":"INDEXES"`
	// DynamoDB Local bills all of these as we do.
	for _, test := range []struct{ what, operation, input, want string }{
		{"in all indexes", "PutItem", indexedItem(`,"g":{"S":"x"},"l":{"S":"y"}`),
			`{"CapacityUnits":4,"Table":{"CapacityUnits":1},
			"LocalSecondaryIndexes":{"local":{"CapacityUnits":1}},
			"GlobalSecondaryIndexes":{"keys":{"CapacityUnits":1},"all":{"CapacityUnits":1}}}`},
		{"a key moves", "PutItem", indexedItem(`,"g":{"S":"x2"},"l":{"S":"y"}`),
			`{"CapacityUnits":5,"Table":{"CapacityUnits":1},
			"GlobalSecondaryIndexes":{"keys":{"CapacityUnits":2},"all":{"CapacityUnits":2}}}`},
		{"nothing changes", "PutItem", indexedItem(`,"g":{"S":"x2"},"l":{"S":"y"}`),
			`{"CapacityUnits":1,"Table":{"CapacityUnits":1}}`},
		{"larger", "PutItem", indexedItem(`,"g":{"S":"x2"},"l":{"S":"y"},"z":{"S":"` + big + `"}`),
			`{"CapacityUnits":6,"Table":{"CapacityUnits":3},"GlobalSecondaryIndexes":{"all":{"CapacityUnits":3}}}`},
		{"smaller, and a key moves", "PutItem", indexedItem(`,"g":{"S":"x3"},"l":{"S":"y"},"z":{"S":"q"}`),
			`{"CapacityUnits":9,"Table":{"CapacityUnits":3},"GlobalSecondaryIndexes":{"keys":{"CapacityUnits":2},
				"all":{"CapacityUnits":4}}}`},
		{"out of an index", "PutItem", indexedItem(`,"l":{"S":"y"},"z":{"S":"q"}`),
			`{"CapacityUnits":3,"Table":{"CapacityUnits":1},"GlobalSecondaryIndexes":{"keys":{"CapacityUnits":1},
				"all":{"CapacityUnits":1}}}`},
		{"an included attribute", "UpdateItem", key + `,"UpdateExpression":"SET a = l"}`,
			`{"CapacityUnits":2,"Table":{"CapacityUnits":1},"LocalSecondaryIndexes":{"local":{"CapacityUnits":1}}}`},
		{"update of nothing", "UpdateItem", key + `}`, `{"CapacityUnits":1,"Table":{"CapacityUnits":1}}`},
		{"delete", "DeleteItem", key + `}`,
			`{"CapacityUnits":2,"Table":{"CapacityUnits":1},"LocalSecondaryIndexes":{"local":{"CapacityUnits":1}}}`},
		{"delete of nothing", "DeleteItem", key + `}`, `{"CapacityUnits":1,"Table":{"CapacityUnits":1}}`},
	} {
		got := r.do(test.operation, test.input)
		want := `{"ConsumedCapacity":{"TableName":"indexed",` + test.want[1:] + `}`
		if diff := jsonDiff(want, got); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", test.what, diff)
		}
	}
	// An entry of a local index has 100 bytes more than its attributes.
	for bytes, units := range map[int]string{914: "1", 915: "2"} {
		item := indexedItem(`,"l":{"S":"y"},"a":{"S":"` + strings.Repeat("a", bytes) + `"}`)
		r.do("DeleteItem", key+`}`)
		if got, want := r.do("PutItem", item), `"LocalSecondaryIndexes":{"local":{"CapacityUnits":`+units+
			`}}`; !strings.Contains(got, want) {
			t.Errorf("%d bytes: %s, want %s", bytes, got, want)
		}
	}
	r.gives("PutItem", `{"TableName":"plain","Item":{"pk":{"S":"a"}},"ReturnConsumedCapacity":"TOTAL"}`,
		`{"ConsumedCapacity":{"TableName":"plain","CapacityUnits":1}}`)
	r.gives("PutItem", `{"TableName":"plain","Item":{"pk":{"S":"a"}},"ReturnConsumedCapacity":"NONE"}`, `{}`)
}

// Sizes are exact at the bounds of units: pk and a are two bytes and one, and so are names.
func TestUnitBounds(t *testing.T) {
	r := newTables(t)
	for _, test := range []struct {
		bytes                       int
		write, eventual, consistent string
	}{
		{4, "1", "0.5", "1"},
		{1024, "1", "0.5", "1"},
		{1025, "2", "0.5", "1"},
		{4096, "4", "0.5", "1"},
		{4097, "5", "1", "2"},
		{400 << 10, "400", "50", "100"},
	} {
		key := fmt.Sprintf(`{"pk":{"S":"%06d"}`, test.bytes)
		size := len("pk") + 6 + len("x")
		item := key + fmt.Sprintf(`,"x":{"S":"%s"}}`, strings.Repeat("x", max(0, test.bytes-size)))
		consumed := `"TableName":"plain","ReturnConsumedCapacity":"TOTAL"`
		units := func(u string) string { return `{"TableName":"plain","CapacityUnits":` + u + `}` }
		r.gives("PutItem", `{`+consumed+`,"Item":`+item+`}`, `{"ConsumedCapacity":`+units(test.write)+`}`)
		want := `{"Item":` + item + `,"ConsumedCapacity":`
		r.gives("GetItem", `{`+consumed+`,"Key":`+key+`}}`, want+units(test.eventual)+`}`)
		r.gives("GetItem", `{`+consumed+`,"ConsistentRead":true,"Key":`+key+`}}`, want+units(test.consistent)+`}`)
	}
	r.invalid("PutItem", fmt.Sprintf(`{"TableName":"plain","Item":{"pk":{"S":"%s"},"x":{"S":"%s"}}}`,
		"123456", strings.Repeat("x", 400<<10-8)), "Item size has exceeded the maximum allowed size")
	r.gives("GetItem", `{"TableName":"plain","Key":{"pk":{"S":"none"}},"ReturnConsumedCapacity":"INDEXES"}`,
		`{"ConsumedCapacity":{"TableName":"plain","CapacityUnits":0.5,"Table":{"CapacityUnits":0.5}}}`)
}

// TestBills holds that failed requests are billed as well, unlike by DynamoDB Local.
func TestBills(t *testing.T) {
	r := newTables(t)
	item := `"Item":{"pk":{"S":"a"},"x":{"S":"` + strings.Repeat("x", 2000) + `"}}`
	absent := `,"ConditionExpression":"attribute_not_exists(pk)"`
	bills := func(what string, want ...engine.Bill) {
		t.Helper()
		got := r.billed()
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: bills (-want +got):\n%s", what, diff)
		}
	}
	failed := func(operation, input string) {
		t.Helper()
		r.fails(operation, input, exception.ConditionalCheckFailed, "The conditional request failed")
	}
	r.do("PutItem", `{"TableName":"plain",`+item+`}`)
	bills("put", engine.Bill{Operation: "PutItem", Table: "plain", Write: 2})
	failed("PutItem", `{"TableName":"plain","Item":{"pk":{"S":"a"}}`+absent+`}`)
	bills("condition failed", engine.Bill{Operation: "PutItem", Table: "plain", Write: 2,
		Outcome: engine.Refused})
	failed("PutItem", `{"TableName":"plain","Item":{"pk":{"S":"a"},"x":{"S":"`+strings.Repeat("x", 5000)+`"}}`+
		absent+`}`)
	bills("condition failed of a larger item", engine.Bill{Operation: "PutItem", Table: "plain", Write: 5,
		Outcome: engine.Refused})
	failed("UpdateItem", `{"TableName":"plain","Key":{"pk":{"S":"a"}},"UpdateExpression":"SET x = :x"`+absent+`,
		"ExpressionAttributeValues":{":x":{"S":"`+strings.Repeat("x", 5000)+`"}}}`)
	bills("condition failed of an update to more", engine.Bill{Operation: "UpdateItem", Table: "plain", Write: 5,
		Outcome: engine.Refused})
	failed("DeleteItem",
		`{"TableName":"plain","Key":{"pk":{"S":"b"}},"ConditionExpression":"attribute_exists(pk)"}`)
	bills("condition failed of nothing", engine.Bill{Operation: "DeleteItem", Table: "plain", Write: 1,
		Outcome: engine.Refused})
	r.do("GetItem", `{"TableName":"plain","Key":{"pk":{"S":"b"}},"ConsistentRead":true}`)
	bills("get of nothing", engine.Bill{Operation: "GetItem", Table: "plain", Read: 1})
	r.do("PutItem", indexedItem(`,"g":{"S":"x"}`))
	bills("indexes", engine.Bill{Operation: "PutItem", Table: "indexed", Write: 1},
		engine.Bill{Operation: "PutItem", Table: "indexed", Index: "keys", Write: 1},
		engine.Bill{Operation: "PutItem", Table: "indexed", Index: "all", Write: 1})
	r.invalid("UpdateItem", `{"TableName":"plain","Key":{"pk":{"S":"a"}},"UpdateExpression":"SET a = zz"}`,
		"The provided expression refers to an attribute that does not exist in the item")
	bills("invalid")

	token := `"ClientRequestToken":"t","TransactItems":[{"Put":{"TableName":"plain",` + item + `}},
		{"ConditionCheck":{"TableName":"indexed","Key":{"pk":{"S":"a"},"sk":{"N":"9"}},
		"ConditionExpression":"attribute_not_exists(pk)"}}]}`
	r.gives("TransactWriteItems", `{"ReturnConsumedCapacity":"INDEXES",`+token, `{"ConsumedCapacity":[
		{"TableName":"plain","CapacityUnits":4,"WriteCapacityUnits":4,"Table":{"CapacityUnits":4,
		"WriteCapacityUnits":4}},
		{"TableName":"indexed","CapacityUnits":2,"WriteCapacityUnits":2,"Table":{"CapacityUnits":2,
		"WriteCapacityUnits":2}}]}`)
	bills("transaction", engine.Bill{Operation: "TransactWriteItems", Table: "plain", Write: 4},
		engine.Bill{Operation: "TransactWriteItems", Table: "indexed", Write: 2})
	r.gives("TransactWriteItems", `{"ReturnConsumedCapacity":"TOTAL",`+token, `{"ConsumedCapacity":[
		{"TableName":"plain","CapacityUnits":2,"ReadCapacityUnits":2},{"TableName":"indexed","CapacityUnits":2,
		"ReadCapacityUnits":2}]}`)
	bills("transaction again", engine.Bill{Operation: "TransactWriteItems", Table: "plain", Read: 2},
		engine.Bill{Operation: "TransactWriteItems", Table: "indexed", Read: 2})
	r.fails("TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"plain","Item":{"pk":{"S":"z"}}}},
		{"Delete":{"TableName":"plain","Key":{"pk":{"S":"a"}},"ConditionExpression":"attribute_not_exists(pk)"}}]}`,
		exception.TransactionCanceled,
		"Transaction cancelled, please refer cancellation reasons for specific reasons [None, "+
			"ConditionalCheckFailed]")
	bills("cancelled", engine.Bill{Operation: "TransactWriteItems", Table: "plain", Write: 6,
		Outcome: engine.Cancelled})
}

const exceeded = "The level of configured provisioned throughput for the table was exceeded. " +
	"Consider increasing your provisioning level with the UpdateTable API."

func TestThroughput(t *testing.T) {
	put := func(pk string, bytes int) string {
		return `{"TableName":"plain","Item":{"pk":{"S":"` + pk + `"},"x":{"S":"` + strings.Repeat("x", bytes) +
			`"}}}`
	}
	refused := func(r *rig, input string) {
		t.Helper()
		r.billed()
		r.fails("PutItem", input, exception.ProvisionedExceeded, exceeded)
		if bills := r.billed(); len(bills) > 0 {
			t.Errorf("what is refused for throughput is billed: %v", bills)
		}
	}
	t.Run("partition", func(t *testing.T) {
		r := newTables(t)
		r.under(engine.Conditions{PartitionWrite: 1000})
		for range 1000 {
			r.do("PutItem", put("a", 1))
		}
		refused(r, put("a", 1))
		r.do("PutItem", put("b", 1)) // another partition
		r.do("GetItem", `{"TableName":"plain","Key":{"pk":{"S":"a"}}}`)
		r.pass(time.Millisecond)
		r.do("PutItem", put("a", 1))
		refused(r, put("a", 1))
		r.pass(time.Hour) // no more than a second's units gather
		for range 1000 {
			r.do("PutItem", put("a", 1))
		}
		refused(r, put("a", 1))
		r.under(engine.Conditions{})
		r.do("PutItem", put("a", 1))
	})
	t.Run("table", func(t *testing.T) {
		r := newTables(t)
		r.under(engine.Conditions{TableWrite: 4, TableRead: 1})
		r.do("PutItem", put("a", 3000))
		r.do("PutItem", put("b", 1))
		refused(r, put("c", 1))
		r.do("GetItem", `{"TableName":"plain","Key":{"pk":{"S":"a"}}}`)
		r.do("GetItem", `{"TableName":"plain","Key":{"pk":{"S":"b"}}}`)
		r.fails("GetItem", `{"TableName":"plain","Key":{"pk":{"S":"b"}}}`, exception.ProvisionedExceeded, exceeded)
	})
	t.Run("more than a second's units", func(t *testing.T) {
		r := newTables(t)
		r.under(engine.Conditions{TableWrite: 2})
		r.do("PutItem", put("a", 3500)) // 4 units leave a debt of 2
		r.pass(time.Second)
		refused(r, put("a", 1))
		r.pass(time.Second)
		r.do("PutItem", put("a", 1))
	})
	t.Run("transaction", func(t *testing.T) {
		r := newTables(t)
		r.do("CreateTable", strings.Replace(strings.Replace(plainTable, "plain", "provisioned", 1),
			`"BillingMode":"PAY_PER_REQUEST"`,
			`"ProvisionedThroughput":{"ReadCapacityUnits":1,"WriteCapacityUnits":1}`, 1))
		r.under(engine.Conditions{PartitionWrite: 2})
		actions := `{"TransactItems":[{"Put":` + put("a", 1) + `},{"Put":` + strings.Replace(put("a", 1), "plain",
			"provisioned", 1) + `}]}`
		r.do("TransactWriteItems", actions)
		r.cancelled(actions, "ThrottlingError, None",
			`[{"Code":"ThrottlingError","Message":"Throughput exceeds the `+
				`current capacity of your table or index. DynamoDB is automatically scaling your table or index so `+
				`please try again shortly."},{"Code":"None"}]`)
		puts := `{"TransactItems":[{"Put":` + strings.Replace(put("b", 1), "plain", "provisioned", 1) + `}]}`
		r.do("TransactWriteItems", puts)
		r.cancelled(puts, "ProvisionedThroughputExceeded",
			`[{"Code":"ProvisionedThroughputExceeded","Message":"`+exceeded+`"}]`)
	})
	t.Run("a transaction takes all or nothing", func(t *testing.T) {
		r := newTables(t)
		r.under(engine.Conditions{PartitionWrite: 2})
		r.do("PutItem", put("b", 1)) // which leaves 1
		actions := `{"TransactItems":[{"Put":` + put("a", 1) + `},{"Put":` + put("b", 1) + `}]}`
		for range 2 { // what is refused takes nothing of a, so that a is never the reason
			r.fails("TransactWriteItems", actions, exception.TransactionCanceled,
				"Transaction cancelled, please refer cancellation reasons for specific reasons [None, ThrottlingError]")
		}
	})
	t.Run("a transaction of more than a second's units", func(t *testing.T) {
		r := newTables(t)
		r.under(engine.Conditions{TableWrite: 5})
		actions := `{"TransactItems":[{"Put":` + put("a", 1) + `},{"Put":` + put("b", 1) + `},{"Put":` + put("c",
			1) + `}]}`
		r.do("TransactWriteItems", actions) // 6 units leave a debt of 1
		refused(r, put("d", 1))
		r.pass(400 * time.Millisecond)
		r.do("PutItem", put("d", 1))
	})
	t.Run("chance", func(t *testing.T) {
		r := newTables(t)
		r.under(engine.Conditions{Throttle: 1})
		refused(r, put("a", 1))
		r.fails("BatchWriteItem", `{"RequestItems":{"plain":[{"PutRequest":{"Item":{"pk":{"S":"a"}}}}]}}`,
			exception.ProvisionedExceeded, exceeded)
		r.fails("BatchGetItem", `{"RequestItems":{"plain":{"Keys":[{"pk":{"S":"a"}}]}}}`,
			exception.ProvisionedExceeded, exceeded)
		fields := r.fails("TransactWriteItems",
			`{"TransactItems":[{"Delete":{"TableName":"plain","Key":{"pk":{"S":"b"}}}},`+
				`{"Put":`+put("a", 1)+`}]}`, exception.TransactionCanceled,
			"Transaction cancelled, please refer cancellation reasons for specific reasons [ThrottlingError, None]")
		if !strings.Contains(fields,
			`"Code":"ThrottlingError","Message":"Throughput exceeds the current capacity`) {
			t.Errorf("fields %s", fields)
		}
	})
}
