package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/engine"
)

// TestStaleGets reads the past where eventually consistent reads are stale; consistent reads never are.
func TestStaleGets(t *testing.T) {
	r := newTables(t)
	const lag = 3 * time.Second
	r.under(engine.Conditions{StaleReads: lag})
	r.do("PutItem", `{"TableName":"plain","Item":{"pk":{"S":"a"},"n":{"N":"1"}}}`)
	r.pass(lag)
	r.do("PutItem", `{"TableName":"plain","Item":{"pk":{"S":"a"},"n":{"N":"2"}}}`)
	item := func(n string) string { return `{"pk":{"S":"a"},"n":{"N":"` + n + `"}}` }
	eventually := func(n string) {
		t.Helper()
		const key = `{"pk":{"S":"a"}}`
		r.gives("GetItem", `{"TableName":"plain","Key":`+key+`}`, `{"Item":`+item(n)+`}`)
		r.gives("BatchGetItem", `{"RequestItems":{"plain":{"Keys":[`+key+`]}}}`, `{"Responses":{"plain":[`+item(n)+
			`]},"UnprocessedKeys":{}}`)
		r.gives("GetItem", `{"TableName":"plain","ConsistentRead":true,"Key":`+key+`}`, `{"Item":`+item("2")+`}`)
		r.gives("BatchGetItem", `{"RequestItems":{"plain":{"ConsistentRead":true,"Keys":[`+key+`]}}}`,
			`{"Responses":{"plain":[`+item("2")+`]},"UnprocessedKeys":{}}`)
	}
	eventually("1")
	r.pass(lag - 1)
	eventually("1")
	r.pass(1)
	eventually("2")

	r.do("PutItem", `{"TableName":"plain","Item":{"pk":{"S":"b"}}}`)
	r.gives("GetItem", `{"TableName":"plain","Key":{"pk":{"S":"b"}}}`, `{}`)
	r.under(engine.Conditions{})
	r.gives("GetItem", `{"TableName":"plain","Key":{"pk":{"S":"b"}}}`, `{"Item":{"pk":{"S":"b"}}}`)
}

// TestExpiredItemsGo deletes expired items with the next request, but not before the lag of TTL has passed.
func TestExpiredItemsGo(t *testing.T) {
	r := newTables(t)
	r.do("UpdateTimeToLive",
		`{"TableName":"plain","TimeToLiveSpecification":{"AttributeName":"ttl","Enabled":true}}`)
	r.under(engine.Conditions{TTLLag: time.Hour})
	r.do("PutItem", fmt.Sprintf(`{"TableName":"plain","Item":{"pk":{"S":"a"},"ttl":{"N":"%d"}}}`, r.now.Unix()))
	r.do("PutItem", `{"TableName":"plain","Item":{"pk":{"S":"b"}}}`)
	there := func(count int) {
		t.Helper()
		r.gives("Scan", `{"TableName":"plain","Select":"COUNT"}`, fmt.Sprintf(`{"Count":%d,"ScannedCount":%d}`,
			count, count))
	}
	there(2)
	r.pass(time.Hour)
	there(2)
	r.pass(time.Second)
	r.billed()
	r.do("ListTables", `{}`)
	there(1)
	for _, bill := range r.billed() {
		if bill.Write > 0 {
			t.Errorf("the service's deletion is billed: %+v", bill)
		}
	}
}
