package engine_test

import "testing"

func BenchmarkConditionalUpdate(b *testing.B) {
	r := newTables(b)
	input := []byte(
		`{"TableName":"plain","Key":{"pk":{"S":"a"}},"UpdateExpression":"SET #n = if_not_exists(#n, :zero) + :one",
		"ConditionExpression":"attribute_not_exists(#n) OR #n < :most","ExpressionAttributeNames":{"#n":"n"},
		"ExpressionAttributeValues":{":zero":{"N":"0"},":one":{"N":"1"},":most":{"N":"1000000000"}},
		"ReturnValues":"UPDATED_NEW"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Do(b.Context(), "UpdateItem", input); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTransactWrite(b *testing.B) {
	r := newTables(b)
	input := []byte(transaction(add("a"), add("b")))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Do(b.Context(), "TransactWriteItems", input); err != nil {
			b.Fatal(err)
		}
	}
}
