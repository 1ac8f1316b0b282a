package engine_test

import (
	"strings"
	"testing"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

func TestUnknownOperation(t *testing.T) {
	newRig(t).fails("Nope", `{}`, exception.UnknownOperation, "")
}

func TestSerialization(t *testing.T) {
	for _, test := range []struct{ operation, input, message string }{
		{"PutItem", ``, ""},
		{"PutItem", `{`, ""},
		{"PutItem", `null`, ""},
		{"PutItem", `[]`, ""},
		{"PutItem", `{} {}`, ""},
		{"PutItem", `{"TableName":true}`, "TRUE_VALUE cannot be converted to String"},
		{"PutItem", `{"TableName":false}`, "FALSE_VALUE cannot be converted to String"},
		{"PutItem", `{"TableName":23}`, "NUMBER_VALUE cannot be converted to String"},
		{"PutItem", `{"TableName":34.56}`, "DECIMAL_VALUE cannot be converted to String"},
		{"PutItem", `{"TableName":[]}`, "Unrecognized collection type class java.lang.String"},
		{"PutItem", `{"TableName":{}}`, "Start of structure or map found where not expected"},
		{"PutItem", `{"Item":"x"}`, "Unexpected field type"},
		{"PutItem", `{"Item":[]}`, "Unrecognized collection type java.util.Map<java.lang.String, " +
			"com.amazonaws.dynamodb.v20120810.AttributeValue>"},
		{"PutItem", `{"Item":{"a":[]}}`,
			"Unrecognized collection type class com.amazonaws.dynamodb.v20120810.AttributeValue"},
		{"PutItem", `{"Item":{"a":{"SS":{}}}}`, "Start of structure or map found where not expected"},
		{"Query", `{"Limit":"1"}`, "STRING_VALUE cannot be converted to Integer"},
		{"Query", `{"Limit":true}`, "TRUE_VALUE cannot be converted to Integer"},
		{"Query", `{"Limit":[]}`, "Unrecognized collection type class java.lang.Integer"},
		{"BatchGetItem", `{"RequestItems":[]}`, "Unrecognized collection type java.util.Map<java.lang.String, " +
			"com.amazonaws.dynamodb.v20120810.KeysAndAttributes>"},
		{"TransactWriteItems", `{"TransactItems":{}}`, "Start of structure or map found where not expected"},
		{"TransactWriteItems", `{"TransactItems":"x"}`, "Unexpected field type"},
	} {
		newRig(t).fails(test.operation, test.input, exception.Serialization, test.message)
	}
	deep := strings.Repeat(`{"M":{"a":`, 20_000)
	newRig(t).fails("PutItem", `{"Item":{"a":`+deep, exception.Serialization, "")
}

func TestParameters(t *testing.T) {
	r := newTables(t)
	for _, test := range []struct{ operation, input, message string }{
		{"PutItem", `{"TableName":"abc;","ReturnConsumedCapacity":"hi","ReturnItemCollectionMetrics":"hi",
		"ReturnValues":"hi"}`,
			"5 validation errors detected: " +
				"Value 'hi' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value " +
				"set: [INDEXES, TOTAL, NONE]; " +
				"Value 'abc;' at 'tableName' failed to satisfy constraint: Member must satisfy regular expression " +
				"pattern: [a-zA-Z0-9_.-]+; " +
				"Value null at 'item' failed to satisfy constraint: Member must not be null; " +
				"Value 'hi' at 'returnValues' failed to satisfy constraint: " +
				"Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]; " +
				"Value 'hi' at 'returnItemCollectionMetrics' failed to satisfy constraint: Member must satisfy enum " +
				"value set: [SIZE, NONE]"},
		{"PutItem", `{"TableName":"plain","Item":{"pk":{"S":"a"}},"Expected":{}}`,
			"The legacy parameter Expected is not supported by this engine: use ConditionExpression"},
		{"UpdateItem", `{"TableName":"plain","Key":{"pk":{"S":"a"}},"AttributeUpdates":{}}`,
			"The legacy parameter AttributeUpdates is not supported by this engine: use UpdateExpression"},
		{"GetItem", `{"TableName":"plain","Key":{"pk":{"S":"a"}},"AttributesToGet":["a"]}`,
			"The legacy parameter AttributesToGet is not supported by this engine: use ProjectionExpression"},
		{"PutItem", `{"TableName":"plain","Item":{"pk":{"S":"a"}},"ConditionalOperator":"OR"}`,
			"The legacy parameter ConditionalOperator is not supported by this engine: use AND or OR in an " +
				"expression"},
		// The table is looked up last.
		{"PutItem", `{"TableName":"nope","Item":{"pk":{}}}`,
			"Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"},
		{"PutItem", `{"TableName":"nope","Item":{"a":{"S":"` + strings.Repeat("a", 400<<10) + `"}}}`,
			"Item size has exceeded the maximum allowed size"},
		{"PutItem", `{"TableName":"nope","Item":{},"ConditionExpression":""}`,
			"Invalid ConditionExpression: The expression can not be empty;"},
	} {
		r.invalid(test.operation, test.input, test.message)
	}
	for _, name := range []string{"nope", "arn:aws:dynamodb:us-east-1:000000000000:table/nope"} {
		r.fails("GetItem", `{"TableName":"`+name+`","Key":{"x":{"N":"1"}}}`, exception.ResourceNotFound,
			"Requested resource not found")
	}
	r.do("PutItem",
		`{"TableName":"arn:aws:dynamodb:us-east-1:000000000000:table/plain","Item":{"pk":{"S":"a"}},
			"Expected":null}`)
	r.gives("GetItem", `{"TableName":"plain","Key":{"pk":{"S":"a"}}}`, `{"Item":{"pk":{"S":"a"}}}`)
}

func TestKeys(t *testing.T) {
	r := newTables(t)
	const invalid = "One or more parameter values were invalid: "
	const mismatch = "The provided key element does not match the schema"
	const empty = "One or more parameter values are not valid. The AttributeValue for a key attribute cannot " +
		"contain an empty string value. Key: pk"
	const tooLongHash = invalid + "Size of hashkey has exceeded the maximum size limit of2048 bytes"
	const tooLongSort = invalid + "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"
	for _, test := range []struct{ key, message string }{
		{`{}`, mismatch},
		{`{"pk":{"S":"a"},"x":{"N":"1"}}`, mismatch},
		{`{"pk":{"S":"a"},"sk":{"N":"1"},"x":{"N":"1"}}`, mismatch},
		{`{"pk":{"NULL":true},"sk":{"N":"1"}}`, mismatch},
		{`{"pk":{"S":""},"sk":{"N":"1"}}`, empty},
		{`{"pk":{"S":"` + strings.Repeat("a", 2049) + `"},"sk":{"N":"1"}}`, tooLongHash},
	} {
		for _, operation := range []string{"GetItem", "UpdateItem", "DeleteItem"} {
			r.invalid(operation, `{"TableName":"indexed","Key":`+test.key+`}`, test.message)
		}
	}
	for _, test := range []struct{ item, message string }{
		{`{"pk":{"SS":["a"]},"sk":{"S":"a"}}`, invalid + "Type mismatch for key pk expected: S actual: SS"},
		{`{"pk":{"S":"a"},"sk":{"N":"1"},"g":{"N":"1"}}`,
			invalid + "Type mismatch for Index Key g Expected: S Actual: N IndexName: keys"},
		{`{"pk":{"S":"a"},"sk":{"N":"1"},"l":{"M":{}}}`,
			invalid + "Type mismatch for Index Key l Expected: S Actual: M IndexName: local"},
		{`{"pk":{"S":"a"},"sk":{"N":"1"},"g":{"S":""}}`,
			"One or more parameter values are not valid. A value specified for a secondary index key is not " +
				"supported. " +
				"The AttributeValue for a key attribute cannot contain an empty string value. IndexName: keys, " +
				"IndexKey: g"},
		{`{"pk":{"S":"a"},"sk":{"N":"1"},"g":{"S":"` + strings.Repeat("a", 2049) + `"}}`, tooLongHash},
		{`{"pk":{"S":"a"},"sk":{"N":"1"},"l":{"S":"` + strings.Repeat("a", 1025) + `"}}`, tooLongSort},
	} {
		r.invalid("PutItem", `{"TableName":"indexed","Item":`+test.item+`}`, test.message)
	}
	for _, test := range []struct{ expression, values, message string }{
		{"SET x = :v REMOVE sk", `{":v":{"S":"a"}}`,
			invalid + "Cannot update attribute sk. This attribute is part of the key"},
		{"SET g = :v", `{":v":{"N":"1"}}`,
			invalid + "Type mismatch for Index Key g Expected: S Actual: N IndexName: keys"},
		{"SET l = :v", `{":v":{"S":"` + strings.Repeat("a", 1025) + `"}}`,
			invalid + "The update expression attempted to update the secondary index key beyond allowed size limits"},
		{"SET x = :v", `{":v":{"S":"` + strings.Repeat("a", 400<<10) + `"}}`,
			"Item size to update has exceeded the maximum allowed size"},
		{"SET x = :v, y = :v", `{":v":{"S":"` + strings.Repeat("a", 300<<10) + `"}}`,
			"Item size to update has exceeded the maximum allowed size"},
	} {
		r.invalid("UpdateItem", `{"TableName":"indexed","Key":{"pk":{"S":"a"},"sk":{"N":"1"}},"UpdateExpression":"`+
			test.expression+
			`","ExpressionAttributeValues":`+test.values+`}`, test.message)
	}
	// An item counts with its entries in local indexes, of which this one has a too.
	big := strings.Repeat("a", 210<<10)
	r.invalid("PutItem", `{"TableName":"indexed","Item":{"pk":{"S":"a"},"sk":{"N":"1"},"l":{"S":"a"},"a":{"S":"`+
		big+`"}}}`,
		"Item size has exceeded the maximum allowed size")
	r.invalid("UpdateItem",
		`{"TableName":"indexed","Key":{"pk":{"S":"a"},"sk":{"N":"1"}},"UpdateExpression":"SET a = :x, l = :l",
		"ExpressionAttributeValues":{":x":{"S":"`+big+`"},":l":{"S":"a"}}}`,
		"Item size to update has exceeded the maximum allowed size")
	const scalar = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "
	const at = `"TableName":"indexed","Key":{"pk":{"S":"a"},"sk":{"N":"1"}}`
	for _, test := range []struct{ operation, input, message string }{
		{"GetItem", `{` + at + `,"ProjectionExpression":"sk[0]"}`, scalar + "Key: sk"},
		{"UpdateItem", `{` + at + `,"UpdateExpression":"REMOVE g.x"}`, scalar + "IndexKey: g"},
		{"UpdateItem", `{` + at + `,"UpdateExpression":"REMOVE x","ConditionExpression":"attribute_exists(l.x)"}`,
			scalar + "IndexKey: l"},
		{"DeleteItem", `{` + at + `,"ConditionExpression":"attribute_exists(pk[1])"}`, scalar + "Key: pk"},
		{"PutItem", `{"TableName":"indexed","Item":{"pk":{"S":"a"},"sk":{"N":"1"}},
		"ConditionExpression":"attribute_not_exists(g.x)"}`,
			scalar + "IndexKey: g"},
		{"BatchGetItem",
			`{"RequestItems":{"indexed":{"Keys":[{"pk":{"S":"a"},"sk":{"N":"1"}}],"ProjectionExpression":"pk.x"}}}`,
			scalar + "Key: pk"},
	} {
		r.invalid(test.operation, test.input, test.message)
	}
	r.gives("Scan", `{"TableName":"indexed"}`,
		`{"Items":[],"Count":0,"ScannedCount":0}`) // nothing was half written
}

func TestPutGetDelete(t *testing.T) {
	r := newTables(t)
	r.gives("GetItem", `{"TableName":"plain","Key":{"pk":{"S":"a"}}}`, `{}`)
	r.gives("PutItem", `{"TableName":"plain","Item":{"pk":{"S":"a"},"n":{"N":"1.50"}},"ReturnValues":"ALL_OLD"}`,
		`{}`)
	r.gives("GetItem", `{"TableName":"plain","Key":{"pk":{"S":"a"}}}`,
		`{"Item":{"pk":{"S":"a"},"n":{"N":"1.5"}}}`)
	r.gives("GetItem",
		`{"TableName":"plain","Key":{"pk":{"S":"a"}},"ProjectionExpression":"#n",
			"ExpressionAttributeNames":{"#n":"n"}}`,
		`{"Item":{"n":{"N":"1.5"}}}`)
	r.gives("GetItem", `{"TableName":"plain","Key":{"pk":{"S":"a"}},"ProjectionExpression":"zz"}`, `{"Item":{}}`)
	r.gives("PutItem", `{"TableName":"plain","Item":{"pk":{"S":"a"},"m":{"M":{}}},"ReturnValues":"ALL_OLD"}`,
		`{"Attributes":{"pk":{"S":"a"},"n":{"N":"1.5"}}}`)
	r.gives("DeleteItem",
		`{"TableName":"plain","Key":{"pk":{"S":"a"}},"ReturnValues":"ALL_OLD",
			"ReturnItemCollectionMetrics":"SIZE"}`,
		`{"Attributes":{"pk":{"S":"a"},"m":{"M":{}}}}`)
	r.gives("DeleteItem", `{"TableName":"plain","Key":{"pk":{"S":"a"}},"ReturnValues":"ALL_OLD"}`, `{}`)
}

func TestConditions(t *testing.T) {
	r := newTables(t)
	const failed = "The conditional request failed"
	absent := `,"ConditionExpression":"attribute_not_exists(pk)"`
	show := `,"ReturnValuesOnConditionCheckFailure":"ALL_OLD"`
	r.do("PutItem", `{"TableName":"plain","Item":{"pk":{"S":"a"},"n":{"N":"1"}}`+absent+`}`)
	for operation, input := range map[string]string{
		"PutItem":    `"Item":{"pk":{"S":"a"}}`,
		"DeleteItem": `"Key":{"pk":{"S":"a"}}`,
		"UpdateItem": `"Key":{"pk":{"S":"a"}},"UpdateExpression":"SET n = zz"`, // the condition is looked at first
	} {
		input = `{"TableName":"plain",` + input + absent
		got := r.fails(operation, input+`}`, exception.ConditionalCheckFailed, failed)
		if got != `{}` {
			t.Errorf("%s: fields %s, want none", operation, got)
		}
		got = r.fails(operation, input+show+`}`, exception.ConditionalCheckFailed, failed)
		if diff := jsonDiff(`{"Item":{"pk":{"S":"a"},"n":{"N":"1"}}}`, got); diff != "" {
			t.Errorf("%s: fields (-want +got):\n%s", operation, diff)
		}
	}
	got := r.fails("PutItem",
		`{"TableName":"plain","Item":{"pk":{"S":"b"}},"ConditionExpression":"attribute_exists(pk)"`+show+`}`,
		exception.ConditionalCheckFailed, failed)
	if got != `{}` {
		t.Errorf("no item: fields %s, want none", got)
	}
	r.gives("Scan", `{"TableName":"plain"}`,
		`{"Items":[{"pk":{"S":"a"},"n":{"N":"1"}}],"Count":1,"ScannedCount":1}`)
}

func TestReturnValues(t *testing.T) {
	updates := []string{
		`"UpdateExpression":"SET x = :a","ExpressionAttributeValues":{":a":{"S":"q"}}`,
		`"UpdateExpression":"SET x = :a, m = ` +
			`:m","ExpressionAttributeValues":{":a":{"S":"r"},":m":{"M":{"a":{"N":"1"},"b":{"N":"2"}}}}`,
		`"UpdateExpression":"SET m.a = :a REMOVE x","ExpressionAttributeValues":{":a":{"N":"3"}}`,
		`"UpdateExpression":"REMOVE x"`,
		`"ReturnConsumedCapacity":"NONE"`,
	}
	items := []string{
		``,
		`{"pk":{"S":"a"},"x":{"S":"q"}}`,
		`{"pk":{"S":"a"},"x":{"S":"r"},"m":{"M":{"a":{"N":"1"},"b":{"N":"2"}}}}`,
		`{"pk":{"S":"a"},"m":{"M":{"a":{"N":"3"},"b":{"N":"2"}}}}`,
		`{"pk":{"S":"a"},"m":{"M":{"a":{"N":"3"},"b":{"N":"2"}}}}`,
		`{"pk":{"S":"a"},"m":{"M":{"a":{"N":"3"},"b":{"N":"2"}}}}`,
	}
	for mode, want := range map[string][]string{
		"NONE":    {``, ``, ``, ``, ``},
		"ALL_OLD": items[:5],
		"ALL_NEW": items[1:],
		"UPDATED_OLD": {``, `{"x":{"S":"q"}}`,
			`{"x":{"S":"r"},"m":{"M":{"a":{"N":"1"}}}}`, ``, ``},
		"UPDATED_NEW": {`{"x":{"S":"q"}}`, `{"x":{"S":"r"},"m":{"M":{"a":{"N":"1"},"b":{"N":"2"}}}}`,
			`{"m":{"M":{"a":{"N":"3"}}}}`, ``, ``},
	} {
		r := newTables(t)
		for i, input := range updates {
			output := `{}`
			if want[i] != "" {
				output = `{"Attributes":` + want[i] + `}`
			}
			r.gives("UpdateItem", `{"TableName":"plain","Key":{"pk":{"S":"a"}},`+input+`,"ReturnValues":"`+mode+`"}`,
				output)
		}
	}
}

// TestUpdateNests holds that an update may nest values no deeper than a put may.
func TestUpdateNests(t *testing.T) {
	r := newTables(t)
	nested := func(depth int) string {
		return strings.Repeat(`{"M":{"a":`, depth) + `{"S":"x"}` + strings.Repeat(`}}`, depth)
	}
	r.do("PutItem", `{"TableName":"plain","Item":{"pk":{"S":"a"},"m":`+nested(20)+`}}`)
	update := func(depth int) string {
		return `{"TableName":"plain","Key":{"pk":{"S":"a"}},"UpdateExpression":"SET m` + strings.Repeat(".a", 19) +
			` = :v","ExpressionAttributeValues":{":v":` + nested(depth) + `}}`
	}
	r.do("UpdateItem", update(12))
	r.invalid("UpdateItem", update(13), "Nesting Levels have exceeded supported limits")
}

// An update of nothing makes an item of its key, whatever it removes.
func TestUpsert(t *testing.T) {
	r := newTables(t)
	key := `{"TableName":"plain","Key":{"pk":{"S":"a"}}`
	for _, test := range []struct{ expression, want string }{
		{``, `{"pk":{"S":"a"}}`},
		{`,"UpdateExpression":"REMOVE x"`, `{"pk":{"S":"a"}}`},
		{`,"UpdateExpression":"DELETE x :s","ExpressionAttributeValues":{":s":{"SS":["a"]}}`, `{"pk":{"S":"a"}}`},
		{`,"UpdateExpression":"SET x = pk"`, `{"pk":{"S":"a"},"x":{"S":"a"}}`},
		{`,"UpdateExpression":"ADD x :n","ExpressionAttributeValues":{":n":{"N":"2"}}`,
			`{"pk":{"S":"a"},"x":{"N":"2"}}`},
	} {
		r.gives("UpdateItem", key+test.expression+`,"ReturnValues":"ALL_NEW"}`, `{"Attributes":`+test.want+`}`)
		r.gives("GetItem", key+`}`, `{"Item":`+test.want+`}`)
		r.do("DeleteItem", key+`}`)
	}
	// The condition sees that there is no item.
	r.fails("UpdateItem", key+`,"ConditionExpression":"pk = :k","ExpressionAttributeValues":{":k":{"S":"a"}}}`,
		exception.ConditionalCheckFailed, "The conditional request failed")
}
