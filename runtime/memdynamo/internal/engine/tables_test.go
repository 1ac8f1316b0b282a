package engine_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

// tableID matches the one member of a description that is random.
var tableID = regexp.MustCompile(
	`"TableId":"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",`)

// withoutID returns a description without its TableId, which it must have.
func withoutID(t *testing.T, output string) string {
	t.Helper()
	if !tableID.MatchString(output) {
		t.Errorf("no TableId in %s", output)
	}
	return tableID.ReplaceAllString(output, "")
}

func TestTableDescription(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.pass(250 * time.Millisecond)
	const of = `"AttributeDefinitions":[{"AttributeName":"h","AttributeType":"S"},{"AttributeName":"r",
		"AttributeType":"N"},
		{"AttributeName":"g","AttributeType":"B"}],
		"TableName":"orders","KeySchema":[{"AttributeName":"h","KeyType":"HASH"},{"AttributeName":"r",
		"KeyType":"RANGE"}]`
	const local = `"IndexName":"local","KeySchema":[{"AttributeName":"h","KeyType":"HASH"},{"AttributeName":"g",
		"KeyType":"RANGE"}],
		"Projection":{"ProjectionType":"INCLUDE","NonKeyAttributes":["a","b"]}`
	const global = `"IndexName":"global","KeySchema":[{"AttributeName":"g","KeyType":"HASH"}],
		"Projection":{"ProjectionType":"ALL"}`
	const arn = `arn:aws:dynamodb:us-east-1:000000000000:table/orders`
	describe := func(status, sizes, localSizes string) string {
		return `{` + of + `,"TableStatus":"` + status + `","CreationDateTime":1767323045.25,` + sizes +
			`,"TableArn":"` + arn + `",
			"ProvisionedThroughput":{"NumberOfDecreasesToday":0,"ReadCapacityUnits":0,"WriteCapacityUnits":0},
			"BillingModeSummary":{"BillingMode":"PAY_PER_REQUEST","LastUpdateToPayPerRequestDateTime":1767323045.25},
			"LocalSecondaryIndexes":[{` + local + `,` + localSizes + `,"IndexArn":"` + arn + `/index/local"}],
			"GlobalSecondaryIndexes":[{` + global + `,` + localSizes + `,"IndexStatus":"ACTIVE",
				"ProvisionedThroughput":{"NumberOfDecreasesToday":0,"ReadCapacityUnits":0,"WriteCapacityUnits":0},
				"IndexArn":"` + arn + `/index/global"}],
			"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_IMAGE"},
			"LatestStreamLabel":"2026-01-02T03:04:05.250","LatestStreamArn":"` + arn +
			`/stream/2026-01-02T03:04:05.250",
			"DeletionProtectionEnabled":false}`
	}
	empty := describe("ACTIVE", `"TableSizeBytes":0,"ItemCount":0`, `"IndexSizeBytes":0,"ItemCount":0`)
	created := r.do("CreateTable", `{`+of+`,"BillingMode":"PAY_PER_REQUEST","LocalSecondaryIndexes":[{`+
		local+`}],
		"GlobalSecondaryIndexes":[{`+global+
		`}],"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_IMAGE"},
		"SSESpecification":{"Enabled":true},"Tags":[{"Key":"a","Value":"b"}],"TableClass":"STANDARD"}`)
	if diff := jsonDiff(`{"TableDescription":`+empty+`}`, withoutID(t, created)); diff != "" {
		t.Errorf("CreateTable (-want +got):\n%s", diff)
	}
	for _, name := range []string{"orders", arn} {
		got := withoutID(t, r.do("DescribeTable", `{"TableName":"`+name+`"}`))
		if diff := jsonDiff(`{"Table":`+empty+`}`, got); diff != "" {
			t.Errorf("DescribeTable (-want +got):\n%s", diff)
		}
	}
	// 1+1 for h, 1+2 for r, and in the one that is in both indexes 1+3 for g.
	r.do("PutItem", `{"TableName":"orders","Item":{"h":{"S":"a"},"r":{"N":"1"}}}`)
	r.do("PutItem", `{"TableName":"orders","Item":{"h":{"S":"b"},"r":{"N":"1"},"g":{"B":"AAAA"}}}`)
	full := describe("DELETING", `"TableSizeBytes":14,"ItemCount":2`, `"IndexSizeBytes":9,"ItemCount":1`)
	full = strings.Replace(full, `"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_IMAGE"},`,
		"", 1)
	if diff := jsonDiff(`{"TableDescription":`+full+`}`,
		withoutID(t, r.do("DeleteTable", `{"TableName":"orders"}`))); diff != "" {
		t.Errorf("DeleteTable (-want +got):\n%s", diff)
	}
	r.gives("ListTables", `{}`, `{"TableNames":[]}`)
}

