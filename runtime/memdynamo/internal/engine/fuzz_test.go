package engine_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

// Whatever comes, the engine answers with JSON or an exception, and stays usable.
func FuzzDo(f *testing.F) {
	operations := []string{
		"BatchGetItem", "BatchWriteItem", "CreateTable", "DeleteItem", "DescribeStream", "DescribeTable", "GetItem",
		"GetRecords", "GetShardIterator", "ListStreams", "ListTables", "PutItem", "Query", "Scan",
		"TransactWriteItems",
		"UpdateItem", "UpdateTable", "UpdateTimeToLive",
	}
	for operation, inputs := range map[string][]string{
		"PutItem": {``, `null`,
			`{"TableName":"plain","Item":{"pk":{"S":"a"},"n":{"N":"1e999999999"}},"ConditionExpression":"((a"}`},
		"UpdateItem": {
			`{"TableName":"plain","Key":{"pk":{"S":"a"}},"UpdateExpression":"SET a = ` +
				`:a","ExpressionAttributeValues":{":a":{"L":[null]}}}`,
		},
		"GetItem": {`{"TableName":"arn::table/plain","Key":{"pk":{"B":"="}},"ProjectionExpression":"a[0].b"}`},
		"Query": {`{"TableName":"indexed","IndexName":"keys","KeyConditionExpression":"g = ` +
			`:g","ExpressionAttributeValues":{":g":{"S":"x"}},` +
			`"ExclusiveStartKey":{"pk":{"S":"a"},"sk":{"N":"1"},"g":{"S":"x"}},"Limit":1}`},
		"Scan": {
			`{"TableName":"indexed","Segment":1,"TotalSegments":2,"FilterExpression":"size(a) > :n"}`,
		},
		"BatchGetItem":       {`{"RequestItems":{"plain":{"Keys":[null,{"pk":{"S":"a"}}]}}}`},
		"BatchWriteItem":     {`{"RequestItems":{"plain":[null,{"PutRequest":{"Item":null}}]}}`},
		"TransactWriteItems": {transaction(`null`, `{}`), withToken("t", transaction(add("a"), putOf("b")))},
		"CreateTable":        {plainTable, indexedTable},
		"UpdateTimeToLive":   {`{"TableName":"plain","TimeToLiveSpecification":{"Enabled":true}}`},
		"GetRecords":         {`{"ShardIterator":"x"}`},
	} {
		index := slices.Index(operations, operation)
		for _, input := range inputs {
			f.Add(uint8(index), []byte(input))
		}
	}
	f.Fuzz(func(t *testing.T, operation uint8, input []byte) {
		r := newTables(t)
		r.do("PutItem", indexedItem(`,"g":{"S":"x"},"a":{"L":[{"M":{"b":{"N":"1"}}}]}`))
		name := operations[int(operation)%len(operations)]
		output, err := r.Do(t.Context(), name, input)
		if e, ok := errors.AsType[*exception.Error](err); err != nil &&
			(!ok || e.Code == exception.InternalServerError) {
			t.Errorf("%s %q: %v", name, input, err)
		}
		if err == nil && !json.Valid(output) {
			t.Errorf("%s %q: output is no JSON: %q", name, input, output)
		}
		r.do("ListTables", `{}`)
	})
}
