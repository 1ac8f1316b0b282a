package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/engine"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

// queryOf returns a Query of the indexed table with that key condition, values and other members.
func queryOf(condition, values, members string) string {
	return `{"TableName":"indexed","KeyConditionExpression":"` + condition + `","ExpressionAttributeValues":` +
		values + members + `}`
}

func TestQueryInvalid(t *testing.T) {
	t.Parallel()
	const (
		h     = `{":h":{"S":"p"}}`
		rules = "One or more parameter values were invalid: "
		empty = "One or more parameter values are not valid. The AttributeValue for a key attribute cannot " +
			"contain an empty "
		index = "One or more parameter values are not valid. A value specified for a secondary index key is not " +
			"supported. "
		start  = "The provided starting key is invalid"
		scalar = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "
	)
	for _, test := range []struct{ condition, values, members, want string }{
		{"pk = :h", h, `,"Select":"ALL_PROJECTED_ATTRIBUTES","ProjectionExpression":"a"`,
			"Cannot specify the ProjectionExpression when choosing to get ALL_PROJECTED_ATTRIBUTES"},
		{"g = :h", h, `,"IndexName":"keys","ProjectionExpression":"z, pk, sk, g, a.b"`,
			rules + "Global secondary index keys does not project [a, z]"},

		{"pk = :h", h, `,"IndexName":"local","FilterExpression":"attribute_exists(l)"`,
			"Filter Expression can only contain non-primary key attributes: Primary key attribute: l"},
		{"pk = :h", h, `,"IndexName":"local","FilterExpression":"z = :h OR a = :h OR b = :h"`,
			rules + "Secondary index local does not project one or more filter attributes: [b, z]"},
		{"pk = :h", h, `,"FilterExpression":"sk.a = :h"`, scalar + "Key: sk"},
		{"pk = :h", h, `,"ProjectionExpression":"g[0]"`, scalar + "IndexKey: g"},

		{"pk = :h and begins_with(l, :s)", `{":h":{"S":"p"},":s":{"S":""}}`, `,"IndexName":"local"`,
			index + "The AttributeValue for a key attribute cannot contain an empty string value. IndexName: local, " +
				"IndexKey: l"},
		{"pk = :h and l = :s", `{":h":{"S":"p"},":s":{"S":"` + strings.Repeat("x", 1025) + `"}}`,
			`,"IndexName":"local"`,
			rules + "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"},

		{"pk = :h", h, `,"ExclusiveStartKey":{"pk":{"S":"p"},"a":{"N":"1"}}`, start},
		{"pk = :h", h, `,"ExclusiveStartKey":{"pk":{"S":""},"sk":{"N":"1"}}`,
			start + ": " + empty + "string value. Key: pk"},
		{"pk = :h and sk > :s", `{":h":{"S":"p"},":s":{"N":"1"}}`,
			`,"ExclusiveStartKey":{"pk":{"S":"q"},"sk":{"N":"2"}}`,
			"The query can return at most one row and cannot be restarted"},
		{"g = :h", h, `,"IndexName":"keys","ExclusiveStartKey":{"pk":{"S":"p"},"sk":{"S":"1"},"g":{"S":"p"}}`,
			start + ": The provided key element does not match the schema"},
	} {
		newTables(t).invalid("Query", queryOf(test.condition, test.values, test.members), test.want)
	}
}

func TestScanInvalid(t *testing.T) {
	t.Parallel()
	const start = "The provided starting key is invalid"
	for _, test := range []struct{ members, want string }{
		{`"Segment":-1,"TotalSegments":1000001`, "2 validation errors detected: " +
			"Value '-1' at 'segment' failed to satisfy constraint: Member must have value greater than or equal to " +
			"0; " +
			"Value '1000001' at 'totalSegments' failed to satisfy constraint: Member must have value less than or " +
			"equal to 1000000"},
		{`"IndexName":"keys","ExclusiveStartKey":{"pk":{"S":"p"}}`, start},
		{`"FilterExpression":"pk[1] = :v","ExpressionAttributeValues":{":v":{"S":"a"}}`,
			"Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: pk"},
	} {
		newTables(t).invalid("Scan", `{"TableName":"indexed",`+test.members+`}`, test.want)
	}
	// A key is of one segment.
	r, wrong := newTables(t), 0
	for segment := range 3 {
		input := fmt.Sprintf(
			`{"TableName":"plain","Segment":%d,"TotalSegments":3,"ExclusiveStartKey":{"pk":{"S":"p"}}}`, segment)
		if _, err := r.Do(t.Context(), "Scan", []byte(input)); err != nil {
			r.invalid("Scan", input,
				start+": Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment. "+
					fmt.Sprintf("TotalSegments: 3 Segment: %d", segment))
			wrong++
		}
	}
	if wrong != 2 {
		t.Errorf("of three segments, %d refuse a key", wrong)
	}
}