func TestProvisionedTable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	output := r.do("CreateTable",
		`{"TableName":"tbl","AttributeDefinitions":[{"AttributeName":"h","AttributeType":"S"}],
		"KeySchema":[{"AttributeName":"h","KeyType":"HASH"}],"ProvisionedThroughput":{"ReadCapacityUnits":3,
		"WriteCapacityUnits":4},
		"GlobalSecondaryIndexes":[{"IndexName":"idx","KeySchema":[{"AttributeName":"h","KeyType":"HASH"}],
			"Projection":{"ProjectionType":"KEYS_ONLY"},"ProvisionedThroughput":{"ReadCapacityUnits":5,
			"WriteCapacityUnits":6}}]}`)
	for _, want := range []string{
		`"ProvisionedThroughput":{"NumberOfDecreasesToday":0,"ReadCapacityUnits":3,"WriteCapacityUnits":4}`,
		`"ProvisionedThroughput":{"NumberOfDecreasesToday":0,"ReadCapacityUnits":5,"WriteCapacityUnits":6}`,
	} {
		if !strings.Contains(output, want) {
			t.Errorf("no %s in %s", want, output)
		}
	}
	if strings.Contains(output, "BillingModeSummary") {
		t.Errorf("a table that was never on demand has a BillingModeSummary: %s", output)
	}
	output = r.do("UpdateTable", `{"TableName":"tbl","BillingMode":"PAY_PER_REQUEST"}`)
	const none = `"ProvisionedThroughput":{"NumberOfDecreasesToday":0,"ReadCapacityUnits":0,` +
		`"WriteCapacityUnits":0}`
	if n := strings.Count(output, none); n != 2 {
		t.Errorf("on demand, %d throughputs of nothing, want the table's and the index's: %s", n, output)
	}
}

// definition is CreateTable's input, to be varied.
type definition map[string]any

// with returns the definition with other members: one that is nil is left out.
func (d definition) with(members string) string {
	varied := definition{}
	for _, m := range []definition{d, parse[definition](members)} {
		for name, v := range m {
			varied[name] = v
			if v == nil {
				delete(varied, name)
			}
		}
	}
	text, err := json.Marshal(varied)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// parse returns what a text of JSON says.
func parse[T any](text string) (v T) {
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic(fmt.Sprint(err, ": ", text))
	}
	return v
}

// simple defines a table of a hash key h and a sort key r, of which definitions that are wrong are variants.
const simple = `{"TableName":"tbl","BillingMode":"PAY_PER_REQUEST",
	"AttributeDefinitions":[{"AttributeName":"h","AttributeType":"S"},{"AttributeName":"r","AttributeType":"N"}],
	"KeySchema":[{"AttributeName":"h","KeyType":"HASH"},{"AttributeName":"r","KeyType":"RANGE"}]}`

// index returns an index as a definition has it, of an index name, key attributes and a projection.
func index(name, projection string, keys ...string) string {
	var elements []string
	for i, key := range keys {
		elements = append(elements, fmt.Sprintf(`{"AttributeName":%q,"KeyType":%q}`, key,
			[]string{"HASH", "RANGE", "RANGE"}[i]))
	}
	return fmt.Sprintf(`{"IndexName":%q,"KeySchema":[%s],"Projection":%s}`, name, strings.Join(elements, ","),
		projection)
}

