package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/engine"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

// list returns n elements of JSON that a format makes of 0 to n-1.
func list(n int, format string) string {
	elements := make([]string, n)
	for i := range elements {
		elements[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(elements, ",")
}

func TestBatchParameters(t *testing.T) {
	r := newTables(t)
	const one = "1 validation error detected: "
	const mismatch = "The provided key element does not match the schema"
	for _, test := range []struct{ operation, items, message string }{
		{"BatchGetItem", `{"plain":null}`,
			one + "Value null at 'requestItems.plain.member.keys' failed to satisfy constraint: Member must not be " +
				"null"},
		{"BatchGetItem", `{"plain":{"Keys":[null]}}`, mismatch},
		{"BatchGetItem", `{"plain":{"Keys":[{"pk":{"S":"a"}}],"AttributesToGet":["a"]}}`,
			"The legacy parameter AttributesToGet is not supported by this engine: use ProjectionExpression"},
		{"BatchWriteItem", `{"plain":[null]}`, one +
			"Value null at 'requestItems.plain.member.1.member' failed to satisfy constraint: Member must not be " +
			"null"},
		{"BatchWriteItem",
			`{"plain":[{"PutRequest":{"Item":{"pk":{"S":"a"}}}},{"PutRequest":{"Item":{"pk":{"S":"b"},"x":{"S":"` +
				strings.Repeat("x", 400<<10) + `"}}}}]}`, "Item size has exceeded the maximum allowed size"},
		{"BatchWriteItem", `{"plain":[{"PutRequest":{"Item":{"pk":{"S":"a"}}}}],"indexed":[{"PutRequest":{"Item":` +
			`{"pk":{"S":"a"},"sk":{"N":"1"},"g":{"N":"1"}}}}]}`,
			"One or more parameter values were invalid: Type mismatch for Index Key g Expected: S Actual: N " +
				"IndexName: keys"},
	} {
		r.invalid(test.operation, `{"RequestItems":`+test.items+`}`, test.message)
	}
	r.fails("BatchWriteItem",
		`{"RequestItems":{"plain":[{"PutRequest":{"Item":{"pk":{"S":"a"}}}}],
			"unknown":[{"DeleteRequest":{"Key":{}}}]}}`,
		exception.ResourceNotFound, "Requested resource not found")
	r.gives("Scan", `{"TableName":"plain"}`,
		`{"Items":[],"Count":0,"ScannedCount":0}`) // nothing was half written
}

func TestBatch(t *testing.T) {
	r := newTables(t)
	r.do("PutItem", `{"TableName":"plain","Item":{"pk":{"S":"gone"}}}`)
	r.gives("BatchWriteItem", `{"RequestItems":{
		"plain":[{"PutRequest":{"Item":{"pk":{"S":"a"},"x":{"N":"1"},"y":{"N":"2"}}}},
		{"DeleteRequest":{"Key":{"pk":{"S":"gone"}}}}],
		"indexed":[{"PutRequest":{"Item":{"pk":{"S":"a"},"sk":{"N":"1"},"g":{"S":"a"}}}}]},
		"ReturnConsumedCapacity":"INDEXES"}`,
		`{"UnprocessedItems":{},"ConsumedCapacity":[
			{"TableName":"indexed","CapacityUnits":3,"Table":{"CapacityUnits":1},
				"GlobalSecondaryIndexes":{"keys":{"CapacityUnits":1},"all":{"CapacityUnits":1}}},
			{"TableName":"plain","CapacityUnits":2,"Table":{"CapacityUnits":2}}]}`)
	r.gives("BatchGetItem", `{"RequestItems":{
		"plain":{"Keys":[{"pk":{"S":"gone"}},{"pk":{"S":"a"}}],"ProjectionExpression":"#x",
		"ExpressionAttributeNames":{"#x":"x"}},
		"indexed":{"Keys":[{"pk":{"S":"a"},"sk":{"N":"1.0"}}],"ConsistentRead":true}},
		"ReturnConsumedCapacity":"TOTAL"}`,
		`{"Responses":{"plain":[{"x":{"N":"1"}}],"indexed":[{"pk":{"S":"a"},"sk":{"N":"1"},"g":{"S":"a"}}]},
			"UnprocessedKeys":{},
		"ConsumedCapacity":[{"TableName":"indexed","CapacityUnits":1},{"TableName":"plain","CapacityUnits":1}]}`)
}

// A BatchGetItem returns 16 MB at most, and what it leaves can be sent again as it is.
func TestBatchGetLeavesWhatIsTooMuch(t *testing.T) {
	r := newTables(t)
	for i := range 50 {
		r.do("PutItem", fmt.Sprintf(`{"TableName":"plain","Item":{"pk":{"S":"%02d"},"x":{"S":"%s"}}}`, i,
			strings.Repeat("x", 400<<10-10)))
	}
	requestItems := `{"plain":{"Keys":[` + list(50, `{"pk":{"S":"%02d"}}`) +
		`],"ConsistentRead":true,"ProjectionExpression":"#p","ExpressionAttributeNames":{"#p":"pk"}}}`
	var got []int
	for requestItems != `{}` {
		output := r.do("BatchGetItem", `{"RequestItems":`+requestItems+`}`)
		var page struct {
			Responses       struct{ Plain []json.RawMessage }
			UnprocessedKeys json.RawMessage
		}
		if err := json.Unmarshal([]byte(output), &page); err != nil {
			t.Fatal(err)
		}
		got = append(got, len(page.Responses.Plain))
		requestItems = string(page.UnprocessedKeys)
	}
	if len(got) != 2 || got[0] != 40 || got[1] != 10 {
		t.Errorf("pages of %v items, want 40 and 10", got)
	}
}

func TestBatchLeavesUnprocessed(t *testing.T) {
	write := `{"RequestItems":{"plain":[{"PutRequest":{"Item":{"pk":{"S":"a"}}}},
		{"DeleteRequest":{"Key":{"pk":{"S":"b"}}}}]}}`
	get := `{"RequestItems":{"plain":{"Keys":[{"pk":{"S":"a"}},{"pk":{"S":"b"}}]}}}`
	t.Run("by chance", func(t *testing.T) {
		r := newTables(t)
		r.under(engine.Conditions{Unprocessed: 1})
		r.gives("BatchWriteItem", write, `{"UnprocessedItems":`+strings.TrimPrefix(write, `{"RequestItems":`))
		r.gives("BatchGetItem", get, `{"Responses":{"plain":[]},"UnprocessedKeys":`+
			strings.TrimPrefix(get, `{"RequestItems":`))
		if bills := r.billed(); len(bills) > 0 {
			t.Errorf("bills %v for nothing", bills)
		}
	})
	t.Run("for throughput", func(t *testing.T) {
		r := newTables(t)
		r.under(engine.Conditions{TableWrite: 1, TableRead: 0.5})
		r.gives("BatchWriteItem", write,
			`{"UnprocessedItems":{"plain":[{"DeleteRequest":{"Key":{"pk":{"S":"b"}}}}]}}`)
		r.gives("BatchGetItem", get,
			`{"Responses":{"plain":[{"pk":{"S":"a"}}]},"UnprocessedKeys":{"plain":{"Keys":[{"pk":{"S":"b"}}]}}}`)
		r.fails("BatchWriteItem", write, exception.ProvisionedExceeded, exceeded)
		r.fails("BatchGetItem", get, exception.ProvisionedExceeded, exceeded)
		r.pass(time.Second)
		r.do("BatchWriteItem", write)
	})
	t.Run("for a transaction", func(t *testing.T) {
		r := newTables(t)
		r.under(engine.Conditions{Conflict: 1})
		r.gives("BatchWriteItem", write, `{"UnprocessedItems":`+strings.TrimPrefix(write, `{"RequestItems":`))
	})
}
