package engine_test

import "testing"

func TestItemCollectionMetrics(t *testing.T) {
	t.Parallel()
	r := newTables(t)
	collection := func(pk string) string {
		return `{"ItemCollectionKey":{"pk":{"S":"` + pk + `"}},"SizeEstimateRangeGB":[0,1]}`
	}
	const size = `,"ReturnItemCollectionMetrics":"SIZE"}`
	const key = `{"pk":{"S":"a"},"sk":{"N":"1"}}`
	a := `{"ItemCollectionMetrics":` + collection("a") + `}`
	r.gives("PutItem", `{"TableName":"indexed","Item":`+key+size, a)
	r.gives("UpdateItem", `{"TableName":"indexed","Key":`+key+size, a)
	r.gives("DeleteItem", `{"TableName":"indexed","Key":`+key+size, a)
	for _, more := range []string{`}`, `,"ReturnItemCollectionMetrics":"NONE"}`} {
		r.gives("PutItem", `{"TableName":"indexed","Item":`+key+more, `{}`)
	}
	r.gives("PutItem", `{"TableName":"plain","Item":{"pk":{"S":"a"}}`+size, `{}`)

	put := func(pk, sk string) string {
		return `{"PutRequest":{"Item":{"pk":{"S":"` + pk + `"},"sk":{"N":"` + sk + `"}}}}`
	}
	const plain = `"plain":[{"PutRequest":{"Item":{"pk":{"S":"a"}}}}]`
	r.gives("BatchWriteItem", `{"RequestItems":{"indexed":[`+put("b", "1")+`,`+put("a", "1")+`,`+put("b", "2")+
		`],`+plain+`}`+size,
		`{"UnprocessedItems":{},"ItemCollectionMetrics":{"indexed":[`+collection("b")+`,`+collection("a")+`]}}`)
	r.gives("BatchWriteItem", `{"RequestItems":{`+plain+`}`+size, `{"UnprocessedItems":{}}`)

	transaction := `{"TransactItems":[{"Put":{"TableName":"plain","Item":{"pk":{"S":"a"}}}},
		{"Update":{"TableName":"indexed","Key":` + key + `,"UpdateExpression":"SET x = sk"}},
		{"ConditionCheck":{"TableName":"indexed","Key":{"pk":{"S":"c"},"sk":{"N":"1"}},
		"ConditionExpression":"attribute_not_exists(pk)"}},
		{"Delete":{"TableName":"indexed","Key":{"pk":{"S":"b"},"sk":{"N":"1"}}}}]`
	r.gives("TransactWriteItems", transaction+size,
		`{"ItemCollectionMetrics":{"indexed":[`+collection("a")+`,`+collection("b")+`]}}`)
	r.gives("TransactWriteItems", transaction+`}`, `{}`)
}