// repeat returns n texts with a number in each, joined by commas.
func repeat(n int, text func(i int) string) string {
	var texts []string
	for i := range n {
		texts = append(texts, text(i))
	}
	return strings.Join(texts, ",")
}

func TestCreateTableInvalid(t *testing.T) {
	t.Parallel()
	const (
		all     = `{"ProjectionType":"ALL"}`
		rules   = "One or more parameter values were invalid: "
		one     = "1 validation error detected: "
		missing = "Member must not be null"
	)
	gsi := func(indexes string) string { return `{"GlobalSecondaryIndexes":[` + indexes + `]}` }
	include := func(first, n int) string {
		return `{"ProjectionType":"INCLUDE","NonKeyAttributes":[` +
			repeat(n, func(i int) string { return fmt.Sprintf("%q", fmt.Sprint("a", first+i)) }) + `]}`
	}
	for _, test := range []struct{ members, want string }{
		{`{"AttributeDefinitions":null,"KeySchema":null}`, "2 validation errors detected: " +
			"Value null at 'attributeDefinitions' failed to satisfy constraint: " + missing + "; " +
			"Value null at 'keySchema' failed to satisfy constraint: " + missing},
		{`{"AttributeDefinitions":[{}]}`, "2 validation errors detected: " +
			"Value null at 'attributeDefinitions.1.member.attributeName' failed to satisfy constraint: " + missing +
			"; " +
			"Value null at 'attributeDefinitions.1.member.attributeType' failed to satisfy constraint: " + missing},
		{`{"KeySchema":[{"AttributeName":"h","KeyType":"HASH"},{"AttributeName":"r","KeyType":"RANGE"},
		{"AttributeName":"r","KeyType":"RANGE"}]}`,
			one + "Value '[KeySchemaElement(attributeName=h, keyType=HASH), KeySchemaElement(attributeName=r, " +
				"keyType=RANGE), " +
				"KeySchemaElement(attributeName=r, keyType=RANGE)]' at 'keySchema' failed to satisfy constraint: " +
				"Member must have length less than or equal to 2"},
		{`{"BillingMode":null,"ProvisionedThroughput":{"ReadCapacityUnits":1,"WriteCapacityUnits":-1}}`, one +
			"Value '-1' at 'provisionedThroughput.writeCapacityUnits' failed to satisfy constraint: " +
			"Member must have value greater than or equal to 1"},
		{`{"BillingMode":null,"ProvisionedThroughput":{"ReadCapacityUnits":1000000000001,"WriteCapacityUnits":1}}`,
			"Given value 1000000000001 for ReadCapacityUnits is out of bounds"},

		{`{"AttributeDefinitions":[{"AttributeName":"h","AttributeType":"S"}]}`,
			"Invalid KeySchema: Some index key attribute have no definition"},
		{`{"KeySchema":[{"AttributeName":"h","KeyType":"HASH"},{"AttributeName":"h","KeyType":"RANGE"}]}`,
			"Both the Hash Key and the Range Key element in the KeySchema have the same name"},

		{`{"LocalSecondaryIndexes":[` + index("idx", all, "h", "r") + `],"GlobalSecondaryIndexes":[` + index("idx",
			all, "r") + `]}`,
			rules + "Duplicate index name: idx"},
		{gsi(index("i?", all, "h")), "2 validation errors detected: " +
			"Value 'i?' at 'globalSecondaryIndexes.1.member.indexName' failed to satisfy constraint: " +
			"Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+; " +
			"Value 'i?' at 'globalSecondaryIndexes.1.member.indexName' failed to satisfy constraint: " +
			"Member must have length greater than or equal to 3"},
		{gsi(`{}`), "3 validation errors detected: " +
			"Value null at 'globalSecondaryIndexes.1.member.indexName' failed to satisfy constraint: " + missing +
			"; " +
			"Value null at 'globalSecondaryIndexes.1.member.keySchema' failed to satisfy constraint: " + missing +
			"; " +
			"Value null at 'globalSecondaryIndexes.1.member.projection' failed to satisfy constraint: " + missing},
		{gsi(index("idx", include(0, 21), "r")), one +
			"Value '[a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, " +
			"a20]' " +
			"at 'globalSecondaryIndexes.1.member.projection.nonKeyAttributes' failed to satisfy constraint: " +
			"Member must have length less than or equal to 20"},
		{gsi(repeat(6, func(i int) string { return index(fmt.Sprint("idx", i), include(20*i, 20), "r") })),
			rules + "Number of NonKeyAttributes exceeds per-table limit of 100"},
		{gsi(index("idx", `{"ProjectionType":"INCLUDE","NonKeyAttributes":["a","a"]}`, "r")),
			rules + "Duplicate element in NonKeyAttributes: a"},
		{`{"AttributeDefinitions":[{"AttributeName":"h","AttributeType":"S"},{"AttributeName":"r",
		"AttributeType":"N"},
			{"AttributeName":"x","AttributeType":"S"}],"GlobalSecondaryIndexes":[` + index("idx", all, "r") + `]}`,
			rules + "Some AttributeDefinitions are not used. AttributeDefinitions: [h, r, x], keys used: [h, r]"},

		{`{"StreamSpecification":{}}`,
			one + "Value null at 'streamSpecification.streamEnabled' failed to satisfy constraint: " + missing},
		{`{"StreamSpecification":{"StreamEnabled":false,"StreamViewType":"KEYS_ONLY"}}`,
			rules + "Table is being created with a stream disabled, UpdateViewType should not be specified"},
	} {
		r := newRig(t)
		r.invalid("CreateTable", parse[definition](simple).with(test.members), test.want)
		r.gives("ListTables", `{}`, `{"TableNames":[]}`)
	}
	// The definition that all of them spoil is a good one, and so is one at all limits.
	r := newRig(t)
	r.do("CreateTable", simple)
	r.do("CreateTable", parse[definition](simple).with(`{"TableName":"most",
		"LocalSecondaryIndexes":[`+repeat(5, func(i int) string {
		return index(fmt.Sprint("lsi", i),
			include(20*i, 20), "h", "r")
	})+`],
		"GlobalSecondaryIndexes":[`+repeat(20, func(i int) string {
		return index(fmt.Sprint("gsi", i), all, "r",
			"h")
	})+`]}`))
	r.fails("CreateTable", simple, exception.ResourceInUse, "Table already exists: tbl")
}