// fill puts n items into the indexed table, sk from 0 on, each with g, l, an a and a text b of that size.
func fill(r *rig, n, size int) {
	r.t.Helper()
	for i := range n {
		r.do("PutItem",
			fmt.Sprintf(`{"TableName":"indexed","Item":{"pk":{"S":"p"},"sk":{"N":"%d"},"g":{"S":"g"},"l":{"S":"l%d"},
			"a":{"N":"1"},"b":{"S":%q}}}`, i, i, strings.Repeat("b", size)))
	}
	r.billed()
}

// A page ends with the item that brings it to 1 MB, whether or not there is another, and before the filter.
func TestPageSize(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		items, size, want int
		last              string
	}{
		{5, 300 << 10, 4, `{"pk":{"S":"p"},"sk":{"N":"3"}}`},
		{4, 300 << 10, 4, `{"pk":{"S":"p"},"sk":{"N":"3"}}`},
		{3, 300 << 10, 3, ""},
		{5, 200 << 10, 5, ""},
	} {
		r := newTables(t)
		fill(r, test.items, test.size)
		last := ""
		if test.last != "" {
			last = `,"LastEvaluatedKey":` + test.last
		}
		answer := fmt.Sprintf(`{"Count":%d,"ScannedCount":%d`, test.want, test.want) + last + `}`
		r.gives("Query", queryOf("pk = :h", `{":h":{"S":"p"}}`, `,"Select":"COUNT"`), answer)
		r.gives("Scan", `{"TableName":"indexed","Select":"COUNT"}`, answer)
		r.gives("Scan", `{"TableName":"indexed","FilterExpression":"attribute_not_exists(b)"}`,
			fmt.Sprintf(`{"Items":[],"Count":0,"ScannedCount":%d`, test.want)+last+`}`)
	}
}

// A limit that falls on the last item has a last key, one past it has none.
func TestLastKeyOfLimit(t *testing.T) {
	t.Parallel()
	r := newTables(t)
	fill(r, 2, 1)
	for limit, last := range map[int]string{
		1: `,"LastEvaluatedKey":{"pk":{"S":"p"},"sk":{"N":"0"},"g":{"S":"g"}}`,
		2: `,"LastEvaluatedKey":{"pk":{"S":"p"},"sk":{"N":"1"},"g":{"S":"g"}}`,
		3: "",
	} {
		answer := fmt.Sprintf(`{"Count":%d,"ScannedCount":%[1]d`, min(limit, 2)) + last + `}`
		r.gives("Query", queryOf("g = :h", `{":h":{"S":"g"}}`,
			fmt.Sprintf(`,"IndexName":"all","Select":"COUNT","Limit":%d`, limit)), answer)
		r.gives("Scan", fmt.Sprintf(`{"TableName":"indexed","IndexName":"all","Select":"COUNT","Limit":%d}`, limit),
			answer)
	}
}