func TestListTables(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, name := range []string{"ccc", "aaa", "bbb"} {
		r.do("CreateTable", parse[definition](simple).with(`{"TableName":"`+name+`"}`))
	}
	r.gives("ListTables", `{}`, `{"TableNames":["aaa","bbb","ccc"]}`)
	r.gives("ListTables", `{"Limit":3}`, `{"TableNames":["aaa","bbb","ccc"]}`)
	r.gives("ListTables", `{"Limit":2}`, `{"TableNames":["aaa","bbb"],"LastEvaluatedTableName":"bbb"}`)
	r.gives("ListTables", `{"ExclusiveStartTableName":"bbb"}`, `{"TableNames":["ccc"]}`)
	r.gives("ListTables", `{"ExclusiveStartTableName":"abc","Limit":1}`,
		`{"TableNames":["bbb"],"LastEvaluatedTableName":"bbb"}`)
	r.gives("ListTables", `{"ExclusiveStartTableName":"ccc"}`, `{"TableNames":[]}`)
}

func TestUpdateTable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.do("CreateTable", simple)
	update := func(members string) string { return `{"TableName":"tbl",` + members + `}` }
	holds := func(output string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(output, want) {
				t.Errorf("no %s in %s", want, output)
			}
		}
	}
	const rules = "One or more parameter values were invalid: "
	for _, test := range []struct{ members, want string }{
		{`"BillingMode":"PROVISIONED"`,
			rules + "ProvisionedThroughput must be specified when BillingMode is PROVISIONED"},
		{`"ProvisionedThroughput":{"ReadCapacityUnits":1,"WriteCapacityUnits":1}`,
			rules + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is " +
				"PAY_PER_REQUEST"},
		{`"StreamSpecification":{"StreamEnabled":true}`,
			rules + "If stream is being enabled then UpdateViewType is required"},
		{`"StreamSpecification":{"StreamEnabled":false,"StreamViewType":"NEW_IMAGE"}`,
			rules + "If stream is being disabled, then UpdateViewType must not be specified"},
		{`"DeletionProtectionEnabled":true,"BillingMode":"PAY_PER_REQUEST"`,
			rules + "DeletionProtection modification must be the only operation in the request"},
		{`"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_IMAGE"},"BillingMode":"PROVISIONED",
			"ProvisionedThroughput":{"ReadCapacityUnits":1,"WriteCapacityUnits":1}`,
			rules + "You cannot modify stream status while updating table IOPS"},
		{`"AttributeDefinitions":[]`, "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, " +
			"GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, " +
			"ReplicaTransitRoleArn, " +
			"MultiRegionConsistency, DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is " +
			"required"},
	} {
		r.invalid("UpdateTable", update(test.members), test.want)
	}

	holds(r.do("UpdateTable", update(`"DeletionProtectionEnabled":true`)), `"DeletionProtectionEnabled":true`)
	r.invalid("DeleteTable", `{"TableName":"tbl"}`,
		"Resource cannot be deleted as it is currently protected against deletion. "+
			"Disable deletion protection first.")
	holds(r.do("UpdateTable", update(`"DeletionProtectionEnabled":false`)), `"DeletionProtectionEnabled":false`)

	r.pass(time.Hour)
	provisioned := update(
		`"BillingMode":"PROVISIONED","ProvisionedThroughput":{"ReadCapacityUnits":7,"WriteCapacityUnits":8}`)
	holds(r.do("UpdateTable", provisioned), `"ReadCapacityUnits":7,"WriteCapacityUnits":8`,
		`"BillingModeSummary":{"BillingMode":"PROVISIONED","LastUpdateToPayPerRequestDateTime":1767323045}`)
	r.invalid("UpdateTable", provisioned, "The provisioned throughput for the table will not change. "+
		"The requested value equals the current value. Current ReadCapacityUnits provisioned for the table: 7. "+
		"Requested ReadCapacityUnits: 7. Current WriteCapacityUnits provisioned for the table: 8. Requested "+
		"WriteCapacityUnits: 8. "+
		"Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits.")
	holds(r.do("UpdateTable", update(`"BillingMode":"PAY_PER_REQUEST"`)),
		`"ReadCapacityUnits":0,"WriteCapacityUnits":0`,
		`"BillingModeSummary":{"BillingMode":"PAY_PER_REQUEST","LastUpdateToPayPerRequestDateTime":1767326645}`)

	enable := update(`"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"KEYS_ONLY"}`)
	holds(r.do("UpdateTable", enable),
		`"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"KEYS_ONLY"}`,
		`"LatestStreamLabel":"2026-01-02T04:04:05.000"`)
	r.invalid("UpdateTable", enable, "Table already has an enabled stream: TableName: tbl")
	disabled := r.do("UpdateTable", update(`"StreamSpecification":{"StreamEnabled":false}`))
	holds(disabled, `"LatestStreamLabel":"2026-01-02T04:04:05.000"`)
	if strings.Contains(disabled, "StreamSpecification") {
		t.Errorf("a disabled stream is specified: %s", disabled)
	}
	// The clock stands still, and still the next stream has a name of its own.
	holds(r.do("UpdateTable", enable), `"LatestStreamLabel":"2026-01-02T04:04:05.001"`)
}