// TestReadOfIndexes holds what a read of an index returns and costs: by the sizes of the index's entries, and
// of the items it has to fetch.
func TestReadOfIndexes(t *testing.T) {
	t.Parallel()
	const (
		keys   = `"pk":{"S":"p"},"sk":{"N":"0"}`
		global = `{"CapacityUnits":%[1]v,"TableName":"indexed","Table":{"CapacityUnits":%v},
			"GlobalSecondaryIndexes":{%q:{"CapacityUnits":%v}}}`
		local = `{"CapacityUnits":%[1]v,"TableName":"indexed","Table":{"CapacityUnits":%v},
			"LocalSecondaryIndexes":{%q:{"CapacityUnits":%v}}}`
		table = `{"CapacityUnits":%v,"TableName":"indexed","Table":{"CapacityUnits":%[2]v}}`
	)
	r := newTables(t)
	fill(r, 3, 5000) // 5 KB: two units each, and 15 KB four together
	whole := `{` + keys + `,"g":{"S":"g"},"l":{"S":"l0"},"a":{"N":"1"},"b":{"S":"` + strings.Repeat("b",
		5000) + `"}}`
	for _, test := range []struct {
		condition, members, first string // the first item
		consumed                  string
		args                      []any
	}{
		{"pk = :h", ``, whole, table, []any{2, 2}},
		{"pk = :h", `,"ConsistentRead":true`, whole, table, []any{4, 4}},
		{"pk = :h", `,"Select":"COUNT"`, ``, table, []any{2, 2}},
		{"pk = :h", `,"ProjectionExpression":"a"`, `{"a":{"N":"1"}}`, table, []any{2, 2}},
		{"g = :h", `,"IndexName":"keys"`, `{` + keys + `,"g":{"S":"g"}}`, global, []any{0.5, 0, "keys", 0.5}},
		{"g = :h", `,"IndexName":"all"`, whole, global, []any{2, 0, "all", 2}},
		{"pk = :h", `,"IndexName":"local"`, `{` + keys + `,"l":{"S":"l0"},"a":{"N":"1"}}`, local,
			[]any{0.5, 0, "local", 0.5}},
		{"pk = :h", `,"IndexName":"local","Select":"ALL_PROJECTED_ATTRIBUTES"`,
			`{` + keys + `,"l":{"S":"l0"},"a":{"N":"1"}}`, local,
			[]any{0.5, 0, "local", 0.5}},
		{"pk = :h", `,"IndexName":"local","ProjectionExpression":"a"`, `{"a":{"N":"1"}}`, local,
			[]any{0.5, 0, "local", 0.5}},
		{"pk = :h", `,"IndexName":"local","ProjectionExpression":"a, g"`, `{"a":{"N":"1"},"g":{"S":"g"}}`, local,
			[]any{3.5, 3, "local", 0.5}},
		{"pk = :h", `,"IndexName":"local","Select":"ALL_ATTRIBUTES","ConsistentRead":true`, whole, local,
			[]any{7, 6, "local", 1}},
	} {
		hash := map[byte]string{'p': "p", 'g': "g"}[test.condition[0]]
		input := queryOf(test.condition, `{":h":{"S":"`+hash+`"}}`,
			test.members+`,"ReturnConsumedCapacity":"INDEXES"`)
		got := parse[struct {
			Items            []any
			ConsumedCapacity any
		}](r.do("Query", input))
		if diff := cmp.Diff(parse[any](fmt.Sprintf(test.consumed, test.args...)), got.ConsumedCapacity); diff !=
			"" {
			t.Errorf("%s: ConsumedCapacity (-want +got):\n%s", input, diff)
		}
		switch {
		case test.first == "" && got.Items != nil, test.first != "" && len(got.Items) != 3:
			t.Errorf("%s: items %v", input, got.Items)
		case test.first != "":
			if diff := cmp.Diff(parse[any](test.first), got.Items[0]); diff != "" {
				t.Errorf("%s: first item (-want +got):\n%s", input, diff)
			}
		}
	}
	want := []engine.Bill{
		{Operation: "Query", Table: "indexed", Read: 6, Outcome: engine.Applied},
		{Operation: "Query", Table: "indexed", Index: "local", Read: 1, Outcome: engine.Applied},
	}
	bills := r.billed()
	if diff := cmp.Diff(want, bills[len(bills)-2:]); diff != "" {
		t.Errorf("bills of the last query (-want +got):\n%s", diff)
	}
}

// Reading nothing costs the least there is.
func TestEmptyReadIsBilled(t *testing.T) {
	t.Parallel()
	r := newTables(t)
	r.gives("Query", queryOf("pk = :h", `{":h":{"S":"p"}}`, `,"ReturnConsumedCapacity":"TOTAL"`),
		`{"Items":[],"Count":0,"ScannedCount":0,"ConsumedCapacity":{"TableName":"indexed","CapacityUnits":0.5}}`)
	r.gives("Scan", `{"TableName":"indexed","ConsistentRead":true,"ReturnConsumedCapacity":"TOTAL"}`,
		`{"Items":[],"Count":0,"ScannedCount":0,"ConsumedCapacity":{"TableName":"indexed","CapacityUnits":1}}`)
	want := []engine.Bill{{Operation: "Query", Table: "indexed", Read: 0.5},
		{Operation: "Scan", Table: "indexed", Read: 1}}
	if diff := cmp.Diff(want, r.billed()); diff != "" {
		t.Errorf("bills (-want +got):\n%s", diff)
	}
}

// Eventually consistent reads see the table as it was, and global indexes as they were, whichever is earlier.
func TestStalePages(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		stale, lag          time.Duration
		table, local, index int // how many of an item a second they see, the newest first missing
	}{
		{0, 0, 10, 10, 10},
		{2 * time.Second, 0, 8, 8, 8},
		{0, 3 * time.Second, 10, 10, 7},
		{2 * time.Second, 3 * time.Second, 8, 8, 7},
		{4 * time.Second, 3 * time.Second, 6, 6, 6},
	} {
		r := newTables(t)
		r.under(engine.Conditions{StaleReads: test.stale, IndexLag: test.lag})
		for i := range 10 {
			r.pass(time.Second)
			r.do("PutItem",
				fmt.Sprintf(`{"TableName":"indexed","Item":{"pk":{"S":"p"},"sk":{"N":"%d"},"g":{"S":"p"},"l":{"S":"l"}}}`,
					i))
		}
		sees := func(operation, input string, want int) {
			t.Helper()
			r.gives(operation, input, fmt.Sprintf(`{"Count":%d,"ScannedCount":%[1]d}`, want))
		}
		const h, count = `{":h":{"S":"p"}}`, `,"Select":"COUNT"`
		sees("Query", queryOf("pk = :h", h, count), test.table)
		sees("Query", queryOf("pk = :h", h, count+`,"IndexName":"local"`), test.local)
		sees("Query", queryOf("g = :h", h, count+`,"IndexName":"all"`), test.index)
		sees("Scan", `{"TableName":"indexed"`+count+`}`, test.table)
		sees("Scan", `{"TableName":"indexed","IndexName":"keys"`+count+`}`, test.index)
		for _, consistent := range []string{``, `,"IndexName":"local"`} {
			sees("Query", queryOf("pk = :h", h, count+consistent+`,"ConsistentRead":true`), 10)
			sees("Scan", `{"TableName":"indexed"`+count+consistent+`,"ConsistentRead":true}`, 10)
		}
	}
}

func TestReadsAreThrottled(t *testing.T) {
	t.Parallel()
	r := newTables(t)
	fill(r, 1, 5000)
	query := queryOf("pk = :h", `{":h":{"S":"p"}}`, `,"ConsistentRead":true`) // two units
	for _, c := range []engine.Conditions{{Throttle: 1}, {PartitionRead: 3}, {TableRead: 3}} {
		r.under(c)
		r.pass(time.Minute)
		if c.Throttle == 0 {
			r.do("Query", query)
		}
		r.billed()
		r.fails("Query", query, exception.ProvisionedExceeded,
			"The level of configured provisioned throughput for the table was exceeded. "+
				"Consider increasing your provisioning level with the UpdateTable API.")
		if bills := r.billed(); bills != nil {
			t.Errorf("a throttled read is billed: %v", bills)
		}
	}
}

// A global index has partitions of its own, a local one is in the table's.
func TestPartitionsOfIndexes(t *testing.T) {
	t.Parallel()
	r := newTables(t)
	fill(r, 1, 5000)
	const h = `{":h":{"S":"p"}}`
	r.under(engine.Conditions{PartitionRead: 2})
	r.do("Query", queryOf("pk = :h", h, `,"ConsistentRead":true`)) // all two units of the partition
	r.do("Query", queryOf("g = :h", h, `,"IndexName":"keys"`))
	r.fails("Query", queryOf("pk = :h", h, `,"IndexName":"local"`), exception.ProvisionedExceeded,
		"The level of configured provisioned throughput for the table was exceeded. "+
			"Consider increasing your provisioning level with the UpdateTable API.")
}

// TestValuesAreBounded holds that the values of an expression have a bound of their own.
func TestValuesAreBounded(t *testing.T) {
	r := newTables(t)
	scan := func(bytes int) string {
		return `{"TableName":"plain","FilterExpression":"x = :v","ExpressionAttributeValues":{":v":{"S":"` +
			strings.Repeat("x", bytes) + `"}}}`
	}
	r.gives("Scan", scan(2<<20-2), `{"Items":[],"Count":0,"ScannedCount":0}`)
	r.invalid("Scan", scan(2<<20-1), "ExpressionAttributeValues exceeds max size")
}
